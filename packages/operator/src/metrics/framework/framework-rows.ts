/** Metrics of controllers, queues and requests, whatever they are about; always there (operations.md 9.4). */
import { durationBuckets, type MetricRow, prefixed } from '../rows.ts'

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

/** The row of a family. */
export function frameworkRow(name: string): MetricRow {
  const row = frameworkRows.find((each) => each.name === name)
  if (row === undefined) throw new Error(`the table has no ${name}`)
  return row
}
