/**
 * `nodepool.learning`: keeps with a NodePool what its nodes have taught, for the next process, and tells of it: which
 * instance types are smaller than they say, and which nodes were launched in vain (reports.md 1).
 */
import {
  formatResources,
  type InstanceType,
  isQuantity,
  type NodePool,
  ownValue,
  parseResources,
} from '@tenon/api'
import { done, isKubeError, type ReconcileResult } from '@tenon/kube'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import { rfc3339 } from '@tenon/runtime'
import { isUnreadable } from '../state/readable.ts'
import type { Correction, LearnedCapacity } from '../state/nodes/learned-capacity.ts'
import type { UselessNode } from '../state/nodes/node-evidence.ts'
import type { LearningReport } from './learning-report.ts'
import type { PoolMemory } from './pool-memory.ts'
import { managedPool } from '../state/nodepools/managed-pool.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { CapacityLearning } from '../cloud/corrected-provider.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'evidence'>
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
  readonly learning: CapacityLearning
  readonly memory: PoolMemory
  readonly report: LearningReport
}

/** On NodePools, for the next process. */
const capacityAnnotation = 'tenon.sh/learned-capacity'
export const uselessAnnotation = 'tenon.sh/launched-in-vain'
/** What is remembered ends without any event. */
const periodMs = 5 * 60_000
/** Bounds the annotations to some 50 kB. */
const most = 100

/** A type that is smaller than it says, as a NodePool carries it. Amounts are quantities. */
interface StoredType {
  readonly type: string
  readonly settings: string
  readonly image: string
  readonly launched: string
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  /** When it is forgotten; absent while there are such instances. */
  readonly until?: string
}

/** Nodes come by the dozen. */
const pauseMs = 1000

/** Reconciles what one NodePool remembers. */
export class NodePoolLearning implements ControllerSpec {
  readonly name = 'nodepool.learning'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  readonly #restored = new Set<string>()
  /** NodePools and types that were told of; the cache may not show yet what was written. */
  readonly #told = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, state, learning } = this.#deps
    // Before anything is decided.
    for (const pool of caches.nodePools.list()) this.restore(pool)
    enqueueChanged(caches.nodePools, enqueue)
    state.evidence.changes.add(enqueue)
    learning.capacity.changes.add(() => {
      for (const { metadata } of caches.nodePools.list()) enqueue(metadata.name, pauseMs)
    })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { learning } = this.#deps
    const pool = managedPool(this.#deps, name)
    if (pool === undefined || isUnreadable(pool)) return done
    this.restore(pool)
    const isStored = pool.metadata.annotations?.[capacityAnnotation] !== undefined
    const types = isStored || learning.capacity.knowsInstances ? await this.#types(pool, signal) : undefined
    const stored = storedTypes(pool.metadata.annotations?.[capacityAnnotation])
    const kept = new Set(stored.map(({ type }) => type))
    const found = types && learning.capacity.lasting(pool, types, kept)
    if (found !== undefined) await this.#remember(pool, stored, found.corrections)
    try {
      await this.#judge(pool)
    } catch (error) {
      // An annotation that was just written may have made the pool another one than the cache shows.
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      if (!isKubeError(error, 'notFound')) throw error
    }
    return { kind: 'after', delayMs: found?.recheckMs ?? periodMs }
  }

  /** Takes up what the process before this one knew, once. */
  restore(pool: NodePool): void {
    const { learning, state } = this.#deps
    const { uid = pool.metadata.name, annotations = {} } = pool.metadata
    if (this.#restored.has(uid)) return
    this.#restored.add(uid)
    const ref = pool.spec.template.spec.nodeClassRef
    for (const each of storedTypes(annotations[capacityAnnotation])) {
      const untilMs = Date.parse(each.until ?? '') || learning.capacity.memoryEndMs()
      learning.capacity.restore(ref, each.settings, each.type, {
        capacity: parseResources(each.capacity),
        allocatable: parseResources(each.allocatable),
        image: each.image,
        launchedMs: Date.parse(each.launched) || 0,
        untilMs,
      })
    }
    for (const each of storedNodes(annotations[uselessAnnotation])) state.evidence.restore(each)
  }

  async #types(pool: NodePool, signal: AbortSignal): Promise<readonly InstanceType[] | undefined> {
    try {
      return await this.#deps.learning.provider.getInstanceTypes(pool, signal)
    } catch (error) {
      // Decisions tell of it, and nothing is forgotten for it.
      if (!isProviderError(error)) throw error
      return undefined
    }
  }

  async #remember(
    pool: NodePool,
    before: readonly StoredType[],
    corrections: readonly Correction[],
  ): Promise<void> {
    const { learning, memory } = this.#deps
    const settings = learning.capacity.settingsOf(pool.spec.template.spec.nodeClassRef)
    const now = corrections.slice(0, most).map((each) => storedType(each, settings))
    if (!isCurrent(before, now)) await memory.annotate(pool, capacityAnnotation, now)
    const told = new Set(before.map(({ type }) => type))
    for (const correction of corrections) {
      const key = `${pool.metadata.uid ?? ''}/${correction.type.name}`
      if (told.has(correction.type.name) || this.#told.has(key)) continue
      this.#told.add(key)
      this.#deps.report.smaller(pool, correction.type.name, shortfallText(correction))
    }
  }

  async #judge(pool: NodePool): Promise<void> {
    const { memory, state } = this.#deps
    const { evidence } = state
    const { name } = pool.metadata
    const all = evidence.all().filter(({ nodePool }) => nodePool === name)
    const kept = all.toSorted((a, b) => b.atMs - a.atMs).slice(0, most)
    const text = kept.length === 0 ? undefined : JSON.stringify(kept)
    if (text !== pool.metadata.annotations?.[uselessAnnotation])
      await memory.annotate(pool, uselessAnnotation, kept)
    await memory.tell(
      pool,
      kept.filter((entry) => this.#counts(entry)),
    )
  }

  /** Whether pods still wait because of it. */
  #counts({ workload }: UselessNode): boolean {
    return this.#deps.state.evidence.isAwaited(workload)
  }
}

