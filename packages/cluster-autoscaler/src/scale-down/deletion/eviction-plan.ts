/**
 * Which pods of a node are evicted, in which order, and how long each may take (cluster-autoscaler.md 6.6).
 */
import { ownValue, type Pod } from '@tenon/api'
import { annotations } from '../../names.ts'
import type { ScaleDownOptions } from '../../options/options.ts'
import type { Drain } from '../drain/node-drain.ts'
import { graceSeconds } from '../../pods/pod-traits.ts'
import type { DeletionKind } from './deletion-job.ts'

/** How much longer than its grace period a pod may take. */
const headroomMs = 30_000

export interface Eviction {
  readonly pod: Pod
  readonly graceSeconds: number
}

/** Pods that are evicted together. */
export interface EvictionGroup {
  readonly evictions: readonly Eviction[]
  /** How long all of them may take after the eviction. */
  readonly goneWithinMs: number
}

export interface EvictionPlan {
  /** One after the other. */
  readonly groups: readonly EvictionGroup[]
  /** DaemonSet pods, evicted with the first group; their end is not awaited. */
  readonly bestEffort: readonly Eviction[]
}

type Options = Pick<
  ScaleDownOptions,
  | 'maxGracefulTerminationSeconds'
  | 'drainPriorities'
  | 'daemonSetEvictionForEmptyNodes'
  | 'daemonSetEvictionForOccupiedNodes'
>

export function evictionPlan(drain: Drain, kind: DeletionKind, options: Options): EvictionPlan {
  const ofDaemonSets = drain.ofDaemonSets.filter((pod) => isDaemonSetPodEvicted(pod, kind, options))
  if (options.drainPriorities.length > 0) {
    return { groups: byPriority([...drain.toMove, ...ofDaemonSets], options), bestEffort: [] }
  }
  const cap = options.maxGracefulTerminationSeconds
  const bestEffort = ofDaemonSets.map((pod) => evictionOf(pod, cap))
  if (drain.toMove.length === 0) return { groups: [], bestEffort }
  return { groups: [groupOf(drain.toMove, cap)], bestEffort }
}

/** The pod's annotation overrides the option; only `true` requests the eviction. */
function isDaemonSetPodEvicted(pod: Pod, kind: DeletionKind, options: Options): boolean {
  const wanted = ownValue(pod.metadata.annotations, annotations.enableDaemonSetEviction)
  if (wanted !== undefined) return wanted === 'true'
  return kind === 'empty' ? options.daemonSetEvictionForEmptyNodes : options.daemonSetEvictionForOccupiedNodes
}

/** A pod belongs to the highest priority that is not above its own, else to the lowest. */
function byPriority(pods: readonly Pod[], { drainPriorities }: Options): EvictionGroup[] {
  const ascending = drainPriorities.toSorted((a, b) => a.priority - b.priority)
  const groups = ascending.map((): Pod[] => [])
  for (const pod of pods) {
    const own = pod.spec.priority ?? 0
    const index = Math.max(
      0,
      ascending.findLastIndex(({ priority }) => priority <= own),
    )
    groups[index]?.push(pod)
  }
  return groups.flatMap((members, index) =>
    members.length === 0 ? [] : [groupOf(members, ascending[index]?.graceSeconds ?? 0)],
  )
}

function groupOf(pods: readonly Pod[], capSeconds: number): EvictionGroup {
  const evictions = pods.map((pod) => evictionOf(pod, capSeconds))
  const seconds = capSeconds > 0 ? capSeconds : Math.max(...evictions.map((each) => each.graceSeconds))
  return { evictions, goneWithinMs: seconds * 1000 + headroomMs }
}

/** @param capSeconds 0 = as long as the pod specifies. */
function evictionOf(pod: Pod, capSeconds: number): Eviction {
  const own = graceSeconds(pod)
  return { pod, graceSeconds: capSeconds > 0 ? Math.min(own, capSeconds) : own }
}
