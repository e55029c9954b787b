/** Metrics of conditions, and of the deletion of objects (operations.md 9.3). */
import { keyOf } from '../../state/pods/pods.ts'
import { type Condition, type KubeObject, ownValue, setOwn } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Counter, Histogram, Registry } from 'prom-client'
import { Families } from '../families.ts'
import type { KeptGauge, KeptSeries } from '../gauges.ts'
import { callBuckets, type MetricRow, prefixed } from '../rows.ts'

/** An object with the conditions that count for it; missing ones may have been added. */
export interface Conditioned {
  readonly object: KubeObject
  readonly conditions: readonly Condition[]
}

/** A condition that has another status than before. */
export interface Transition {
  /** Undefined when the condition was not there before. */
  readonly from: Condition | undefined
  readonly to: Condition
}

/** What the series of a kind say, beside what object and condition they are about. */
export interface KindLabels {
  readonly group: string
  readonly kind: string
  /** Keys of labels of the object that its series have too. */
  readonly objectLabels: readonly string[]
}

type Labels = Readonly<Record<string, string>>

/** What changed between two looks; a condition that was not there counts as Unknown. */
export function transitionsOf(
  before: readonly Condition[],
  after: readonly Condition[],
): readonly Transition[] {
  return after.flatMap((to) => {
    const from = before.find(({ type }) => type === to.type)
    return (from?.status ?? 'Unknown') === to.status ? [] : [{ from, to }]
  })
}

/** The families that several kinds share, which dashboards made for older versions read. */
export class SharedConditionMetrics {
  readonly #families: ConditionFamilies

  constructor(options: ConditionMetricsOptions) {
    this.#families = new ConditionFamilies(options, sharedConditionRows)
  }

  show(kind: KindLabels, each: Conditioned): void {
    this.#families.show(`${kind.kind}/${keyOf(each.object.metadata)}`, each, groupAndKind(kind))
  }

  /** The object is gone. */
  drop(kind: KindLabels, key: string): void {
    this.#families.drop(`${kind.kind}/${key}`)
  }

  transition(kind: KindLabels, transition: Transition): void {
    this.#families.transition(groupAndKind(kind), transition)
  }

  terminated(kind: KindLabels, seconds: number): void {
    this.#families.terminated(groupAndKind(kind), seconds)
  }
}

/** The families of one kind; also updates the shared ones. */
export class ConditionMetrics {
  readonly #kind: KindLabels
  readonly #shared: SharedConditionMetrics | undefined
  readonly #families: ConditionFamilies

  constructor(options: ConditionMetricsOptions, kind: KindLabels, shared?: SharedConditionMetrics) {
    this.#kind = kind
    this.#shared = shared
    const rows = conditionRowsOf(kind.kind.toLowerCase() as ConditionKind, kind.objectLabels.map(metricLabel))
    this.#families = new ConditionFamilies(options, rows)
  }

  show(each: Conditioned): void {
    this.#families.show(keyOf(each.object.metadata), each, this.#extra(each.object))
    this.#shared?.show(this.#kind, each)
  }

  /** The object is gone. */
  drop(name: string): void {
    this.#families.drop(name)
    this.#shared?.drop(this.#kind, name)
  }

  /** The duration of the former status is known only if it was seen. */
  transition(object: KubeObject, transition: Transition): void {
    this.#families.transition(this.#extra(object), transition)
    this.#shared?.transition(this.#kind, transition)
  }

  /** @param seconds from the deletion request until the object was removed. */
  terminated(object: KubeObject, seconds: number): void {
    this.#families.terminated(this.#extra(object), seconds)
    this.#shared?.terminated(this.#kind, seconds)
  }

  #extra({ metadata }: KubeObject): Labels {
    const extra: Record<string, string> = {}
    for (const key of this.#kind.objectLabels)
      setOwn(extra, metricLabel(key), ownValue(metadata.labels, key) ?? '')
    return extra
  }
}

export interface ConditionMetricsOptions {
  readonly registry: Registry
  readonly clock: Pick<Clock, 'now'>
  /** `reduced`: no series for single nodes and claims. */
  readonly detail: 'full' | 'reduced'
}

/** Six families with a common prefix. */
class ConditionFamilies {
  readonly #transitions: Counter
  readonly #transitionSeconds: Histogram
  readonly #terminationDuration: Histogram
  /** Undefined with reduced detail. */
  readonly #status: KeptGauge | undefined
  readonly #statusAge: KeptGauge | undefined
  readonly #terminationAge: KeptGauge | undefined

