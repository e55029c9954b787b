/** The hub of node groups: its version, and caches of all that decides. */
import type { KubeObject, ResourceType } from '@tenon/api'
import { type Cache, createCacheRegistry, isKubeError, type WatchingKubeClient } from '@tenon/kube'
import { decorated, ProviderSettingError } from '@tenon/provider'
import { type Clock, Listeners, type Logger, messageOf, type Random } from '@tenon/runtime'
import { managersOfReplicas } from '../catalogue/growth.ts'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import { type ClusterApiNames, fixedNames } from '../names.ts'
import {
  type Cluster,
  type HubKinds,
  kindsOf,
  type Machine,
  type MachineSet,
  type ServedVersion,
  servedVersions,
} from '../objects.ts'
import { normalizedId } from './instances.ts'
import { type GroupKind, type GroupRef, groupKinds, type Scalable } from './scalable.ts'

/** After so long without a word of a watch, what is known may be wrong. */
const longestGapMs = 5 * 60_000
/** How often the version is looked up while a kind is refused. */
const versionMs = 5 * 60_000
const firstPauseMs = 1000
const longestPauseMs = 30_000

export interface GroupHubOptions {
  readonly client: WatchingKubeClient
  readonly server: string
  readonly names: ClusterApiNames
  /** `CAPI_VERSION`; absent = the preferred supported one. */
  readonly version?: ServedVersion
  /** Absent = all. */
  readonly namespaces?: readonly string[]
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/** The caches of one kind, one for each namespace. */
type Caches<T extends KubeObject> = readonly Cache<T>[]

interface OpenGroupHub {
  readonly version: ServedVersion
  readonly kinds: HubKinds
  readonly resources: Readonly<Record<GroupKind, Caches<Scalable>>>
  readonly machines: Caches<Machine>
  readonly clusters: Caches<Cluster>
  /** All caches, with their keys in what was heard. */
  readonly followed: readonly { readonly cache: Cache<KubeObject>; readonly key: string }[]
  readonly close: () => void
}

const byOwner = 'owner'
const byId = 'providerID'
const byNormalizedId = 'normalized'
const byNode = 'node'

/** Reads of the caches, and the client for live reads and writes. */
export class GroupHub {
  readonly server: string
  readonly names: ClusterApiNames
  readonly client: WatchingKubeClient
  /** Notified of each change of a resource or Machine. */
  readonly changes: Listeners<undefined> = new Listeners()
  readonly #options: GroupHubOptions
  /** By collection: when it was last heard of, by {@link Clock.monotonic}. */
  readonly #heardMs = new Map<string, number>()
  readonly #reported = new Set<string>()
  #open: OpenGroupHub | undefined
  #signal: AbortSignal | undefined
  #versionMs = 0

  constructor(options: GroupHubOptions) {
    this.#options = options
    this.server = options.server
    this.names = options.names
    this.client = this.#listened(options.client)
  }

