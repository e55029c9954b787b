/** Tells of the conditions of objects, and of how long objects take to go (operations.md 9.3). */
import { type Condition, type KubeObject, ownValue, setOwn } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Counter, Histogram, Registry } from 'prom-client'
import { type ConditionKind, conditionRowsOf, sharedConditionRows } from './condition-rows.ts'
import { Families } from '../families.ts'
import type { KeptGauge, KeptSeries } from '../kept-gauge.ts'
import type { MetricRow } from '../rows.ts'

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

  /** Shows an object as it is now. */
  show(kind: KindLabels, each: Conditioned): void {
    this.#families.show(`${kind.kind}/${keyOf(each.object)}`, each, groupAndKind(kind))
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

/** The families of one kind, and what they add to those that several kinds share. */
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

  /** Shows an object as it is now. */
  show(each: Conditioned): void {
    this.#families.show(keyOf(each.object), each, this.#extra(each.object))
    this.#shared?.show(this.#kind, each)
  }

  /** The object is gone. */
  drop(name: string): void {
    this.#families.drop(name)
    this.#shared?.drop(this.#kind, name)
  }

  /** Counts a transition; how long the former status lasted is known only when it was seen. */
  transition(object: KubeObject, transition: Transition): void {
    this.#families.transition(this.#extra(object), transition)
    this.#shared?.transition(this.#kind, transition)
  }

  /** The object is gone, so long after its deletion was asked for. */
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

/** What the families of all kinds need. */
export interface ConditionMetricsOptions {
  readonly registry: Registry
  readonly clock: Pick<Clock, 'now'>
  /** With `reduced`, there are no series of single nodes and claims, save of those on their way out. */
  readonly detail: 'full' | 'reduced'
}

/** Six families with a common prefix. */
class ConditionFamilies {
  readonly #transitions: Counter
  readonly #transitionSeconds: Histogram
  readonly #terminationDuration: Histogram
  /** The present status; absent where it is not shown. */
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

/** Name of an object, after its namespace if it has one. */
export function keyOf({ metadata: { name, namespace } }: KubeObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

function groupAndKind({ group, kind }: KindLabels): Labels {
  return { group, kind }
}

/** How metrics spell a label key of Kubernetes. */
function metricLabel(key: string): string {
  return key.replaceAll(/[/.-]/g, '_')
}

/** 0 for a time that is no time; one that is yet to come by this instance's clock has no age either. */
function ageSince(time: string): KeptSeries['value'] {
  const sinceMs = Date.parse(time)
  return Number.isNaN(sinceMs) ? 0 : { sinceMs }
}
