/** Says on a Node what its drain waits for, seldom enough not to flood. */
import type { Clock } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'
import { BudgetIndex } from './budget-index.ts'
import type { Departure } from './departure.ts'
import type { DrainPlan } from './drain.ts'
import { drainReport, isHeld } from './drain-report.ts'
import { drainSummary } from './drain-summary.ts'
import type { Caches } from '../../state/caches.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'podDisruptionBudgets'>
  readonly events: EventRecorder
  readonly clock: Clock
}

/** One event per Node in this time. */
export const drainEventMs = 5 * 60_000
/** A drain that nothing holds is given this long before it is spoken of: what holds it may show yet. */
const patienceMs = 5000

/** Remembers when each draining Node was last spoken of. */
export class DrainEvents {
  readonly #deps: Dependencies
  /** By UID of the Node. */
  readonly #nextLookMs = new Map<string, number>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Called in every pass; looks closer only when the Node may be spoken of. */
  tell({ node, deadlineMs }: Departure, plan: DrainPlan): void {
    const { caches, clock, events } = this.#deps
    const now = clock.now()
    const uid = node.metadata.uid ?? node.metadata.name
    const nextMs = this.#nextLookMs.get(uid)
    if (nextMs !== undefined && now < nextMs) return
    this.#sweep(now)
    const facts = {
      node: node.metadata.name,
      since: node.metadata.deletionTimestamp ?? '',
      deadlineMs,
      pods: plan.waiting,
      budgets: new BudgetIndex(caches.podDisruptionBudgets.list()),
      pendingVolumes: [],
    }
    const report = drainReport(facts, now)
    if (nextMs === undefined && !report.pods.some(isHeld)) {
      this.#nextLookMs.set(uid, now + patienceMs)
      return
    }
    this.#nextLookMs.set(uid, now + drainEventMs)
    events.record({ object: node, type: 'Warning', reason: 'FailedDraining', message: drainSummary(report) })
  }

  /** Forgets Nodes that were not asked about for as long as they would be remembered. */
  #sweep(nowMs: number): void {
    for (const [uid, nextMs] of this.#nextLookMs) {
      if (nowMs > nextMs + drainEventMs) this.#nextLookMs.delete(uid)
    }
  }
}
