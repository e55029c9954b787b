import { type Container, ownValue, type Pod, quantityNanos, quantityText } from '@tenon/api'
import { conditionOf, isTerminating } from '../objects/pods.ts'
import type { MetricSpec, MetricTarget } from '../objects/workloads.ts'

/** CPU usage of a new pod is ignored for this time. */
const cpuInitializationMs = 300_000
const initialReadinessMs = 30_000
/** Time over which usage is measured. */
const windowMs = 15_000

/** How far a metric may be from its target without scaling. */
interface Tolerances {
  readonly up: number
  readonly down: number
}

/** How many replicas a metric proposes, or why that is unknown. */
export type Proposal =
  | { readonly kind: 'replicas'; readonly replicas: number; readonly metric: string; readonly status: object }
  | { readonly kind: 'unknown'; readonly reason: string; readonly message: string }

interface Situation {
  readonly pods: readonly Pod[]
  /** Current desired replicas. */
  readonly replicas: number
  readonly tolerances: Tolerances
  readonly nowMs: number
}

const unavailable: Readonly<Record<string, string>> = {
  Pods: 'unable to get metric: unable to fetch metrics from custom metrics API: no known available metric versions found',
  Object:
    'unable to get metric: unable to fetch metrics from custom metrics API: no known available metric versions found',
  External:
    'unable to get external metric: unable to fetch metrics from external metrics API: the server could not find the requested resource',
}

/** The proposal of one metric. */
export function proposalOf(spec: MetricSpec, situation: Situation): Proposal {
  const { type, resource, containerResource } = spec
  const source = type === 'Resource' ? resource : containerResource
  if ((type !== 'Resource' && type !== 'ContainerResource') || source === undefined)
    return {
      kind: 'unknown',
      reason: `FailedGet${type}Metric`,
      message: unavailable[type] ?? 'unknown metric source type',
    }
  const only = type === 'ContainerResource' ? containerResource?.container : undefined
  const measured = measure(source.name, only, situation)
  const failed = (why: string): Proposal => ({
    kind: 'unknown',
    reason: `FailedGet${type}Metric`,
    message: `failed to get ${source.name} ${source.target.type === 'Utilization' ? 'utilization' : 'usage'}: ${why}`,
  })
  if ('problem' in measured) return failed(measured.problem)
  const reading = readingOf(source.target, measured)
  if (typeof reading === 'string') return failed(reading)
  const { ratio, current } = reading
  const kind = source.target.type === 'Utilization' ? 'utilization (percentage of request)' : ''
  const what = only === undefined ? 'resource' : 'container resource'
  const field = only === undefined ? 'resource' : 'containerResource'
  return {
    kind: 'replicas',
    replicas: replicasFor(ratio, measured, situation),
    metric: `${source.name} ${what} ${kind}`.trim(),
    status: { type, [field]: { name: source.name, ...(only !== undefined && { container: only }), current } },
  }
}

interface Measured {
  readonly resource: string
  /** Usage and request of each measured pod, in billionths. */
  readonly counted: readonly Sample[]
  readonly unready: readonly Sample[]
  readonly missing: readonly Sample[]
}

interface Sample {
  readonly usage: number
  /** `undefined` if a container has no request. */
  readonly request: number | undefined
  readonly silent: string
}

function measure(
  resource: string,
  only: string | undefined,
  { pods, nowMs }: Situation,
): Measured | { readonly problem: string } {
  const groups: Record<'counted' | 'unready' | 'missing', Sample[]> = {
    counted: [],
    unready: [],
    missing: [],
  }
  for (const pod of pods) {
    const group = groupOf(pod, resource, nowMs)
    if (group === undefined) continue
    const containers = containersOf(pod).filter(({ name }) => only === undefined || name === only)
    if (only !== undefined && containers.length === 0)
      return { problem: `container ${only} not present in metrics for pod ${nameOf(pod)}` }
    const sample = sampleOf(pod, containers, resource)
    if (sample === undefined)
      return {
        problem:
          'unable to get metrics for resource ' +
          `${resource}: no metrics returned from resource metrics API`,
      }
    groups[group].push(sample)
  }
  if (groups.counted.length === 0) {
    const problem =
      groups.unready.length + groups.missing.length === 0
        ? `unable to get metrics for resource ${resource}: no metrics returned from resource metrics API`
        : 'did not receive metrics for targeted pods (pods might be unready)'
    return { problem }
  }
  return { resource, ...groups }
}

function nameOf({ metadata }: Pod): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}

function containersOf({ spec }: Pod): readonly Container[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...spec.containers, ...sidecars]
}

function sampleOf(pod: Pod, containers: readonly Container[], resource: string): Sample | undefined {
  let usage = 0
  let request: number | undefined = 0
  let silent = ''
  for (const container of containers) {
    const used = usageOf(pod, container, resource)
    if (used === undefined) return undefined
    usage += used
    const asked = requestOf(container, resource)
    if (asked === undefined) silent = `container ${container.name} of Pod ${pod.metadata.name}`
    request = asked === undefined || request === undefined ? undefined : request + asked
  }
  return { usage, request, silent }
}

