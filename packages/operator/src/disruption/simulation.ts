/** Asks the engine what becomes of the pods without some nodes (disruption.md 11). */
import { type Clock, perObject } from '@tenon/runtime'
import { isConditionTrue, labels, type NodePool } from '@tenon/api'
import type { CandidateInput, DisruptionQuestion, RemovalResult } from '@tenon/engine'
import type { GatheredInput, SchedulingInputs } from '../provisioning/input/scheduling-input.ts'
import { consolidateAfterMs } from '../state/nodes/consolidate-after.ts'
import { capacityOf, labelsOf, type StateNode, transitionMs } from '../state/nodes/state-node.ts'
import type { Candidate } from './candidates.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { SchedulingDecider } from '../decide/decider.ts'
import type { Settings } from '../settings.ts'

interface Dependencies {
  readonly inputs: SchedulingInputs
  readonly decider: Pick<SchedulingDecider, 'examine'>
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'parsed' | 'stateNodes'>
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'solveTimeoutMs'>
}

/** The cluster as it is, with the pods of candidates that may have to move. */
export interface RemovalGround {
  readonly input: GatheredInput
  /** Candidates that questions can be about; one whose pods cannot be judged is none. */
  readonly candidates: ReadonlyMap<string, Candidate>
  /** The same for the engine; one list for all questions on this ground, which lets them share work. */
  readonly described: readonly CandidateInput[]
}