  constructor({ registry, clock, detail }: ConditionMetricsOptions, rows: readonly MetricRow[]) {
    const make = new Families(registry, rows)
    const row = (suffix: string): MetricRow => {
      const found = rows.find(({ name }) => name.endsWith(suffix))
      if (found === undefined) throw new Error(`the table has no ${suffix}`)
      return found
    }
    const gauge = (suffix: string) => {
      const { name, grows } = row(suffix)
      return detail === 'full' || grows === undefined ? make.kept(name, () => clock.now()) : undefined
    }
    this.#transitions = make.counter(row('_transitions_total').name)
    this.#transitionSeconds = make.histogram(row('_transition_seconds').name)
    this.#terminationDuration = make.histogram(row('termination_duration_seconds').name)
    this.#status = gauge('_count')
    this.#statusAge = gauge('_current_status_seconds')
    this.#terminationAge = gauge('termination_current_time_seconds')
  }

  show(owner: string, { object, conditions }: Conditioned, extra: Labels): void {
    const { namespace = '', name, deletionTimestamp } = object.metadata
    const of = { ...extra, namespace, name }
    const labels = conditions.map(({ type, status, reason }) => ({ ...of, type, status, reason }))
    this.#status?.show(
      owner,
      labels.map((each) => ({ labels: each, value: 1 })),
    )
    this.#statusAge?.show(
      owner,
      labels.map((each, at) => ({ labels: each, value: ageSince(conditions[at]?.lastTransitionTime ?? '') })),
    )
    this.#terminationAge?.show(
      owner,
      deletionTimestamp === undefined ? [] : [{ labels: of, value: ageSince(deletionTimestamp) }],
    )
  }

  drop(owner: string): void {
    for (const gauge of [this.#status, this.#statusAge, this.#terminationAge]) gauge?.drop(owner)
  }

  transition(extra: Labels, { from, to }: Transition): void {
    this.#transitions.inc({ ...extra, type: to.type, status: to.status, reason: to.reason })
    if (from === undefined) return
    const lastedMs = Date.parse(to.lastTransitionTime) - Date.parse(from.lastTransitionTime)
    if (Number.isNaN(lastedMs)) return
    this.#transitionSeconds.observe({ ...extra, type: to.type, status: from.status }, lastedMs / 1000)
  }

  terminated(extra: Labels, seconds: number): void {
    this.#terminationDuration.observe({ ...extra }, seconds)
  }
}

function groupAndKind({ group, kind }: KindLabels): Labels {
  return { group, kind }
}

/** A label key of Kubernetes as metric label. */
function metricLabel(key: string): string {
  return key.replaceAll(/[/.-]/g, '_')
}

/** 0 for a malformed time. */
function ageSince(time: string): KeptSeries['value'] {
  const sinceMs = Date.parse(time)
  return Number.isNaN(sinceMs) ? 0 : { sinceMs }
}

/** Kinds with families of their own. */
type ConditionKind = 'nodeclaim' | 'nodepool' | 'node' | 'capacitybuffer'

/** 0.5 s to 2.3 h. */
const buckets = Array.from({ length: 15 }, (_, n) => 0.5 * 2 ** n)
const object = ['namespace', 'name']
const condition = ['type', 'status', 'reason']

/** Families of a kind. @param objectLabels labels of the object that its series have, too. */
function conditionRowsOf(kind: ConditionKind, objectLabels: readonly string[]): readonly MetricRow[] {
  return rowsWith(`operator_${kind}_`, objectLabels, buckets)
}

/** Families that several kinds share, for older dashboards. */
const sharedConditionRows: readonly MetricRow[] = rowsWith('operator_', ['group', 'kind'], callBuckets)

/** NodeClaims and Nodes have a label for the node class, too, which depends on the provider. */
export const conditionRows: readonly MetricRow[] = [
  ...conditionRowsOf('nodeclaim', ['karpenter_sh_nodepool']),
  ...conditionRowsOf('nodepool', []),
  ...conditionRowsOf('node', ['karpenter_sh_nodepool', 'karpenter_sh_initialized']),
  ...conditionRowsOf('capacitybuffer', []),
  ...sharedConditionRows,
]

function rowsWith(prefix: string, extra: readonly string[], bounds: readonly number[]): readonly MetricRow[] {
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
