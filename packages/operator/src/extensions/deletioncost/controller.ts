/**
 * `pod.deletioncost`: lets ReplicaSets that are scaled in delete the pods of those nodes first that consolidation would
 * remove next (wanted.md 7). All it knows is in annotations of pods, so it is the same after a restart.
 */
import { controllerOf, kinds, labels, type Pod } from '@tenon/api'
import { savingsOrder } from '@tenon/engine/consolidation'
import { isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, inSlices, type Logger, rfc3339, type Slicing } from '@tenon/runtime'
import type { SingletonSpec } from '../../controller.ts'
import type { Candidate, CandidateFinder } from '../../disruption/candidates.ts'
import type { Catalogue, CatalogueReader } from '../../disruption/catalogue.ts'
import type { Obstacle } from '../../disruption/obstacles.ts'
import { inParallel } from '../../in-parallel.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { consolidateAfterMs } from '../../state/nodepools/managed-pool.ts'
import type { ObservedPools } from '../../state/nodepools/observed-pools.ts'
import { labelsOf, type StateNode } from '../../state/nodes/state-node.ts'
import { deletionCostAnnotation, isActive } from '../../state/pods/pods.ts'
import { deletionCosts } from './deletion-costs.ts'
import { hasForeignCost, ownCost, writtenAnnotation } from './own-cost.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'patch'>
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<ClusterState, 'decidable' | 'podsOnNodes' | 'stateNodes'>
  readonly candidates: Pick<CandidateFinder, 'described' | 'obstacles'>
  readonly catalogue: CatalogueReader
  readonly observed: Pick<ObservedPools, 'has'>
  readonly metrics: Pick<Metrics, 'podDeletionCosts'>
  readonly slicing: Slicing & { readonly clock: Clock }
  readonly logger: Logger
}

/** A cost that a pod is to have; undefined for none. */
interface Write {
  readonly pod: Pod
  readonly nodePool: string
  readonly cost: number | undefined
  readonly atMs: number
}

/** Pods of one ReplicaSet. */
interface Replicas {
  readonly pods: Pod[]
  /** Whether somebody else says which of its pods go first. */
  isOrdered: boolean
}

const planMs = 60_000
/** The costs of a ReplicaSet change at most this often. */
const replicaSetMs = 5 * 60_000
/** Further nodes are not next. */
const mostNodes = 500
const writesPerPass = 100
const writesAtOnce = 10
const passMs = 5_000
const podsPerStep = 500
const nodesPerStep = 16

export class PodDeletionCosts implements SingletonSpec {
  readonly name = 'pod.deletioncost'
  readonly #deps: Dependencies
  /** What is left to write; the next plan is made when there is nothing. */
  #writes: readonly Write[] = []
  /** When costs of a ReplicaSet were last planned, by its UID. Removed costs leave no annotation that says so. */
  #plannedMs = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    if (!this.#deps.state.decidable()) return { kind: 'after', delayMs: passMs }
    if (this.#writes.length === 0) this.#writes = await this.#plan(signal)
    // A NodePool may be observed since the plan was made.
    this.#writes = this.#writes.filter(({ nodePool }) => !this.#deps.observed.has(nodePool))
    const now = this.#writes.slice(0, writesPerPass)
    this.#writes = this.#writes.slice(writesPerPass)
    const failures = await inParallel(now, writesAtOnce, (write) => this.#write(write, signal))
    if (failures.length > 0)
      this.#deps.logger.warn('cannot write what deleting pods costs', {
        pods: failures.length,
        error: failures[0],
      })
    // Perhaps a right is missing, or only the pods of one namespace are refused: others follow, slowly.
    const isRefused = failures.length > 0 && failures.length === now.length
    return { kind: 'after', delayMs: this.#writes.length > 0 && !isRefused ? passMs : planMs }
  }

  async #plan(signal: AbortSignal): Promise<readonly Write[]> {
    const { catalogue, observed, slicing, state } = this.#deps
    const stateNodes = state
      .stateNodes()
      .filter((each) => each.claim && each.node && !observed.has(labelsOf(each)[labels.nodePool] ?? ''))
    if (stateNodes.length === 0) return []
    await inSlices(state.podsOnNodes.reading(state.stateNodes()), slicing)
    const listed = await catalogue.read(signal)
    const found = await inSlices(this.#consolidated(stateNodes, listed), slicing)
    const leaving = found.toSorted((a, b) => savingsOrder(a, b) || (a.name < b.name ? -1 : 1))
    const going = stateNodes.filter(({ isMarkedForDeletion }) => isMarkedForDeletion)
    const namesOf = (nodes: readonly StateNode[]) => nodes.flatMap(({ node }) => node?.metadata.name ?? [])
    const order = namesOf([...going, ...leaving])
    // Pods elsewhere belong to other controllers, or to nobody.
    const poolOf = (stateNode: StateNode) => labelsOf(stateNode)[labels.nodePool] ?? ''
    const managed = new Map(
      stateNodes.map((each): [string, string] => [each.node?.metadata.name ?? '', poolOf(each)]),
    )
    return inSlices(this.#planned(order.slice(0, mostNodes), managed), slicing)
  }

  /** Nodes that consolidation may remove, now or once what holds them ends by itself. */
  *#consolidated(
    stateNodes: readonly StateNode[],
    listed: Catalogue,
  ): Generator<undefined, readonly Candidate[], undefined> {
    const { candidates } = this.#deps
    const found: Candidate[] = []
    for (const [at, stateNode] of stateNodes.entries()) {
      if (at % nodesPerStep === 0) yield
      const candidate = stateNode.isMarkedForDeletion ? undefined : candidates.described(stateNode, listed)
      if (candidate === undefined) continue
      const { pool } = candidate
      if (pool.spec.replicas !== undefined || !Number.isFinite(consolidateAfterMs(pool))) continue
      if (![...candidates.obstacles(stateNode, listed)].some(isLasting)) found.push(candidate)
    }
    return found
  }

