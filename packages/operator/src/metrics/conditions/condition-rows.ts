/** Metrics of the conditions of objects; absent without observability (operations.md 9.3). */
import { callBuckets, type MetricRow, prefixed } from '../rows.ts'

/** Kinds whose families have the kind in their names. */
export type ConditionKind = 'nodeclaim' | 'nodepool' | 'node' | 'capacitybuffer'

/** 0.5 s to 2.3 h. */
const buckets = Array.from({ length: 15 }, (_, n) => 0.5 * 2 ** n)
const object = ['namespace', 'name']
const condition = ['type', 'status', 'reason']

/** The families of a kind. `objectLabels` are labels of the object that its series have too. */
export function conditionRowsOf(kind: ConditionKind, objectLabels: readonly string[]): readonly MetricRow[] {
  return rows(`operator_${kind}_`, objectLabels, buckets)
}

/** The families that NodeClaims and NodePools share, as older dashboards read them. */
export const sharedConditionRows: readonly MetricRow[] = rows('operator_', ['group', 'kind'], callBuckets)

/** Those of NodeClaims and Nodes have a label for the node class too, which depends on the provider. */
export const conditionRows: readonly MetricRow[] = [
  ...conditionRowsOf('nodeclaim', ['karpenter_sh_nodepool']),
  ...conditionRowsOf('nodepool', []),
  ...conditionRowsOf('node', ['karpenter_sh_nodepool', 'karpenter_sh_initialized']),
  ...conditionRowsOf('capacitybuffer', []),
  ...sharedConditionRows,
]

function rows(prefix: string, extra: readonly string[], bounds: readonly number[]): readonly MetricRow[] {
  const perCondition = { type: 'gauge', labels: [...extra, ...object, ...condition] } as const
  const isOfFew = prefix === 'operator_nodepool_' || prefix === 'operator_capacitybuffer_'
  const grows = isOfFew ? {} : ({ grows: 'with the nodes' } as const)
  return prefixed(prefix, [
    {
      name: 'status_condition_transitions_total',
      type: 'counter',
      labels: [...extra, ...condition],
      unit: 'transitions',
      help: 'Changes of the status of a condition; a status that exists at the start counts as one',
    },
    {
      name: 'status_condition_transition_seconds',
      type: 'histogram',
      labels: [...extra, 'type', 'status'],
      unit: 'seconds',
      buckets: bounds,
      help: 'Time that a condition had its previous status, which is the label, before it changed',
    },
    {
      name: 'status_condition_count',
      ...perCondition,
      ...grows,
      unit: '1',
      help: '1 for the current status and reason of each condition of each object',
    },
    {
      name: 'status_condition_current_status_seconds',
      ...perCondition,
      ...grows,
      unit: 'seconds',
      help: 'Time that a condition has had its current status',
    },
    {
      name: 'termination_current_time_seconds',
      type: 'gauge',
      labels: [...extra, ...object],
      unit: 'seconds',
      help: 'Time since the deletion request of an object that still exists',
    },
    {
      name: 'termination_duration_seconds',
      type: 'histogram',
      labels: extra,
      unit: 'seconds',
      buckets: bounds,
      help: 'Time from the deletion request until the object is removed',
    },
  ])
}