/** Asks what becomes of pods without the nodes they are on. */
export class RemovalSimulation {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * @param sparesBusyNodes whether nodes under `consolidateAfter` are not to receive pods: for consolidation.
   * @returns undefined when no NodePool can launch anything: then nothing can be said about replacements.
   */
  ground(
    candidates: readonly Candidate[],
    sparesBusyNodes: boolean,
    signal: AbortSignal,
  ): Promise<RemovalGround | undefined> {
    return removalGround(this.#deps, candidates, sparesBusyNodes, signal)
  }

  /**
   * What becomes of the pods without all of these nodes.
   * @param plan where pods are to go if they can; they find other places if not.
   * @returns undefined when there was no time.
   */
  without(
    ground: RemovalGround,
    candidates: readonly Candidate[],
    signal: AbortSignal,
    plan: RemovalResult['placements'] = [],
  ): Promise<RemovalResult | undefined> {
    return withoutNodes(this.#deps, ground, candidates, signal, plan)
  }
}

async function removalGround(
  deps: Dependencies,
  candidates: readonly Candidate[],
  sparesBusyNodes: boolean,
  signal: AbortSignal,
): Promise<RemovalGround | undefined> {
  const removable = candidates.map(({ name, movable: pods }) => ({ name, pods }))
  const busy = sparesBusyNodes ? busyNodes(deps) : new Set<string>()
  const input = await deps.inputs.forRemoval(removable, busy, signal)
  if (!input.hasEligiblePool) return undefined
  const unjudged = new Set(input.refused.map(({ pod }) => pod.metadata.uid ?? ''))
  const judged = candidates.filter(
    ({ name, movable }) =>
      input.stateNodes.has(name) && !movable.some(({ metadata }) => unjudged.has(metadata.uid ?? '')),
  )
  // Pods of nodes that nothing is asked about stay where they are.
  if (judged.length < candidates.length) return await removalGround(deps, judged, sparesBusyNodes, signal)
  return {
    input,
    candidates: new Map(judged.map((candidate) => [candidate.name, candidate])),
    described: judged.map((candidate) => describedTo(deps, candidate)),
  }
}

async function withoutNodes(
  deps: Dependencies,
  ground: RemovalGround,
  candidates: readonly Candidate[],
  signal: AbortSignal,
  plan: RemovalResult['placements'],
): Promise<RemovalResult | undefined> {
  const question: DisruptionQuestion = {
    kind: 'remove',
    candidates: ground.described,
    gone: candidates.map(({ name }) => name),
  }
  // Questions on the same ground are about the same input, which need not be read again.
  const input = plan.length === 0 ? ground.input : withPlan(ground.input, plan)
  const { solveTimeoutMs } = deps.settings
  const result = await deps.decider.examine(input, question, { deadlineMs: solveTimeoutMs, signal })
  return result?.kind === 'removal' && result.isComplete ? result : undefined
}

function withPlan(input: GatheredInput, plan: RemovalResult['placements']): GatheredInput {
  const planned = new Map(input.planned)
  for (const { pod, node } of plan) planned.set(pod.metadata.uid ?? '', node)
  return { ...input, planned }
}

/** Nodes that take pods. */
export function destinationsOf(
  { input }: RemovalGround,
  placements: RemovalResult['placements'],
): readonly StateNode[] {
  const names = new Set(placements.map(({ node }) => node))
  return [...names].flatMap((name) => input.stateNodes.get(name) ?? [])
}

/** What the engine is told of candidates. */
const inputs = new WeakMap<Candidate, CandidateInput>()

function describedTo(deps: Dependencies, candidate: Candidate): CandidateInput {
  let known = inputs.get(candidate)
  if (known === undefined) {
    known = describe(deps, candidate)
    inputs.set(candidate, known)
  }
  return known
}

function describe({ state }: Dependencies, candidate: Candidate): CandidateInput {
  const { name, pool, pricePerHour, disruptionCost, waitsForBusyNodes, movable } = candidate
  const tags = labelsOf(candidate)
  const policy = pool.spec.disruption?.consolidationPolicy
  return {
    node: name,
    nodePool: pool.metadata.name,
    policy: policy === 'Balanced' ? policy : 'WhenEmptyOrUnderutilized',
    capacityType: tags[labels.capacityType] ?? '',
    instanceType: tags[labels.instanceType] ?? '',
    pricePerHour,
    disruptionCost,
    waitsForBusyNodes,
    capacity: capacityOf(candidate, state.parsed),
    pods: movable.map(({ metadata }) => metadata.uid ?? ''),
  }
}

/** What tells of an instance whether it is busy; null of those that never are. */
const activityOf = perObject(
  (stateNode: StateNode): { readonly pool: string; readonly sinceMs: number } | null => {
    const { claim, isMarkedForDeletion } = stateNode
    if (claim === undefined || isMarkedForDeletion || !isConditionTrue(claim, 'Initialized')) return null
    const { lastPodEventTime } = claim.status ?? {}
    const sinceMs =
      lastPodEventTime === undefined ? transitionMs(claim, 'Initialized') : Date.parse(lastPodEventTime)
    return { pool: labelsOf(stateNode)[labels.nodePool] ?? '', sinceMs: sinceMs ?? 0 }
  },
)

/** Names of the nodes on which something happened less than their NodePool's `consolidateAfter` ago. */
function busyNodes({ state, caches, clock }: Dependencies): ReadonlySet<string> {
  const now = clock.now()
  /** For how long nodes of a NodePool are busy, by its name. */
  const lasts = new Map(
    caches.nodePools
      .list()
      .filter(isAnyBusy)
      .map((pool) => [pool.metadata.name, consolidateAfterMs(pool)]),
  )
  const busy = new Set<string>()
  for (const stateNode of state.stateNodes()) {
    const activity = activityOf(stateNode)
    const afterMs = activity === null ? undefined : lasts.get(activity.pool)
    if (activity !== null && afterMs !== undefined && now - activity.sinceMs < afterMs)
      busy.add(stateNode.name)
  }
  return busy
}

/** Whether nodes of the NodePool may be busy. */
function isAnyBusy(pool: NodePool): boolean {
  const afterMs = consolidateAfterMs(pool)
  return (
    Number.isFinite(afterMs) &&
    afterMs > 0 &&
    pool.spec.replicas === undefined &&
    pool.metadata.deletionTimestamp === undefined &&
    isConditionTrue(pool, 'Ready')
  )
}