  /**
   * Resolves once everything that this process may read was listed.
   * @throws ProviderSettingError if the hub serves no supported version.
   */
  async start(signal: AbortSignal): Promise<void> {
    this.#signal = signal
    const { clock, logger } = this.#options
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, 2 * pauseMs)) {
      try {
        await this.#openVersion(await this.#servedVersion(signal), signal)
        return
      } catch (error) {
        signal.throwIfAborted()
        if (!isKubeError(error)) throw error
        logger.warn('the management cluster cannot be read yet', {
          server: this.server,
          error: messageOf(error),
        })
        await clock.sleep(pauseMs, signal)
      }
    }
  }

  /** Reports missing rights once, and changes to another version if the one in use is no longer served. */
  async refresh(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options
    const refused = this.#refused()
    this.#reportRefused(refused)
    if (refused.length === 0 || clock.monotonic() - this.#versionMs < versionMs) return
    this.#versionMs = clock.monotonic()
    const served = await this.client.servedVersions(this.names.group, { signal })
    const { version, close } = this.#opened()
    if (served.length === 0 || served.includes(version)) return
    const next = await this.#servedVersion(signal)
    logger.warn('the management cluster no longer serves the version in use', { version, next })
    close()
    await this.#openVersion(next, this.#signal ?? signal)
  }

  get kinds(): HubKinds {
    return this.#opened().kinds
  }

  typeOf(kind: GroupKind): ResourceType<Scalable> {
    return typeIn(this.kinds, kind)
  }

  /** The rule that is missing to read a kind; undefined if it can be read or is not served. */
  missingRule(kind: GroupKind | 'Machine'): string | undefined {
    const { resources, machines } = this.#opened()
    const cache = (kind === 'Machine' ? machines : resources[kind]).find(({ isRefused }) => isRefused)
    return cache && this.#ruleOf(cache)
  }

  /** Why the content of the caches may be outdated: a clause; undefined if it is not. */
  get gap(): string | undefined {
    const { clock } = this.#options
    const { followed } = this.#opened()
    const oldestMs = Math.min(
      ...followed.flatMap(({ cache, key }) => (cache.isRefused ? [] : (this.#heardMs.get(key) ?? []))),
    )
    const longest = clock.monotonic() - oldestMs
    if (longest < longestGapMs) return undefined
    return `the management cluster ${this.server} has not been heard of for ${String(Math.floor(longest / 60_000))} min`
  }

  resources(kind: GroupKind): readonly Scalable[] {
    return this.#opened().resources[kind].flatMap((cache) => cache.list())
  }

  resource({ kind, namespace, name }: GroupRef): Scalable | undefined {
    return first(this.#opened().resources[kind], (cache) => cache.get({ namespace, name }))
  }

  machine(key: HubKey): Machine | undefined {
    return first(this.#opened().machines, (cache) => cache.get(key))
  }

  cluster({ metadata, spec }: Scalable): Cluster | undefined {
    const key = { namespace: metadata.namespace ?? '', name: spec?.clusterName ?? '' }
    return first(this.#opened().clusters, (cache) => cache.get(key))
  }

  /** Whether objects of this namespace are watched. */
  watches(namespace: string): boolean {
    const { namespaces } = this.#options
    return namespaces === undefined || namespaces.includes(namespace)
  }

  setsOf({ namespace, name }: HubKey): readonly MachineSet[] {
    const owner = ownerText(namespace, 'MachineDeployment', name)
    return this.#opened().resources.MachineSet.flatMap((cache) => cache.byIndex(byOwner, owner))
  }

  /** Machines of a group, of all revisions. */
  machinesOf(ref: GroupRef): readonly Machine[] {
    const { kind, namespace, name } = ref
    if (kind === 'MachineDeployment') {
      // Without the right to read MachineSets, only the label of its Machines names a MachineDeployment.
      if (this.missingRule('MachineSet') !== undefined)
        return this.#machinesBy(byOwner, labelText(namespace, name))
      return this.setsOf(ref).flatMap(({ metadata }) =>
        this.machinesOf({ kind: 'MachineSet', namespace, name: metadata.name }),
      )
    }
    return this.#machinesBy(byOwner, ownerText(namespace, kind, name))
  }

  withProviderId(providerId: string): readonly Machine[] {
    return this.#machinesBy(byId, providerId)
  }

  withNormalizedId(providerId: string): readonly Machine[] {
    return this.#machinesBy(byNormalizedId, normalizedId(providerId))
  }

  ofNode(nodeName: string): readonly Machine[] {
    return this.#machinesBy(byNode, nodeName)
  }

  poolsWithId(providerId: string): readonly Scalable[] {
    const { MachinePool } = this.#opened().resources
    const exact = MachinePool.flatMap((cache) => cache.byIndex(byId, providerId))
    if (exact.length > 0) return exact
    return MachinePool.flatMap((cache) => cache.byIndex(byNormalizedId, normalizedId(providerId)))
  }

  /** The resource that a Machine belongs to; undefined for one of a control plane, or without an owner. */
  ownerOf(machine: Machine): GroupRef | undefined {
    const { namespace } = hubKeyOf(machine)
    const pool = ownerName(machine, 'MachinePool')
    if (pool !== undefined) return { kind: 'MachinePool', namespace, name: pool }
    const setName = ownerName(machine, 'MachineSet')
    if (setName === undefined) return undefined
    const set: GroupRef = { kind: 'MachineSet', namespace, name: setName }
    const known = this.resource(set)
    const deployment =
      known === undefined
        ? machine.metadata.labels?.[fixedNames.deploymentName]
        : ownerName(known, 'MachineDeployment')
    return deployment === undefined ? set : { kind: 'MachineDeployment', namespace, name: deployment }
  }

  #machinesBy(index: string, value: string): readonly Machine[] {
    return value === '' ? [] : this.#opened().machines.flatMap((cache) => cache.byIndex(index, value))
  }

  #opened(): OpenGroupHub {
    if (this.#open === undefined) throw new Error('the management cluster has not been read yet')
    return this.#open
  }

  async #servedVersion(signal: AbortSignal): Promise<ServedVersion> {
    const served = servedVersionOf(
      this,
      await this.client.servedVersions(this.names.group, { signal }),
      this.#options.version,
    )
    if (served.kind === 'missing') throw new ProviderSettingError(`${served.problem}: ${served.fix}`)
    return served.version
  }

  async #openVersion(version: ServedVersion, signal: AbortSignal): Promise<void> {
    const { names, namespaces, clock, random, logger } = this.#options
    const served = new Set(
      (await this.client.servedKinds(names.group, version, { signal })).map(({ plural }) => plural),
    )
    const end = new AbortController()
    const registry = createCacheRegistry({ client: this.client, clock, random, logger })
    const kinds = kindsOf(names.group, version)
    const followed: { readonly cache: Cache<KubeObject>; readonly key: string }[] = []
    const follow = <T extends KubeObject>(type: ResourceType<T>, transform: (object: T) => T): Caches<T> =>
      served.has(type.plural)
        ? (namespaces ?? [undefined]).map((namespace) => {
            const cache = registry.cache(type, {
              transform,
              isOptional: 'ifRefused',
              ...(namespace !== undefined && { namespace }),
            })
            followed.push({ cache, key: heardKey(type, namespace) })
            return cache
          })
        : []
    const resources = Object.fromEntries(
      groupKinds.map((kind) => [kind, follow(typeIn(kinds, kind), trimmedResource)]),
    ) as Record<GroupKind, Caches<Scalable>>
    const machines = follow(kinds.machine, trimmedMachine)
    const clusters = follow(kinds.cluster, trimmedCluster)
    for (const cache of resources.MachineSet) cache.addIndex(byOwner, ownersOf)
    for (const cache of resources.MachinePool) {
      cache.addIndex(byId, ({ spec }) => spec?.providerIDList ?? [])
      cache.addIndex(byNormalizedId, ({ spec }) => (spec?.providerIDList ?? []).map(normalizedId))
    }
    for (const cache of machines) {
      cache.addIndex(byOwner, ownersOf)
      cache.addIndex(byId, ({ spec }) => present(spec?.providerID))
      cache.addIndex(byNormalizedId, ({ spec }) => present(spec?.providerID).map(normalizedId))
      cache.addIndex(byNode, ({ status }) => present(status?.nodeRef?.name))
    }
    registry.start(AbortSignal.any([signal, end.signal]))
    await registry.synced(signal)
    this.#open = { version, kinds, resources, machines, clusters, followed, close: () => end.abort() }
    this.#versionMs = clock.monotonic()
    for (const cache of [...Object.values(resources).flat(), ...machines])
      cache.onChange(() => {
        this.changes.notify(undefined)
      })
    this.#reportRefused(this.#refused())
    logger.info('the management cluster has been read', { server: this.server, version })
  }

  #refused(): Caches<KubeObject> {
    return this.#opened().followed.flatMap(({ cache }) => (cache.isRefused ? cache : []))
  }

  #reportRefused(caches: Caches<KubeObject>): void {
    for (const cache of caches) {
      const rule = this.#ruleOf(cache)
      if (this.#reported.has(rule)) continue
      this.#reported.add(rule)
      this.#options.logger.warn('the management cluster refuses to list a kind; it is left out', {
        server: this.server,
        missing: rule,
      })
    }
  }

  #ruleOf({ type }: Cache<KubeObject>): string {
    return `list and watch ${type.plural}.${type.group}`
  }

  /** The client, which notes when each collection was heard of. */
  #listened(client: WatchingKubeClient): WatchingKubeClient {
    const heard = (type: ResourceType, namespace: string | undefined) => {
      this.#heardMs.set(heardKey(type, namespace), this.#options.clock.monotonic())
    }
    const listing: WatchingKubeClient['listing'] = async (type, options, keep) => {
      const found = await client.listing(type, options, keep)
      heard(type, options.namespace)
      return found
    }
    const watch: WatchingKubeClient['watch'] = async (type, options) => {
      const batches = await client.watch(type, options)
      heard(type, options.namespace)
      return (async function* heardOf() {
        for await (const batch of batches) {
          heard(type, options.namespace)
          yield batch
        }
      })()
    }
    return decorated<WatchingKubeClient, WatchingKubeClient>(client, { listing, watch })
  }
}

