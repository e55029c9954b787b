/** Classifies pods by what they count for (cluster-autoscaler.md 3.1). */
import { ownValue, type Pod } from '@tenon/api'
import { gpuResources } from '../gpu.ts'
import type { LoopOptions } from '../options/options.ts'

export interface PodClasses {
  /** Bound to a node. */
  readonly scheduled: readonly Pod[]
  /** The scheduler preempts pods on their nominated node. */
  readonly nominated: readonly Pod[]
  readonly unschedulable: readonly Pod[]
  /** Pods of bypassed schedulers that were not examined yet. */
  readonly unprocessed: readonly Pod[]
  /**
   * Pods that would be in one of the two lists before, but use the capacity of a ProvisioningRequest (gangs.md 2.3).
   */
  readonly consumers: readonly Pod[]
}

type PodClass = keyof PodClasses

/** Facts about pods that are not part of them. */
interface PodKnowledge {
  readonly isReadable: (pod: Pod) => boolean
  /** Whether the nomination is ours, so that no preemption makes room. */
  readonly isPlanned: (pod: Pod) => boolean
  /** Whether it uses the capacity of a ProvisioningRequest. */
  readonly isConsumer: (pod: Pod) => boolean
  /** The pod with default spread constraints. */
  readonly read: (pod: Pod) => Pod
}

/** Pods between two checks of the clock. */
const atOnce = 200

/**
 * Classifies pods. Those that have finished, are invalid, are terminating or wait for another scheduler are in no
 * class.
 */
export function* classify(
  pods: readonly Pod[],
  options: LoopOptions,
  { isReadable, isPlanned, isConsumer, read }: PodKnowledge,
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

function classOf(pod: Pod, isBypassed: boolean, isPlanned: PodKnowledge['isPlanned']): PodClass | undefined {
  if ((pod.spec.nodeName ?? '') !== '') return 'scheduled'
  if (pod.metadata.deletionTimestamp !== undefined) return undefined
  if ((pod.status?.nominatedNodeName ?? '') !== '' && !isPlanned(pod)) return 'nominated'
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status === 'False' && condition.reason === 'Unschedulable') return 'unschedulable'
  const isUnprocessed =
    condition === undefined || (condition.status === 'False' && (condition.reason ?? '') === '')
  return isBypassed && isUnprocessed ? 'unprocessed' : undefined
}

/** A pod of such a low priority that it neither needs nodes nor keeps them. */
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
