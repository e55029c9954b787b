import { apiVersionOf, type InstanceType, isRecord, type KubeObject, type ResourceType } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import type { JournalEntry, OperatorCore, PoolCatalogue } from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import type { Snapshot, SnapshotCatalogue, SnapshotCloud, SnapshotOrigin } from './snapshot.ts'

export interface SnapshotSource {
  readonly operator: Pick<
    OperatorCore,
    'caches' | 'decisions' | 'journal' | 'memory' | 'questions' | 'settings' | 'state'
  >
  readonly provider: CloudProvider
  readonly origin: SnapshotOrigin
  /** Name and version of this program. */
  readonly program: string
  readonly clock: Pick<Clock, 'now'>
  readonly slicing: Slicing
}

/** The catalogues of all NodePools. */
export interface TakenCatalogues {
  readonly catalogues: readonly SnapshotCatalogue[]
  /** Such as `EUR`; absent if prices have no unit. */
  readonly priceUnit?: string
}

/** Lists what NodePools can buy. */
export interface CatalogueSource {
  readonly operator: { questions(): Pick<ReturnType<OperatorCore['questions']>, 'catalogue'> }
  readonly provider: Pick<CloudProvider, 'currency'>
}

/** The current offerings, and which of them launches avoid. */
export async function takeCatalogues(
  { operator, provider }: CatalogueSource,
  signal: AbortSignal,
): Promise<TakenCatalogues> {
  const catalogues = sharedCatalogues(await operator.questions().catalogue(signal))
  const priceUnit = provider.currency?.()
  return { catalogues, ...(priceUnit !== undefined && { priceUnit }) }
}

/**
 * Takes a snapshot; the operator's caches must have synced. All of it is from one moment, except catalogues and
 * node decisions.
 */
export async function takeSnapshot(source: SnapshotSource, signal: AbortSignal): Promise<Snapshot> {
  const { operator, provider, origin, program, clock, slicing } = source
  const catalogues = sharedCatalogues(await operator.questions().catalogue(signal))
  const nodeDecisions = await operator.decisions()
  // Objects are immutable, so the list is from one moment, however long trimming takes.
  const memory = operator.memory()
  const takenAtMs = clock.now()
  const journaled = operator.journal.entries()
  const objects = await inSlices(objectsOf(operator), slicing)
  const journal = await inSlices(listed(journaled), slicing)
  return {
    takenAtMs,
    program,
    origin,
    cloud: cloudOf(provider),
    settings: operator.settings,
    objects: [...objects, ...memory.unseenClaims],
    catalogues,
    memory,
    nodeDecisions,
    journal,
  }
}

function cloudOf(provider: CloudProvider): SnapshotCloud {
  const priceUnit = provider.currency?.()
  const {
    name,
    nodeClasses,
    wellKnownLabels,
    repairPolicies,
    restrictedLabels,
    restrictedDomains,
    labelAliases,
    unsupportedProvisioners,
    unsupportedTopologyKeys,
    reservationLabel,
    defaultTerminationGracePeriodMs,
  } = provider
  return {
    name,
    nodeClasses,
    wellKnownLabels,
    repairPolicies,
    ...(restrictedLabels && { restrictedLabels }),
    ...(restrictedDomains && { restrictedDomains }),
    ...(labelAliases && { labelAliases }),
    ...(unsupportedProvisioners && { unsupportedProvisioners }),
    ...(unsupportedTopologyKeys && { unsupportedTopologyKeys }),
    ...(reservationLabel !== undefined && { reservationLabel }),
    ...(defaultTerminationGracePeriodMs !== undefined && { defaultTerminationGracePeriodMs }),
    ...(priceUnit !== undefined && { priceUnit }),
  }
}

