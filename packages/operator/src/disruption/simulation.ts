/** Simulates the removal of nodes: where their pods go, and which replacements they need (disruption.md 11). */
import { type Clock, perObject } from '@tenon/runtime'
import { isConditionTrue, labels, type NodePool } from '@tenon/api'
import type { CandidateInput, DisruptionQuestion, RemovalResult } from '@tenon/engine'
import type { GatheredInput, SchedulingInputs } from '../provisioning/input/scheduling-input.ts'
import { consolidateAfterMs } from '../state/nodepools/managed-pool.ts'
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

/** The input of simulations: the cluster, with the pods of candidates among those to place. */
export interface PreparedRemoval {
  readonly input: GatheredInput
  /** Candidates by name, without those whose pods cannot be read. */
  readonly candidates: ReadonlyMap<string, Candidate>
  /** The same for the engine. All questions pass this very list, so that they share work. */
  readonly described: readonly CandidateInput[]
}

export class RemovalSimulation {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * @param sparesBusyNodes whether nodes under `consolidateAfter` receive no pods, as consolidation wants it.
   * @returns undefined if no NodePool can launch anything, so that replacements are unknown.
   */
  async prepare(
    candidates: readonly Candidate[],
    sparesBusyNodes: boolean,
    signal: AbortSignal,
  ): Promise<PreparedRemoval | undefined> {
    const removable = candidates.map(({ name, movable: pods }) => ({ name, pods }))
    const busy = sparesBusyNodes ? busyNodes(this.#deps) : new Set<string>()
    const input = await this.#deps.inputs.forRemoval(removable, busy, signal)
    if (!input.hasEligiblePool) return undefined
    const unjudged = new Set(input.refused.map(({ pod }) => pod.metadata.uid ?? ''))
    const judged = candidates.filter(
      ({ name, movable }) =>
        input.stateNodes.has(name) && !movable.some(({ metadata }) => unjudged.has(metadata.uid ?? '')),
    )
    // Without the nodes whose pods cannot be read.
    if (judged.length < candidates.length) return await this.prepare(judged, sparesBusyNodes, signal)
    return {
      input,
      candidates: new Map(judged.map((candidate) => [candidate.name, candidate])),
      described: judged.map((candidate) => describedTo(this.#deps, candidate)),
    }
  }

  /**
   * Simulates the removal of all these nodes.
   * @param plan where pods should go if they can.
   * @returns undefined if there was no time.
   */
  async without(
    prepared: PreparedRemoval,
    candidates: readonly Candidate[],
    signal: AbortSignal,
    plan: RemovalResult['placements'] = [],
  ): Promise<RemovalResult | undefined> {
    const { decider, settings } = this.#deps
    const question: DisruptionQuestion = {
      kind: 'remove',
      candidates: prepared.described,
      gone: candidates.map(({ name }) => name),
    }
    // The same object for all questions on this input: the engine reads it once.
    const input = plan.length === 0 ? prepared.input : withPlan(prepared.input, plan)
    const result = await decider.examine(input, question, { deadlineMs: settings.solveTimeoutMs, signal })
    return result?.kind === 'removal' && result.isComplete ? result : undefined
  }
}

function withPlan(input: GatheredInput, plan: RemovalResult['placements']): GatheredInput {
  const planned = new Map(input.planned)
  for (const { pod, node } of plan) planned.set(pod.metadata.uid ?? '', node)
  return { ...input, planned }
}

export function destinationsOf(
  { input }: PreparedRemoval,
  placements: RemovalResult['placements'],
): readonly StateNode[] {
  const names = new Set(placements.map(({ node }) => node))
  return [...names].flatMap((name) => input.stateNodes.get(name) ?? [])
}

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

/** NodePool and last pod event of an instance, which decide whether it is busy; null for those that never are. */
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

/** Names of nodes to which a pod came, or from which one left, less than `consolidateAfter` ago. */
function busyNodes({ state, caches, clock }: Dependencies): ReadonlySet<string> {
  const now = clock.now()
  /** `consolidateAfter` in milliseconds, by NodePool. */
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
