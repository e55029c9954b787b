/** Reads of a hub without caches, for `tenon preflight` and `tenon init`: one look, and nothing is followed. */
import { isKubeError } from '@tenon/kube'
import type { NodeGroupPreflightDependencies } from '@tenon/provider'
import { groupIn } from '../hub/scope.ts'
import { readVersion } from '../hub/settings.ts'
import { type ClusterApiNames, namesOf } from '../names.ts'
import { type Cluster, type HubKinds, kindsOf, type ServedVersion } from '../objects.ts'
import { type DiscoverySpec, matchesSpec, namespacesOf, parseDiscoverySpec } from './discovery.ts'
import { ownerName, servedVersionOf, typeIn } from './group-hub.ts'
import { type GroupKind, groupKinds, type GroupRef, refOf, type Scalable } from './scalable.ts'

type Hub = NodeGroupPreflightDependencies['clusters']['management']

/** Which hub, and what of it. */
export interface HubScope {
  readonly hub: Hub
  readonly names: ClusterApiNames
  readonly specs: readonly DiscoverySpec[]
  /** Undefined: all namespaces, at once. */
  readonly namespaces: readonly (string | undefined)[]
  /** `CAPI_VERSION`. */
  readonly version: ServedVersion | undefined
}

/** @throws ProviderSettingError for a malformed flag or variable. */
export function hubScopeOf({
  env,
  clusters,
  discoverySpecs,
}: Pick<NodeGroupPreflightDependencies, 'env' | 'clusters' | 'discoverySpecs'>): HubScope {
  const specs = discoverySpecs.map(parseDiscoverySpec)
  return {
    hub: clusters.management,
    names: namesOf(groupIn(env)),
    specs,
    namespaces: namespacesOf(specs) ?? [undefined],
    version: readVersion(env['CAPI_VERSION'] === '' ? undefined : env['CAPI_VERSION']),
  }
}

/** What the hub serves. */
export type ServedHub =
  | {
      readonly kind: 'served'
      readonly version: ServedVersion
      readonly kinds: HubKinds
      /** Of that version. */
      readonly plurals: ReadonlySet<string>
    }
  | { readonly kind: 'missing'; readonly problem: string; readonly fix: string }

export async function servedHub(scope: HubScope, signal: AbortSignal): Promise<ServedHub> {
  const { hub, names } = scope
  const versions = await hub.client.servedVersions(names.group, { signal })
  const found = servedVersionOf({ server: hub.server, names }, versions, scope.version)
  if (found.kind === 'missing') return found
  const { version } = found
  const served = await hub.client.servedKinds(names.group, version, { signal })
  return {
    kind: 'served',
    version,
    kinds: kindsOf(names.group, version),
    plurals: new Set(served.map(({ plural }) => plural)),
  }
}

/** Resources in scope that may be groups: without those that a MachineDeployment owns. */
export interface SeenResources {
  readonly found: readonly { readonly ref: GroupRef; readonly object: Scalable }[]
  /** Collections that could not be read, and why: they may have groups too. */
  readonly unread: readonly { readonly what: string; readonly why: string }[]
}

export async function resourcesIn(
  scope: HubScope,
  { kinds, plurals }: Extract<ServedHub, { kind: 'served' }>,
  signal: AbortSignal,
): Promise<SeenResources> {
  const { hub, names, specs, namespaces } = scope
  const found: { readonly ref: GroupRef; readonly object: Scalable }[] = []
  const unread: { readonly what: string; readonly why: string }[] = []
  const listed = async (kind: GroupKind, namespace: string | undefined) => {
    const type = typeIn(kinds, kind)
    try {
      for (const object of await hub.client.list(type, {
        signal,
        ...(namespace !== undefined && { namespace }),
      }))
        if (isInScope(object, specs, names) && ownerName(object, 'MachineDeployment') === undefined)
          found.push({ ref: refOf(kind, object), object })
    } catch (error) {
      signal.throwIfAborted()
      if (!isKubeError(error)) throw error
      const where = namespace === undefined ? '' : ` in ${namespace}`
      unread.push({ what: `${type.plural}.${type.group}${where}`, why: error.message })
    }
  }
  for (const kind of groupKinds)
    if (plurals.has(typeIn(kinds, kind).plural))
      for (const namespace of namespaces) await listed(kind, namespace)
  return { found, unread }
}

function isInScope(object: Scalable, specs: readonly DiscoverySpec[], names: ClusterApiNames): boolean {
  return specs.length === 0 || specs.some((spec) => matchesSpec(object, spec, names))
}

/** The Clusters of the namespaces; undefined if they may not be read, which is optional. */
export async function clustersIn(
  { hub, namespaces }: HubScope,
  { kinds, plurals }: Extract<ServedHub, { kind: 'served' }>,
  signal: AbortSignal,
): Promise<readonly Cluster[] | undefined> {
  if (!plurals.has(kinds.cluster.plural)) return undefined
  const found: Cluster[] = []
  try {
    for (const namespace of namespaces)
      found.push(
        ...(await hub.client.list(kinds.cluster, { signal, ...(namespace !== undefined && { namespace }) })),
      )
    return found
  } catch (error) {
    signal.throwIfAborted()
    if (!isKubeError(error)) throw error
    return undefined
  }
}