/** NodePools with equal offerings share one list. */
export function sharedCatalogues(pools: readonly PoolCatalogue[]): readonly SnapshotCatalogue[] {
  const lists = new Map<string, SnapshotCatalogue & { readonly nodePools: string[] }>()
  const texts = new WeakMap<readonly InstanceType[], string>()
  // Compares lists as text only if there are several.
  const isOne = new Set(pools.map((each) => each.instanceTypes)).size === 1
  for (const { nodePool, instanceTypes, problem, defaults, kubeletVersion } of pools) {
    const text =
      instanceTypes === undefined || isOne ? '' : (texts.get(instanceTypes) ?? JSON.stringify(instanceTypes))
    if (instanceTypes !== undefined && !isOne) texts.set(instanceTypes, text)
    const key = JSON.stringify([text, problem, defaults, kubeletVersion])
    const known = lists.get(key)
    if (known !== undefined) known.nodePools.push(nodePool.metadata.name)
    else
      lists.set(key, {
        nodePools: [nodePool.metadata.name],
        instanceTypes,
        ...(problem !== undefined && { problem }),
        ...(defaults && { defaults }),
        ...(kubeletVersion !== undefined && { kubeletVersion }),
      })
  }
  return [...lists.values()]
}

type Listed = Pick<Cache<KubeObject>, 'list' | 'type'>

/** Typed, so that a member that is not a cache does not compile. */
function ofEach(caches: Readonly<Record<string, Listed | undefined>>): readonly Listed[] {
  return Object.values(caches).filter((each) => each !== undefined)
}

/** Lists all objects in the first step, then trims them in the following steps. */
function* objectsOf({
  caches,
  state,
}: Pick<OperatorCore, 'caches' | 'state'>): Generator<undefined, KubeObject[], undefined> {
  const { applications, buffers, groupKinds: _, nodeClasses, pods, ...others } = caches
  const all: readonly Listed[] = [
    ...ofEach(others),
    ...nodeClasses,
    ...ofEach({ ...applications }),
    ...ofEach({ ...buffers }),
    ...state.podGroups.caches,
    ...ofEach({ ...state.requests.caches }),
  ]
  // Buffers and requests may reference the same templates.
  const lists = [
    ...new Map(all.map((cache) => [apiVersionOf(cache.type) + cache.type.kind, cache])).values(),
  ].map((cache) => ({ type: typeOf(cache.type), objects: cache.list() }))
  const podList = pods.list()
  const trimmed: KubeObject[] = []
  for (const { type, objects } of lists)
    for (const object of objects) {
      trimmed.push({ ...(isOfKubernetes(type) ? withoutForeignAnnotations(object) : object), ...type })
      yield
    }
  for (const pod of podList) {
    trimmed.push({ ...withoutForeignAnnotations(pod), ...typeOf(pods.type) })
    yield
  }
  return trimmed
}

/** Yields, as a journal may have many entries and each has to be parsed. */
function* listed(entries: Iterable<JournalEntry>): Generator<undefined, JournalEntry[], undefined> {
  const list: JournalEntry[] = []
  for (const entry of entries) {
    list.push(entry)
    yield
  }
  return list
}

function typeOf(type: ResourceType): Pick<KubeObject, 'apiVersion' | 'kind'> {
  return { apiVersion: apiVersionOf(type), kind: type.kind }
}

/** Objects of clouds and of Karpenter have annotations of their own that decisions read. */
function isOfKubernetes({ apiVersion }: Pick<KubeObject, 'apiVersion'>): boolean {
  return /^(v1|(apps|policy|storage\.k8s\.io)\/.*)$/.test(apiVersion)
}

/** Annotations that decisions or explanations read. Others may contain anything. */
const readAnnotation = /^([a-z-]+\.)*(karpenter\.sh|tenon\.sh|kubernetes\.io|autoscaling\.x-k8s\.io)\//
/** Annotations of pods that name a PodGroup of Volcano. */
export const groupAnnotation = /^scheduling\.(k8s\.io|volcano\.sh)\/group-name$/

function withoutForeignAnnotations<T extends KubeObject>(object: T): T {
  const { annotations } = object.metadata
  if (!isRecord(annotations)) return object
  const kept = Object.entries(annotations).filter(
    ([key]) =>
      groupAnnotation.test(key) ||
      (readAnnotation.test(key) && key !== 'kubectl.kubernetes.io/last-applied-configuration'),
  )
  return { ...object, metadata: { ...object.metadata, annotations: Object.fromEntries(kept) } }
}
