/** Reads what kube-scheduler writes into condition `PodScheduled` of a pod that it refuses. */

/** Reasons of kube-scheduler's own filters, which decisions know as well. */
const knownReasons = [
  /^Insufficient /,
  /^Too many pods/,
  /untolerated taint/,
  /^node\(s\) were (unschedulable|not ready)/,
  /didn't match /,
  /didn't satisfy /,
  /didn't have free ports/,
  /didn't find available persistent volumes/,
  /had volume node affinity conflict/,
  /had no available volume zone/,
  /exceed max volume count/,
  /did not have enough free storage/,
  /no available disk|conflicting disk|disk conflict/,
  /unbound immediate PersistentVolumeClaims/,
  /cannot allocate all claims/,
  /node\(s\) unavailable due to /,
]

/** What a message says: how many nodes the scheduler looked at, and reasons that no filter of its own gives. */
export interface SchedulerMessage {
  readonly nodes: number
  readonly unknownReasons: readonly string[]
}

/** @returns undefined for a text that is not of the form `0/5 nodes are available: 2 Insufficient cpu, 3 …`. */
export function readSchedulerMessage(text: string): SchedulerMessage | undefined {
  const [, count = '', rest = ''] = /^0\/(\d+) nodes are available: ?(.*)$/s.exec(text) ?? []
  if (count === '') return undefined
  // What follows is about preemption, which counts the same nodes again.
  const [ofFilters = ''] = rest.split(/\.? preemption: /)
  const reasons = ofFilters
    .replace(/\.$/, '')
    .split(/, (?=\d+ )/)
    .flatMap((part) => /^\d+ (.*)$/s.exec(part)?.[1] ?? [])
  const unknownReasons = reasons.filter((reason) => !knownReasons.some((known) => known.test(reason)))
  return { nodes: Number(count), unknownReasons }
}
