/** Which pods count for what (cluster-autoscaler.md 3.1). */
import { ownValue, type Pod } from '@tenon/api'
import { gpuResources } from '../gpu.ts'
import type { LoopOptions } from '../options/options.ts'

export interface PodClasses {
  /** Bound to a node. */
  readonly scheduled: readonly Pod[]
  /** The scheduler makes room for them on the node they name. */
  readonly nominated: readonly Pod[]
  readonly unschedulable: readonly Pod[]
  /** Of schedulers that are bypassed: not looked at yet. */
  readonly unprocessed: readonly Pod[]
  /** Would be in one of these two, but are made for the room of a ProvisioningRequest (gangs.md 2.3). */
  readonly consumers: readonly Pod[]
}

type PodClass = keyof PodClasses

/** What is known of pods beyond what they tell. */
interface PodJudge {
  readonly isReadable: (pod: Pod) => boolean
  /** Whether its nomination only tells where it is planned: the scheduler makes no room there. */
  readonly isPlanned: (pod: Pod) => boolean
  /** Whether it is made for the room of a ProvisioningRequest. */
  readonly isConsumer: (pod: Pod) => boolean
  /** The pod as the scheduler reads it. */
  readonly read: (pod: Pod) => Pod
}

/** Pods between two looks at the clock. */
const atOnce = 200

/** Sorts pods; those that have ended, cannot be read, are being deleted or wait for another scheduler are in none. */
export function* classify(
  pods: readonly Pod[],
  options: LoopOptions,
  { isReadable, isPlanned, isConsumer, read }: PodJudge,
): Generator<void, PodClasses> {
  const classes: Record<PodClass, Pod[]> = {
    scheduled: [],
    nominated: [],
    unschedulable: [],
    unprocessed: [],
    consumers: [],
  }
  const bypassed = new Set(options.bypassedSchedulerNames)
  const allowed = new Set(options.allowedSchedulerNames)
  for (const [index, pod] of pods.entries()) {
    if (index % atOnce === atOnce - 1) yield
    const scheduler = schedulerOf(pod)
    if (hasEnded(pod) || !isReadable(pod) || (allowed.size > 0 && !allowed.has(scheduler))) continue
    const found = classOf(pod, bypassed.has(scheduler), isPlanned)
    if (found === undefined) continue
    const waits = found === 'unschedulable' || found === 'unprocessed'
    classes[waits && isConsumer(pod) ? 'consumers' : found].push(read(pod))
  }
  return classes
}

export function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}

function schedulerOf({ spec }: Pod): string {
  return spec.schedulerName === undefined || spec.schedulerName === ''
    ? 'default-scheduler'
    : spec.schedulerName
}

function classOf(pod: Pod, isBypassed: boolean, isPlanned: PodJudge['isPlanned']): PodClass | undefined {
  if ((pod.spec.nodeName ?? '') !== '') return 'scheduled'
  if (pod.metadata.deletionTimestamp !== undefined) return undefined
  if ((pod.status?.nominatedNodeName ?? '') !== '' && !isPlanned(pod)) return 'nominated'
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status === 'False' && condition.reason === 'Unschedulable') return 'unschedulable'
  const isUnprocessed =
    condition === undefined || (condition.status === 'False' && (condition.reason ?? '') === '')
  return isBypassed && isUnprocessed ? 'unprocessed' : undefined
}

/** A pod of so low a priority that it neither asks for nodes nor keeps one. */
export function isExpendable({ spec }: Pod, cutoff: number): boolean {
  return spec.priority !== undefined && spec.priority < cutoff
}

export function requestsGpu({ spec }: Pod): boolean {
  return spec.containers.some(({ resources }) =>
    gpuResources.some(
      (name) =>
        ownValue(resources?.requests, name) !== undefined || ownValue(resources?.limits, name) !== undefined,
    ),
  )
}