function heardKey({ version, plural }: ResourceType, namespace = ''): string {
  return `${version}/${namespace}/${plural}`
}

/** The version of Cluster API's group to use. */
type VersionFound =
  | { readonly kind: 'served'; readonly version: ServedVersion }
  /** Both are clauses without a full stop. */
  | { readonly kind: 'missing'; readonly problem: string; readonly fix: string }

/**
 * The version to use of those that a hub serves.
 * @param wanted `CAPI_VERSION`; undefined = the preferred supported one.
 */
export function servedVersionOf(
  { server, names }: { readonly server: string; readonly names: Pick<ClusterApiNames, 'group'> },
  served: readonly string[],
  wanted: ServedVersion | undefined,
): VersionFound {
  const version =
    wanted === undefined ? served.find(isSupported) : served.includes(wanted) ? wanted : undefined
  if (version !== undefined) return { kind: 'served', version }
  const offer = served.length === 0 ? 'nothing of that group' : served.join(' and ')
  return {
    kind: 'missing',
    problem: `the management cluster ${server} serves ${offer}, not ${names.group}/${wanted ?? servedVersions.join(' or ')}`,
    fix: 'install Cluster API there, or correct CAPI_GROUP and CAPI_VERSION',
  }
}

function isSupported(version: string): version is ServedVersion {
  return servedVersions.some((each) => each === version)
}

