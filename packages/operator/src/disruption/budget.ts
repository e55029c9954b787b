/** Disruption budgets of NodePools: how many nodes may be disrupted now, and how many are (disruption.md 6). */
import type { EventRecorder } from '@tenon/kube'
import {
  type DisruptionReason,
  isConditionTrue,
  labels,
  type NodePool,
  terminationFinalizer,
} from '@tenon/api'
import {
  allowedDisruptions,
  type BudgetWindow,
  budgetWindows,
  nextBudgetChangeMs,
  unreadableBudget,
} from '@tenon/engine'
import { type Clock, type Logger, Tally } from '@tenon/runtime'
import { type Pause, pauseSentence } from '../state/pause.ts'
import { isNodeReady, labelsOf, type StateNode } from '../state/nodes/state-node.ts'
import type { RolloutHold } from '../state/nodepools/canary-rollouts.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { PaceStep, ResumePace } from './resume-pace.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'brake' | 'isManaged' | 'poolWishes' | 'rollouts' | 'stateNodes'>
  readonly events: EventRecorder
  readonly metrics: Pick<Metrics, 'allowedDisruptions' | 'nodesConsumingBudgets'>
  readonly clock: Clock
  readonly logger: Logger
  /** Undefined where decisions are those of Karpenter. */
  readonly pace?: ResumePace
}

const defaultBudgets = [{ nodes: '10%' }]
const eventDedupeMs = 60_000

interface BudgetState {
  readonly allowed: number
  readonly disrupting: number
  /** What budgets alone allow, without pauses and rollouts. */
  readonly byBudgets: number
  /** Set while voluntary disruption of the NodePool is paused: then nothing is allowed. */
  readonly pause: Pause | undefined
  /** Set while budgets open step by step after a pause. */
  readonly pace: PaceStep | undefined
  /** Set while its rollout is held: then no drifted node may go. */
  readonly rollout: RolloutHold | undefined
  /** Initialized nodes of the NodePool. */
  readonly total: number
}

const noNodes: Count = { total: 0, disrupting: 0 }

interface Count {
  /** Initialized nodes. */
  readonly total: number
  /** Those that are deleted, being deleted or not Ready. */
  readonly disrupting: number
}

export class DisruptionBudgets {
  readonly #deps: Dependencies
  readonly #counts = new Tally<StateNode, Map<string, Count>>({
    begin: () => new Map(),
    count,
  })

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * How many more nodes of each NodePool may be disrupted now, by its name. Nodes that are deleted, being deleted or
   * not Ready use up budgets. Sets the metrics, and records an event where a budget allows nothing.
   */
  remaining(reason: DisruptionReason): Map<string, number> {
    return remainingDisruptions(this.#deps, this.#counted(), reason)
  }

  #counted(): ReadonlyMap<string, Count> {
    return this.#counts.of(this.#deps.state.stateNodes())
  }

  /** How many nodes of the NodePool may be disrupted at a time, and how many are. */
  stateOf(pool: NodePool, reason: DisruptionReason): BudgetState {
    const { clock, state } = this.#deps
    const { total, disrupting } = this.#counted().get(pool.metadata.name) ?? noNodes
    const budgets = pool.spec.disruption?.budgets ?? defaultBudgets
    const pause = state.brake.holding(pool.metadata.name, 'voluntary')
    const { timeZone } = state.poolWishes(pool)
    const byBudgets = allowedDisruptions(budgets, reason, total, clock.now(), timeZone)
    const rollout = reason === 'Drifted' ? state.rollouts.canaries.holdOf(pool, total) : undefined
    const pace = this.#deps.pace?.stepOf(pool.metadata.name)
    const open = Math.min(byBudgets, pace?.nodes ?? Infinity)
    const allowed = pause === undefined && rollout === undefined ? open : 0
    return { allowed, byBudgets, disrupting, total, pause, pace, rollout }
  }

  /** How many may be disrupted at a time, window after window from now on. */
  windows(pool: NodePool, reason: DisruptionReason): Generator<BudgetWindow, undefined, undefined> {
    const { clock, state } = this.#deps
    const { total } = this.#counted().get(pool.metadata.name) ?? noNodes
    const budgets = pool.spec.disruption?.budgets ?? defaultBudgets
    return budgetWindows(budgets, reason, total, clock.now(), state.poolWishes(pool).timeZone)
  }

  /** When a budget next allows a disruption, in Unix milliseconds; undefined if time alone does not help. */
  opensMs(pool: NodePool, reason: DisruptionReason): number | undefined {
    const { disrupting } = this.stateOf(pool, reason)
    return this.windows(pool, reason).find(({ allowed }) => allowed > disrupting)?.fromMs
  }

  /** When a budget of a NodePool with a time zone next begins or ends, in Unix milliseconds. */
  nextChangeMs(nowMs: number): number | undefined {
    const { caches, state } = this.#deps
    const times = caches.nodePools.list().flatMap((pool) => {
      const { timeZone } = state.isManaged(pool) ? state.poolWishes(pool) : {}
      if (timeZone === undefined) return []
      return nextBudgetChangeMs(pool.spec.disruption?.budgets ?? defaultBudgets, nowMs, timeZone) ?? []
    })
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Logs an error for each NodePool with an invalid budget. */
  logUnreadable(): void {
    const { caches, clock, logger, state } = this.#deps
    for (const pool of caches.nodePools.list()) {
      if (!state.isManaged(pool)) continue
      const budget = unreadableBudget(pool.spec.disruption?.budgets ?? [], clock.now())
      if (budget === undefined) continue
      logger.error('invalid disruption budget; no node of the nodepool is disrupted', {
        NodePool: { name: pool.metadata.name },
        budget,
      })
    }
  }
}

