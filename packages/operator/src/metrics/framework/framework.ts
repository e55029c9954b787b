/** Metrics of controllers, queues and API requests, under the names of controller-runtime and client-go (operations.md 9.4). */
import type { ControllerActivity, ControllerMetrics, ReconcileOutcome, RequestSample } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { Counter, Histogram, Registry } from 'prom-client'
import { Families } from '../families.ts'
import { LiveGauge, type LiveSeries } from '../gauges.ts'
import { durationBuckets, type MetricRow, prefixed } from '../rows.ts'

const results = ['success', 'error', 'requeue', 'requeue_after']

/** Priorities of new keys, and of keys retried after a failure. */
const priorities = { fresh: '0', retry: '-100' }

export class FrameworkMetrics implements ControllerMetrics {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #activities = new Map<string, ControllerActivity>()
  readonly #leading = new Map<string, boolean>()
  readonly #reconciles: Counter
  readonly #errors: Counter
  readonly #panics: Counter
  readonly #reconcileTime: Histogram
  /** Only for dashboards; always 0. */
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

  /** Initializes the counters with 0; for a controller without a queue. */
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

  /** For a controller without a queue. */
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

  /** Retried keys have a series of their own while there are any. */
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

const queue = ['name', 'controller']
const perController = { labels: ['controller'], unit: 'reconciles' } as const
/** 10 ns to 1000 s. */
const queueBuckets = Array.from({ length: 12 }, (_, n) => Number(`1e${n - 8}`))

const reconciles: readonly MetricRow[] = [
  {
    name: 'reconcile_total',
    type: 'counter',
    labels: ['controller', 'result'],
    unit: 'reconciles',
    help: 'Reconciles by result: success, error, requeue (with back-off) or requeue_after',
  },
  { name: 'reconcile_errors_total', type: 'counter', ...perController, help: 'Reconciles that failed' },
  {
    name: 'terminal_reconcile_errors_total',
    type: 'counter',
    ...perController,
    help: 'Reconciles that failed with a terminal error; always 0',
  },
  {
    name: 'reconcile_panics_total',
    type: 'counter',
    ...perController,
    help: 'Reconciles that failed because of a bug',
  },
  {
    name: 'reconcile_timeouts_total',
    type: 'counter',
    ...perController,
    help: 'Reconciles ended by a timeout; always 0, as there is none',
  },
  {
    name: 'reconcile_time_seconds',
    type: 'histogram',
    labels: ['controller'],
    unit: 'seconds',
    buckets: durationBuckets.filter((bound) => bound <= 60),
    help: 'Duration of a reconcile',
  },
  {
    name: 'max_concurrent_reconciles',
    type: 'gauge',
    ...perController,
    help: 'Maximum number of concurrent reconciles',
  },
  { name: 'active_workers', type: 'gauge', ...perController, help: 'Reconciles in progress' },
]

const queues: readonly MetricRow[] = [
  {
    name: 'depth',
    type: 'gauge',
    labels: [...queue, 'priority'],
    unit: 'keys',
    help: 'Keys in the queue; those with priority -100 are retried after a failure',
  },
  { name: 'adds_total', type: 'counter', labels: queue, unit: 'keys', help: 'Keys added to the queue' },
  {
    name: 'retries_total',
    type: 'counter',
    labels: queue,
    unit: 'keys',
    help: 'Keys retried with back-off',
  },
  {
    name: 'queue_duration_seconds',
    type: 'histogram',
    labels: queue,
    unit: 'seconds',
    buckets: queueBuckets,
    help: 'Time that a key waits in the queue',
  },
  {
    name: 'work_duration_seconds',
    type: 'histogram',
    labels: queue,
    unit: 'seconds',
    buckets: queueBuckets,
    help: 'Time to process a key',
  },
  {
    name: 'unfinished_work_seconds',
    type: 'gauge',
    labels: queue,
    unit: 'seconds',
    help: 'Sum of the ages of all reconciles in progress',
  },
  {
    name: 'longest_running_processor_seconds',
    type: 'gauge',
    labels: queue,
    unit: 'seconds',
    help: 'Age of the oldest reconcile in progress',
  },
]

const others: readonly MetricRow[] = [
  {
    name: 'leader_election_master_status',
    type: 'gauge',
    labels: ['name'],
    unit: '1',
    help: '1 while this process is the leader, else 0; absent without leader election',
  },
  {
    name: 'client_go_request_total',
    type: 'counter',
    labels: ['code', 'method'],
    unit: 'requests',
    help: 'Requests to the API server by status code; <error> without a response',
  },
  {
    name: 'client_go_request_duration_seconds',
    type: 'histogram',
    labels: ['verb', 'group', 'version', 'kind', 'subresource'],
    unit: 'seconds',
    buckets: Array.from({ length: 20 }, (_, n) => 0.001 * 1.5 ** n),
    help: 'Duration of requests to the API server, without watches',
  },
]

export const frameworkRows: readonly MetricRow[] = [
  ...prefixed('controller_runtime_', reconciles),
  ...prefixed('workqueue_', queues),
  ...others,
]

function frameworkRow(name: string): MetricRow {
  const row = frameworkRows.find((each) => each.name === name)
  if (row === undefined) throw new Error(`the table has no ${name}`)
  return row
}

interface Target {
  readonly group: string
  readonly version: string
  /** Plural, as in the path. */
  readonly kind: string
  readonly name: string | undefined
  readonly subresource: string
}

/** Subresources of namespaces. */
const namespaceSubresources = new Set(['status', 'finalize'])
const asksToWatch = /(?:^|&)watch(?:[=&]|$)/
/** Status code without a response. */
const noAnswer = '<error>'

export class RequestMetrics {
  readonly #requests: Counter
  readonly #duration: Histogram

  constructor(registry: Registry) {
    const make = new Families(registry, frameworkRows)
    this.#requests = make.counter('client_go_request_total')
    this.#duration = make.histogram('client_go_request_duration_seconds')
  }

  readonly requested = ({ method, path, status, durationMs }: RequestSample): void => {
    this.#requests.inc({ code: status === 0 ? noAnswer : `${status}`, method })
    const [plain = '', query] = path.split('?')
    const target = targetOf(plain)
    if (target === undefined || (query !== undefined && asksToWatch.test(query))) return
    const { name, ...labels } = target
    this.#duration.observe({ verb: verbOf(method, name), ...labels }, durationMs / 1000)
  }
}

function verbOf(method: string, name: string | undefined): string {
  switch (method) {
    case 'POST':
      return 'CREATE'
    case 'GET':
      return name === undefined ? 'LIST' : 'GET'
    case 'PUT':
      return name === undefined ? 'CREATE' : 'UPDATE'
    default:
      return method
  }
}

/** Undefined for non-resource paths such as `/version`. */
function targetOf(path: string): Target | undefined {
  const parts = path.split('/').slice(1)
  const root = parts.shift()
  if (root !== 'api' && root !== 'apis') return undefined
  const group = root === 'api' ? '' : (parts.shift() ?? '')
  const [version, ...rest] = parts
  const isInNamespace =
    rest[0] === 'namespaces' && rest.length > 2 && !namespaceSubresources.has(rest[2] ?? '')
  const [kind, name, ...sub] = isInNamespace ? rest.slice(2) : rest
  if (version === undefined || kind === undefined || kind === '') return undefined
  return { group, version, kind, name, subresource: sub.join('/') }
}
