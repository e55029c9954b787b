import {
  ConditionSet,
  conditionOf,
  formatResources,
  type InstanceType,
  karpenterKinds,
  type NewCondition,
  type NodePool,
  parseResources,
} from '@tenon/api'
import { done, type EventRecorder, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import type { CapacityLearning } from '../cloud/provider-layers.ts'
import { type ControllerSpec, type Enqueue, enqueueChanged } from '../controller.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { nodePoolConditions } from '../state/conditions.ts'
import type { Correction, LearnedCapacity } from '../state/nodes/learned-capacity.ts'
import { type UselessNode, uselessText } from '../state/nodes/node-evidence.ts'
import { isUnreadable } from '../state/readable.ts'
import {
  capacityAnnotation,
  isCurrent,
  storedNodes,
  storedType,
  type StoredType,
  storedTypes,
  uselessAnnotation,
} from './learned-annotations.ts'

interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly learning: CapacityLearning
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

const conditionType = 'LaunchesServePods'
/** What was learned expires without an event. */
const periodMs = 5 * 60_000
/** Bounds the annotations to about 50 kB. */
const most = 100
/** Many nodes may join at once. */
const pauseMs = 1000

/**
 * `nodepool.learning`: reports what the nodes of a pool taught, and stores it for the next process: which instance types are
 * smaller than their catalogue says, and which nodes did not serve the pods they were launched for (reports.md 1).
 */
export class NodePoolLearning implements ControllerSpec {
  readonly name = 'nodepool.learning'
  readonly concurrency = { least: 10, most: 1000 }
  readonly #deps: Dependencies
  readonly #restored = new Set<string>()
  /** Types that were reported, by NodePool; the cache may not show the annotation yet. */
  readonly #reported = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, state, learning } = this.#deps
    // Before the first decision.
    for (const pool of caches.nodePools.list()) this.#restore(pool)
    enqueueChanged(caches.nodePools, enqueue)
    state.evidence.changes.add(enqueue)
    learning.capacity.changes.add(() => {
      for (const { metadata } of caches.nodePools.list()) enqueue(metadata.name, pauseMs)
    })
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { learning } = this.#deps
    const pool = this.#deps.state.managedPool(name)
    if (pool === undefined || isUnreadable(pool)) return done
    this.#restore(pool)
    const isStored = pool.metadata.annotations?.[capacityAnnotation] !== undefined
    const types = isStored || learning.capacity.knowsInstances ? await this.#types(pool, signal) : undefined
    const stored = storedTypes(pool.metadata.annotations?.[capacityAnnotation])
    const kept = new Set(stored.map(({ type }) => type))
    const found = types && learning.capacity.lasting(pool, types, kept)
    if (found !== undefined) await this.#storeTypes(pool, stored, found.corrections)
    try {
      await this.#storeUselessNodes(pool)
    } catch (error) {
      // The pool has changed, perhaps because its annotation was just written.
      if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
      if (!isKubeError(error, 'notFound')) throw error
    }
    return { kind: 'after', delayMs: found?.recheckMs ?? periodMs }
  }

  /** Restores once what the process before this one knew. */
  #restore(pool: NodePool): void {
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
      // Decisions report it, and nothing is forgotten.
      if (!isProviderError(error)) throw error
      return undefined
    }
  }

  async #storeTypes(
    pool: NodePool,
    before: readonly StoredType[],
    corrections: readonly Correction[],
  ): Promise<void> {
    const { learning } = this.#deps
    const settings = learning.capacity.settingsOf(pool.spec.template.spec.nodeClassRef)
    const now = corrections.slice(0, most).map((each) => storedType(each, settings))
    if (!isCurrent(before, now)) await this.#annotate(pool, capacityAnnotation, now)
    const reported = new Set(before.map(({ type }) => type))
    for (const correction of corrections) {
      const key = `${pool.metadata.uid ?? ''}/${correction.type.name}`
      if (reported.has(correction.type.name) || this.#reported.has(key)) continue
      this.#reported.add(key)
      this.#reportSmaller(pool, correction)
    }
  }

  async #storeUselessNodes(pool: NodePool): Promise<void> {
    const { evidence } = this.#deps.state
    const { name } = pool.metadata
    const all = evidence.all().filter(({ nodePool }) => nodePool === name)
    const kept = all.toSorted((a, b) => b.atMs - a.atMs).slice(0, most)
    const text = kept.length === 0 ? undefined : JSON.stringify(kept)
    if (text !== pool.metadata.annotations?.[uselessAnnotation])
      await this.#annotate(pool, uselessAnnotation, kept)
    await this.#storeCondition(
      pool,
      kept.filter(({ workload }) => evidence.isAwaited(workload)),
    )
  }

  /** @param useless nodes that pods are still pending for. @throws KubeError if the pool has changed, or is gone. */
  async #storeCondition(pool: NodePool, useless: readonly UselessNode[]): Promise<void> {
    const { client, clock } = this.#deps
    const { name, resourceVersion = '' } = pool.metadata
    const stored = conditionOf(pool, conditionType)
    if (useless.length === 0 && stored === undefined) return
    const message = useless
      .slice(0, 3)
      .map((each) => uselessText(each))
      .join('; ')
      .slice(0, 2000)
    const wanted: NewCondition =
      useless.length === 0
        ? { type: conditionType, status: 'True' }
        : { type: conditionType, status: 'False', reason: 'NodeRefused', message }
    const isSame = wanted.status === stored?.status && (wanted.message ?? '') === (stored.message ?? '')
    if (isSame) return
    const { conditions } = ConditionSet.of(pool, nodePoolConditions).set(wanted, clock.now())
    await client.patch(
      karpenterKinds.nodePool,
      { name },
      { status: { conditions } },
      { subresource: 'status', resourceVersion },
    )
  }

  async #annotate(pool: NodePool, key: string, list: readonly object[]): Promise<void> {
    const value = list.length === 0 ? null : JSON.stringify(list)
    const patch = { metadata: { annotations: { [key]: value } } }
    try {
      await this.#deps.client.patch(karpenterKinds.nodePool, { name: pool.metadata.name }, patch)
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }

  #reportSmaller(pool: NodePool, correction: Correction): void {
    const { events, logger } = this.#deps
    const type = correction.type.name
    const found = shortfallText(correction)
    logger.warn('instance type is smaller than its catalogue says', {
      NodePool: { name: pool.metadata.name },
      'instance-type': type,
      found,
    })
    events.record({
      object: pool,
      type: 'Warning',
      reason: 'InstanceTypeSmaller',
      message: `Nodes of instance type ${type} have ${found}; decisions use this from now on`,
      dedupe: [pool.metadata.uid ?? '', type],
    })
  }
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

/** For `/debug/offerings`. */
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
