/** What controllers and their queues do, under the names that Karpenter's users chart (operations.md 9.4). */
import type { ControllerActivity, ControllerMetrics, ReconcileOutcome } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { Counter, Histogram, Registry } from 'prom-client'
import { Families } from '../families.ts'
import { frameworkRow, frameworkRows } from './framework-rows.ts'
import { LiveGauge, type LiveSeries } from '../live-gauge.ts'

const results = ['success', 'error', 'requeue', 'requeue_after']

/** Of keys that something asked for, and of keys that come back after a failure. */
const priorities = { fresh: '0', retry: '-100' }

/** Told by controllers what they do; the state of their queues is read at each scrape. */
export class FrameworkMetrics implements ControllerMetrics {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #activities = new Map<string, ControllerActivity>()
  readonly #leading = new Map<string, boolean>()
  readonly #reconciles: Counter
  readonly #errors: Counter
  readonly #panics: Counter
  readonly #reconcileTime: Histogram
  /** There for those who chart them; nothing here ends that way. */
  readonly #always0: readonly Counter[]
  readonly #adds: Counter
  readonly #retries: Counter
  readonly #queueDuration: Histogram
  readonly #workDuration: Histogram

  constructor(registry: Registry, clock: Pick<Clock, 'monotonic'>) {
    const make = new Families(registry, frameworkRows)
    this.#clock = clock
    this.#reconciles = make.counter('controller_runtime_reconcile_total')
    this.#errors = make.counter('controller_runtime_reconcile_errors_total')
    this.#panics = make.counter('controller_runtime_reconcile_panics_total')
    this.#reconcileTime = make.histogram('controller_runtime_reconcile_time_seconds')
    this.#always0 = [
      make.counter('controller_runtime_terminal_reconcile_errors_total'),
      make.counter('controller_runtime_reconcile_timeouts_total'),
    ]
    this.#adds = make.counter('workqueue_adds_total')
    this.#retries = make.counter('workqueue_retries_total')
    this.#queueDuration = make.histogram('workqueue_queue_duration_seconds')
    this.#workDuration = make.histogram('workqueue_work_duration_seconds')
    this.#addGauges(registry)
  }

  created(controller: string, activity: ControllerActivity): void {
    this.#activities.set(controller, activity)
    this.known(controller)
  }

  /** Lets the counts of a controller begin at 0; for one without a queue. */
  known(controller: string): void {
    for (const result of results) this.#reconciles.inc({ controller, result }, 0)
    for (const family of [this.#errors, this.#panics, ...this.#always0]) family.inc({ controller }, 0)
  }

  added(controller: string): void {
    this.#adds.inc(queueOf(controller))
  }

  retried(controller: string): void {
    this.#retries.inc(queueOf(controller))
  }

  started(controller: string, waitedMs: number): void {
    this.#queueDuration.observe(queueOf(controller), waitedMs / 1000)
  }

  finished(controller: string, outcome: ReconcileOutcome, durationMs: number): void {
    this.passed(controller, outcome, durationMs)
    this.#workDuration.observe(queueOf(controller), durationMs / 1000)
  }

  /** A pass of a controller without a queue has ended. */
  passed(controller: string, outcome: ReconcileOutcome, durationMs: number): void {
    const result = outcome === 'bug' ? 'error' : outcome
    this.#reconciles.inc({ controller, result })
    if (result === 'error') this.#errors.inc({ controller })
    if (outcome === 'bug') this.#panics.inc({ controller })
    this.#reconcileTime.observe({ controller }, durationMs / 1000)
  }

  /** Whether this process leads by the lease `name`. */
  leads(name: string, isLeading: boolean): void {
    this.#leading.set(name, isLeading)
  }

  #addGauges(registry: Registry): void {
    const gauge = (name: string, series: () => Iterable<LiveSeries>) =>
      new LiveGauge(frameworkRow(name), registry, series)
    const each = (value: (activity: ControllerActivity) => number, labels = queueOf) =>
      Array.from(this.#activities, ([name, activity]) => ({ labels: labels(name), value: value(activity) }))
    const byController = (controller: string) => ({ controller })
    const total = (agesMs: readonly number[]) => agesMs.reduce((sum, ageMs) => sum + ageMs, 0) / 1000
    const oldest = (agesMs: readonly number[]) =>
      agesMs.reduce((most, ageMs) => Math.max(most, ageMs), 0) / 1000

    gauge('controller_runtime_max_concurrent_reconciles', () =>
      each(({ concurrency }) => concurrency, byController),
    )
    gauge('controller_runtime_active_workers', () =>
      each((activity) => this.#agesMs(activity).length, byController),
    )
    gauge('workqueue_depth', () => this.#depths())
    gauge('workqueue_unfinished_work_seconds', () => each((activity) => total(this.#agesMs(activity))))
    gauge('workqueue_longest_running_processor_seconds', () =>
      each((activity) => oldest(this.#agesMs(activity))),
    )
    gauge('leader_election_master_status', () =>
      Array.from(this.#leading, ([name, isLeading]) => ({ labels: { name }, value: isLeading ? 1 : 0 })),
    )
  }

  /** Those that come back after failures have series of their own, while there are any. */
  #depths(): readonly LiveSeries[] {
    return Array.from(this.#activities, ([name, activity]) => {
      const { fresh, retry } = activity.waiting()
      const series = (priority: string, value: number) => ({ labels: { ...queueOf(name), priority }, value })
      return [series(priorities.fresh, fresh), ...(retry > 0 ? [series(priorities.retry, retry)] : [])]
    }).flat()
  }

  #agesMs(activity: ControllerActivity): readonly number[] {
    const now = this.#clock.monotonic()
    return Array.from(activity.runningSinceMs(), (since) => now - since)
  }
}

function queueOf(controller: string): Record<string, string> {
  return { name: controller, controller }
}