/** The type of a kind of groups. */
export function typeIn(kinds: HubKinds, kind: GroupKind): ResourceType<Scalable> {
  const { machineDeployment, machineSet, machinePool } = kinds
  return { MachineDeployment: machineDeployment, MachineSet: machineSet, MachinePool: machinePool }[kind]
}

function first<T, R>(values: readonly T[], read: (value: T) => R | undefined): R | undefined {
  for (const value of values) {
    const found = read(value)
    if (found !== undefined) return found
  }
  return undefined
}

function present(text: string | undefined): readonly string[] {
  return text === undefined || text === '' ? [] : [text]
}

function ownerText(namespace: string, kind: string, name: string): string {
  return `${kind} ${hubText({ namespace, name })}`
}

function labelText(namespace: string, deployment: string): string {
  return ownerText(namespace, 'label', deployment)
}

/** Index values of an object: its owners, and the MachineDeployment in its label. */
function ownersOf({ metadata }: KubeObject): readonly string[] {
  const { namespace = '', ownerReferences = [], labels } = metadata
  const deployment = labels?.[fixedNames.deploymentName]
  return [
    ...ownerReferences.map(({ kind, name }) => ownerText(namespace, kind, name)),
    ...(deployment === undefined ? [] : [labelText(namespace, deployment)]),
  ]
}

/** The owner of a kind. */
export function ownerName({ metadata }: KubeObject, kind: string): string | undefined {
  return metadata.ownerReferences?.find((owner) => owner.kind === kind)?.name
}

function trimmedResource(object: Scalable): Scalable {
  const managers = managersOfReplicas(object)
  const { managedFields: _, ...metadata } = object.metadata
  const { apiVersion, kind, spec, status } = object
  return {
    apiVersion,
    kind,
    metadata: { ...metadata, ...(managers !== undefined && { managedFields: managers }) },
    ...(spec !== undefined && { spec }),
    ...(status?.replicas !== undefined && { status: { replicas: status.replicas } }),
  }
}

function trimmedMachine({ apiVersion, kind, metadata: whole, spec, status }: Machine): Machine {
  const { managedFields: _, ...metadata } = whole
  const { clusterName, providerID } = spec ?? {}
  const { nodeRef, phase, failureMessage, failureReason, deprecated } = status ?? {}
  return {
    apiVersion,
    kind,
    metadata,
    spec: {
      ...(clusterName !== undefined && { clusterName }),
      ...(providerID !== undefined && { providerID }),
    },
    status: {
      ...(nodeRef !== undefined && { nodeRef }),
      ...(phase !== undefined && { phase }),
      ...(failureMessage !== undefined && { failureMessage }),
      ...(failureReason !== undefined && { failureReason }),
      ...(deprecated !== undefined && { deprecated }),
    },
  }
}

function trimmedCluster({
  apiVersion,
  kind,
  metadata: { name, namespace, resourceVersion, uid },
  spec,
}: Cluster): Cluster {
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(uid !== undefined && { uid }),
    },
    spec: { paused: spec?.paused === true },
  }
}