/** Pods that are ending are ignored; starting ones count as far as they are known. */
function groupOf(pod: Pod, resource: string, nowMs: number): keyof Omit<Measured, 'resource'> | undefined {
  const phase = pod.status?.phase
  if (isTerminating(pod) || phase === 'Failed') return undefined
  if (phase === 'Succeeded') return 'missing'
  if (phase !== 'Running') return 'unready'
  return resource === 'cpu' && isStarting(pod, nowMs) ? 'unready' : 'counted'
}

function isStarting(pod: Pod, nowMs: number): boolean {
  const ready = conditionOf(pod, 'Ready')
  const startMs = Date.parse(pod.status?.startTime ?? '')
  const changedMs = Date.parse(ready?.lastTransitionTime ?? '')
  if (ready === undefined || Number.isNaN(startMs)) return true
  if (startMs + cpuInitializationMs > nowMs) return ready.status === 'False' || nowMs < changedMs + windowMs
  return ready.status === 'False' && startMs + initialReadinessMs > changedMs
}

/** The ratio of usage to target with its status, or why it is unknown. */
function readingOf(
  target: MetricTarget,
  { resource, counted }: Measured,
): { readonly ratio: number; readonly current: object } | string {
  const used = counted.reduce((sum, { usage }) => sum + usage, 0)
  const average = used / counted.length
  const averageValue = quantityText(
    BigInt(Math.round(average / 1e6)) * 1_000_000n,
    resource === 'cpu' ? 'decimal' : 'binary',
  )
  if (target.type !== 'Utilization') {
    const wanted = Number(quantityNanos(target.averageValue ?? '') ?? 0n)
    return wanted > 0
      ? { ratio: average / wanted, current: { averageValue } }
      : 'the target has no averageValue'
  }
  const silent = counted.find(({ request }) => request === undefined)
  if (silent !== undefined) return `missing request for ${resource} in ${silent.silent}`
  const requested = counted.reduce((sum, { request = 0 }) => sum + request, 0)
  if (requested === 0 || target.averageUtilization === undefined)
    return 'no metrics returned matched known pods'
  const averageUtilization = Math.floor((used * 100) / requested)
  return {
    ratio: averageUtilization / target.averageUtilization,
    current: { averageUtilization, averageValue },
  }
}

/** Pods without a measurement are assumed to keep the number of replicas stable. */
function replicasFor(ratio: number, measured: Measured, situation: Situation): number {
  const { counted, unready, missing } = measured
  const { replicas, tolerances } = situation
  const isNear = (value: number) => value >= 1 - tolerances.down && value <= 1 + tolerances.up
  const withUnready = unready.length > 0 && ratio > 1
  if (!withUnready && missing.length === 0) return isNear(ratio) ? replicas : ceil(ratio * counted.length)
  // When scaling down, unknown pods are assumed to use the target; when scaling up, nothing.
  const assumed = missing.map(() => (ratio < 1 ? 1 : 0))
  const others = withUnready ? [...assumed, ...unready.map(() => 0)] : assumed
  const count = counted.length + others.length
  const adjusted = (ratio * counted.length + others.reduce<number>((sum, each) => sum + each, 0)) / count
  if (isNear(adjusted) || (ratio < 1 && adjusted > 1) || (ratio > 1 && adjusted < 1)) return replicas
  const wanted = ceil(adjusted * count)
  const turnsBack = (adjusted < 1 && wanted > replicas) || (adjusted > 1 && wanted < replicas)
  return turnsBack ? replicas : wanted
}

/** Rounds up, but ignores floating-point errors. */
function ceil(value: number): number {
  return Math.ceil(value - 1e-9)
}

/** `tenon.sh/cpu-usage: 80%` of the pod's requests, or an amount per container (`250m`). */
const annotationOf = (resource: string) => `tenon.sh/${resource}-usage`
/** The usage of a pod without the annotation. */
const usualShare = 0.5
/** The usage of a container without requests, in billionths: 10m of CPU, 32Mi of memory. */
const idle: ReadonlyMap<string, number> = new Map([
  ['cpu', 1e7],
  ['memory', 32 * 2 ** 20 * 1e9],
])

/** The request of a container of the pod, in billionths; undefined if it has none. */
function requestOf(container: Container, resource: string): number | undefined {
  const requests = container.resources?.requests
  if (requests === undefined || !Object.hasOwn(requests, resource)) return undefined
  const nanos = quantityNanos(ownValue(requests, resource) ?? '')
  return nanos === undefined ? undefined : Number(nanos)
}

/** The usage of a running container, in billionths; undefined for other resources. */
function usageOf(pod: Pod, container: Container, resource: string): number | undefined {
  const nothing = idle.get(resource)
  if (nothing === undefined) return undefined
  const said = ownValue(pod.metadata.annotations, annotationOf(resource))
  const request = requestOf(container, resource)
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(said ?? '')?.[1]
  if (percent !== undefined) return request === undefined ? nothing : (request * Number(percent)) / 100
  const amount = said === undefined ? undefined : quantityNanos(said)
  if (amount !== undefined && amount >= 0n) return Number(amount)
  return request === undefined ? nothing : request * usualShare
}