function storedType({ type, figures, shortfall, untilMs }: Correction, settings: string): StoredType {
  const founds = (amounts: Correction['shortfall']['capacity']) =>
    formatResources(Object.fromEntries(Object.entries(amounts).map(([name, { found }]) => [name, found])))
  return {
    type: type.name,
    settings,
    image: figures.image,
    launched: rfc3339(figures.launchedMs),
    capacity: founds(shortfall.capacity),
    allocatable: founds(shortfall.allocatable),
    ...(untilMs !== undefined && { until: rfc3339(untilMs) }),
  }
}

/** Whether what is stored will do: instances of a type differ by a little, which is not worth a write each. */
function isCurrent(before: readonly StoredType[], now: readonly StoredType[]): boolean {
  return (
    before.length === now.length &&
    now.every((each, i) => {
      const stored = before[i]
      return (
        stored?.type === each.type &&
        stored.settings === each.settings &&
        stored.image === each.image &&
        stored.until === each.until &&
        isClose(stored.capacity, each.capacity) &&
        isClose(stored.allocatable, each.allocatable)
      )
    })
  )
}

const tolerance = 0.002

function isClose(a: StoredType['capacity'], b: StoredType['capacity']): boolean {
  const [one, other] = [parseResources(a), parseResources(b)]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].every((name) => {
    const [x = 0, y = 0] = [ownValue(one, name), ownValue(other, name)]
    return Math.abs(x - y) <= tolerance * Math.max(x, y)
  })
}

/** `memory 3.8Gi instead of 4Gi (allocatable 3.4Gi instead of 3.6Gi)`. */
function shortfallText({ shortfall }: Pick<Correction, 'shortfall'>): string {
  const texts = (amounts: Correction['shortfall']['capacity']) =>
    Object.entries(amounts)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { said, found }]) => {
        const { [name]: less = '' } = formatResources({ [name]: found })
        const { [name]: more = '' } = formatResources({ [name]: said })
        return `${name} ${less} instead of ${more}`
      })
      .join(', ')
  const [capacity, allocatable] = [texts(shortfall.capacity), texts(shortfall.allocatable)]
  if (capacity === '') return `allocatable ${allocatable}`
  return allocatable === '' ? capacity : `${capacity} (allocatable ${allocatable})`
}

/** What an annotation says; nothing of what cannot be read, which anybody may have written. */
function storedTypes(text: string | undefined): readonly StoredType[] {
  return listIn(text).filter(isStoredType)
}

/** Nodes that proved useless, as the annotation of a NodePool names them. */
export function storedNodes(text: string | undefined): readonly UselessNode[] {
  return listIn(text).filter(isUselessNode)
}

function listIn(text: string | undefined): readonly unknown[] {
  if (text === undefined) return []
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? (value as readonly unknown[]) : []
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}

function isStoredType(value: unknown): value is StoredType {
  const { capacity, allocatable, ...rest } = fieldsOf(value)
  const texts = [rest['type'], rest['settings'], rest['image'], rest['launched']]
  return (
    texts.every((each) => typeof each === 'string') &&
    ['undefined', 'string'].includes(typeof rest['until']) &&
    areQuantities(capacity) &&
    areQuantities(allocatable)
  )
}

function isUselessNode(value: unknown): value is UselessNode {
  const fields = fieldsOf(value)
  const texts = ['workload', 'nodePool', 'node', 'claim', 'pod', 'words', 'ground']
  const numbers = ['failures', 'atMs', 'untilMs']
  return (
    texts.every((name) => typeof ownValue(fields, name) === 'string') &&
    numbers.every((name) => Number.isFinite(ownValue(fields, name))) &&
    (fields['cause'] === 'unused' || fields['cause'] === 'refused')
  )
}

function areQuantities(value: unknown): boolean {
  return Object.values(fieldsOf(value)).every((each) => typeof each === 'string' && isQuantity(each))
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** Where corrections are shown to people. */
export function correctionsShown(
  capacity: LearnedCapacity,
  pool: NodePool,
  types: readonly InstanceType[],
): readonly object[] {
  return capacity.corrections(pool, types).map((correction) => ({
    nodePool: pool.metadata.name,
    instanceType: correction.type.name,
    ...amountsShown(correction),
    ...(correction.figures.image !== '' && { image: correction.figures.image }),
    ...(correction.untilMs !== undefined && { forgottenAt: rfc3339(correction.untilMs) }),
  }))
}

function amountsShown({ shortfall }: Correction): object {
  const shown = (amounts: Correction['shortfall']['capacity']) => ({
    catalogue: formatResources(
      Object.fromEntries(Object.entries(amounts).map(([name, { said }]) => [name, said])),
    ),
    found: formatResources(
      Object.fromEntries(Object.entries(amounts).map(([name, { found }]) => [name, found])),
    ),
  })
  return { capacity: shown(shortfall.capacity), allocatable: shown(shortfall.allocatable) }
}
