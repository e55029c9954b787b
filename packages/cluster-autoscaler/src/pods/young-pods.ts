/** Pods that are too young to trigger a scale-up (cluster-autoscaler.md 3.3, 4.1). */
import { parseDuration, type Pod } from '@tenon/api'
import { annotations } from '../names.ts'
import { requestsGpu } from './classes.ts'

/** Pods that are old enough, and those with an invalid annotation. */
export interface OldEnough {
  readonly pods: readonly Pod[]
  readonly unreadable: readonly { readonly pod: Pod; readonly text: string }[]
}

/** Filters out pods that are younger than the flag, or than their annotation if that is longer. */
export function oldEnough(pods: readonly Pod[], delayMs: number, nowMs: number): OldEnough {
  const unreadable: { pod: Pod; text: string }[] = []
  const old = pods.filter((pod) => {
    const text = pod.metadata.annotations?.[annotations.podScaleUpDelay]
    const own = text === undefined ? undefined : parseDuration(text)
    if (text !== undefined && (own === undefined || own < delayMs)) unreadable.push({ pod, text })
    return ageMs(pod, nowMs) > Math.max(delayMs, own ?? 0)
  })
  return { pods: old, unreadable }
}

const newMs = 2000
const newGpuMs = 30_000

/**
 * Whether all pods are so new that more are likely to come. Then this loop neither adds nor removes nodes.
 */
export function areAllNew(pods: readonly Pod[], nowMs: number): boolean {
  const oldest = (of: readonly Pod[]) => Math.max(...of.map((pod) => ageMs(pod, nowMs)))
  const gpuPods = pods.filter(requestsGpu)
  return oldest(pods) < newMs || (gpuPods.length > 0 && oldest(gpuPods) < newGpuMs)
}

function ageMs({ metadata }: Pod, nowMs: number): number {
  const created = Date.parse(metadata.creationTimestamp ?? '')
  return Number.isNaN(created) ? nowMs : nowMs - created
}
