/** Metrics of scale-down (cluster-autoscaler.md 7.3). */
import type { Clock } from '@tenon/runtime'
import { limitReasons, type MetricSink, type NodeGroupIndex } from '../model.ts'
import type { ScaleDownOptions } from '../options/options.ts'
import { type Choice, neededMs } from './choice/choose.ts'
import type { Plan, UnneededNode } from './planning/planner.ts'

/** A node that has been removable for some time. */
interface Overdue {
  readonly dueMs: number
  /** Its last reason to stay, as a label. */
  readonly delayReason: string
}

interface PlanContext {
  readonly isCooling: boolean
  readonly nowMs: number
  readonly groupOptions: NodeGroupIndex['options']
}

export class ScaleDownMetrics {
  readonly #sink: MetricSink
  readonly #clock: Clock
  readonly #options: ScaleDownOptions
  #overdue = new Map<string, Overdue>()

  constructor(sink: MetricSink, clock: Clock, options: ScaleDownOptions) {
    this.#sink = sink
    this.#clock = clock
    this.#options = options
  }

  /** The result of a loop. `choice` is absent if no choice was made. */
  plan(plan: Plan, choice: Choice | undefined, context: PlanContext): void {
    const { isCooling } = context
    this.#sink.set('unneeded_nodes_count', plan.unneeded.length)
    this.#sink.set('scale_down_in_cooldown', isCooling ? 1 : 0)
    if (this.#options.tracksSkippedNodes)
      this.#sink.set('max_node_skip_eval_duration_seconds', plan.longestSkipMs / 1000)
    this.#unremovable(plan, choice)
    if (this.#options.tracksRemovalLatency) this.#follow(plan, choice, context)
    for (const { reason } of choice?.refused ?? []) {
      if (reason.kind !== 'MinimalResourceLimitExceeded') continue
      const limit = limitReasons.get(reason.resource)
      if (limit === undefined) continue
      this.#sink.add('skipped_scale_events_count', 1, { direction: 'down', reason: limit })
    }
  }

  clearUnneeded(): void {
    this.#overdue.clear()
    this.#sink.set('unneeded_nodes_count', 0)
  }

  /** The deletion of nodes has begun. */
  removals(nodes: readonly UnneededNode[], nowMs: number): void {
    for (const { node } of nodes) this.#observe(node.metadata.name, true, nowMs)
  }

  duration(name: string, startMs: number): void {
    this.#sink.observe('function_duration_seconds', (this.#clock.monotonic() - startMs) / 1000, {
      function: name,
    })
  }

  /** Removes series of reasons that no node has any more (trap 23). */
  #unremovable(plan: Plan, choice: Choice | undefined): void {
    const counts = new Map<string, number>()
    for (const { reason } of [...plan.unremovable, ...(choice?.refused ?? [])]) {
      counts.set(reason.kind, (counts.get(reason.kind) ?? 0) + 1)
    }
    this.#sink.clear('unremovable_nodes_count')
    for (const [reason, count] of counts) this.#sink.set('unremovable_nodes_count', count, { reason })
  }

  /** Follows nodes whose unneeded time has passed, until they are removed or needed again. */
  #follow(plan: Plan, choice: Choice | undefined, { isCooling, nowMs, groupOptions }: PlanContext): void {
    const reasons = new Map((choice?.refused ?? []).map(({ nodeName, reason }) => [nodeName, reason.kind]))
    const overdue = new Map<string, Overdue>()
    for (const unneeded of plan.unneeded) {
      const { name } = unneeded.node.metadata
      const dueMs = unneeded.sinceMs + neededMs(unneeded, this.#options, groupOptions)
      if (dueMs > nowMs) continue
      const delayReason =
        reasons.get(name) ?? (isCooling ? 'InCooldown' : (this.#overdue.get(name)?.delayReason ?? ''))
      overdue.set(name, { dueMs, delayReason })
    }
    for (const name of this.#overdue.keys()) if (!overdue.has(name)) this.#observe(name, false, nowMs)
    this.#overdue = overdue
  }

  #observe(name: string, isDeleted: boolean, nowMs: number): void {
    const known = this.#overdue.get(name)
    if (known === undefined) return
    this.#overdue.delete(name)
    const labels = { deleted: String(isDeleted), delay_reason: known.delayReason }
    this.#sink.observe('node_removal_latency_seconds', Math.max(0, nowMs - known.dueMs) / 1000, labels)
  }
}