  *#planned(
    order: readonly string[],
    managed: ReadonlyMap<string, string>,
  ): Generator<undefined, readonly Write[], undefined> {
    const nowMs = this.#deps.slicing.clock.now()
    const places = new Map(order.map((node, place) => [node, place]))
    const writes: Write[] = []
    const plannedMs = new Map<string, number>()
    for (const [uid, replicas] of yield* this.#replicaSets(managed)) {
      yield
      const lastMs = Math.max(this.#plannedMs.get(uid) ?? 0, lastWriteMs(replicas, nowMs))
      plannedMs.set(uid, lastMs)
      if (nowMs - lastMs < replicaSetMs) continue
      const own = writesFor(replicas, places, nowMs)
      if (own.length === 0) continue
      plannedMs.set(uid, nowMs)
      for (const write of own)
        writes.push({ ...write, nodePool: managed.get(write.pod.spec.nodeName ?? '') ?? '' })
    }
    this.#plannedMs = plannedMs
    return writes
  }

  *#replicaSets(
    managed: ReadonlyMap<string, string>,
  ): Generator<undefined, ReadonlyMap<string, Replicas>, undefined> {
    const sets = new Map<string, Replicas>()
    for (const [at, pod] of this.#deps.caches.pods.list().entries()) {
      if (at % podsPerStep === 0) yield
      const owner = controllerOf(pod)
      if (owner?.kind !== 'ReplicaSet' || !isActive(pod)) continue
      const replicas = sets.get(owner.uid) ?? { pods: [], isOrdered: false }
      sets.set(owner.uid, replicas)
      if (hasForeignCost(pod)) replicas.isOrdered = true
      else if (managed.has(pod.spec.nodeName ?? '')) replicas.pods.push(pod)
    }
    return sets
  }

  async #write({ pod, cost, atMs }: Write, signal: AbortSignal): Promise<void> {
    const { caches, client, metrics } = this.#deps
    const { name, namespace = '', uid } = pod.metadata
    const now = caches.pods.get({ namespace, name })
    // It may have changed since the plan was made.
    if (now?.metadata.uid !== uid || now === undefined || !isActive(now) || hasForeignCost(now)) return
    const annotations = {
      [deletionCostAnnotation]: cost === undefined ? null : `${cost}`,
      [writtenAnnotation]: cost === undefined ? null : `${cost} ${rfc3339(atMs)}`,
    }
    const { resourceVersion = '' } = now.metadata
    try {
      await client.patch(
        kinds.pod,
        { namespace, name },
        { metadata: { annotations } },
        {
          resourceVersion,
          signal,
          isAnswerUnread: true,
        },
      )
      metrics.podDeletionCosts.inc({ change: cost === undefined ? 'removed' : 'set' })
    } catch (error) {
      if (isKubeError(error, 'conflict') || isKubeError(error, 'notFound')) return
      throw error
    }
  }
}

/** What ends by itself soon must not change the order, and change it back. */
function isLasting({ by, stuck }: Obstacle): boolean {
  return by === 'annotation' || by === 'pod' || stuck !== undefined
}

/** When costs of these pods were last written, as their annotations say; 0 if never. */
function lastWriteMs({ pods }: Replicas, nowMs: number): number {
  const times = pods.map((pod) => ownCost(pod)?.atMs ?? 0)
  return times.reduce((last, atMs) => (atMs <= nowMs ? Math.max(last, atMs) : last), 0)
}

/** @param places the place of each node that is to go, in order. */
function writesFor(
  { isOrdered, pods }: Replicas,
  places: ReadonlyMap<string, number>,
  atMs: number,
): readonly Omit<Write, 'nodePool'>[] {
  const present = new Map<string, number>()
  for (const pod of pods) {
    const own = ownCost(pod)
    if (own !== undefined) present.set(pod.spec.nodeName ?? '', own.cost)
  }
  const nodes = new Set(pods.map(({ spec }) => spec.nodeName ?? ''))
  // On one node there is nothing to order.
  const leaving = isOrdered || nodes.size < 2 ? [] : [...nodes].filter((node) => places.has(node))
  const order = leaving.toSorted((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0))
  const costs = deletionCosts(order, present)
  return pods.flatMap((pod) => {
    const cost = costs.get(pod.spec.nodeName ?? '')
    return ownCost(pod)?.cost === cost ? [] : [{ pod, cost, atMs }]
  })
}