function remainingDisruptions(
  { caches, state, clock, metrics, events, pace }: Dependencies,
  counts: ReadonlyMap<string, Count>,
  reason: DisruptionReason,
): Map<string, number> {
  const remaining = new Map<string, number>()
  for (const pool of caches.nodePools.list()) {
    if (!state.isManaged(pool)) continue
    const { name, uid } = pool.metadata
    const { total, disrupting } = counts.get(name) ?? noNodes
    const budgets = pool.spec.disruption?.budgets ?? defaultBudgets
    const held = heldText({ state }, pool, reason, total)
    const { timeZone } = state.poolWishes(pool)
    const step = pace?.stepOf(name)
    const byBudgets =
      held === undefined ? allowedDisruptions(budgets, reason, total, clock.now(), timeZone) : 0
    const allowed = Math.min(byBudgets, step?.nodes ?? Infinity)
    const room = reason === 'Drifted' ? state.rollouts.canaries.room(pool, total) : Infinity
    const left = step === undefined ? Infinity : step.nodes - step.taken
    metrics.allowedDisruptions.set({ nodepool: name, reason }, allowed)
    metrics.nodesConsumingBudgets.set({ nodepool: name, reason }, disrupting)
    remaining.set(name, Math.max(0, Math.min(room, left, allowed - disrupting)))
    if (total === 0 || allowed > 0) continue
    events.record({
      object: pool,
      type: 'Normal',
      reason: 'DisruptionBlocked',
      message: held ?? `No budget of the NodePool allows a disruption for reason ${reason} now`,
      dedupe: [uid ?? name, reason],
      dedupeTtlMs: eventDedupeMs,
    })
  }
  return remaining
}

/** The pause or rollout that holds disruption of the NodePool, a clause without a full stop. */
function heldText(
  { state }: Pick<Dependencies, 'state'>,
  pool: NodePool,
  reason: DisruptionReason,
  total: number,
): string | undefined {
  const pause = state.brake.holding(pool.metadata.name, 'voluntary')
  if (pause !== undefined) return pauseSentence(pause)
  const hold = reason === 'Drifted' ? state.rollouts.canaries.holdOf(pool, total) : undefined
  return hold && rolloutText(pool, hold)
}

export function rolloutText({ metadata }: NodePool, { because }: RolloutHold): string {
  return `Drifted nodes of NodePool ${metadata.name} are not replaced now: ${because}`
}

/** Adds an instance to the counts of its NodePool, or removes it. */
function count(counts: Map<string, Count>, stateNode: StateNode, by: 1 | -1): void {
  const { node, claim, isInitialized, isMarkedForDeletion } = stateNode
  // A draining Node had a claim, and uses up the budget even if a wrong view has lost the claim.
  const isManaged =
    claim === undefined
      ? isMarkedForDeletion && node?.metadata.finalizers?.includes(terminationFinalizer) === true
      : !isConditionTrue(claim, 'InstanceTerminating')
  // Its kubelet may have come back under another name, on a Node that is not initialized yet.
  const isDraining =
    isMarkedForDeletion && node !== undefined && claim !== undefined && isConditionTrue(claim, 'Initialized')
  if (!isManaged || !(isInitialized || isDraining)) return
  const pool = labelsOf(stateNode)[labels.nodePool] ?? ''
  const { total, disrupting } = counts.get(pool) ?? noNodes
  const isDisrupting = isMarkedForDeletion || node === undefined || !isNodeReady(node)
  counts.set(pool, { total: total + by, disrupting: disrupting + (isDisrupting ? by : 0) })
}
