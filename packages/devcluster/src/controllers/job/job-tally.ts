import type { Pod } from '@tenon/api'
import { isActive, isReady, isTerminating } from '../objects/pods.ts'
import type { Job } from '../objects/workloads.ts'
import { formatIndexes, parseIndexes } from './indexes.ts'
import { failuresBefore, indexOf, isTracked } from './job-pod.ts'
import { failureOf } from './job-policies.ts'

/** Uids of finished pods that are being counted: stored before their finalizer is removed. */
interface Uncounted {
  readonly succeeded: readonly string[]
  readonly failed: readonly string[]
}

/** The progress of a Job. Each pod is counted exactly once, however often it is processed. */
export interface JobTally {
  readonly active: readonly Pod[]
  readonly terminating: number
  readonly ready: number
  readonly succeeded: number
  readonly failed: number
  readonly completedIndexes: ReadonlySet<number>
  /** Indexes that are not retried. */
  readonly failedIndexes: ReadonlySet<number>
  /** Why a failed pod fails the whole Job, if it does. */
  readonly failsJob: string | undefined
  readonly uncounted: Uncounted
  /** Finished pods whose finalizer can be removed once `uncounted` is written. */
  readonly finished: readonly Pod[]
}

export function isIndexed(job: Job): boolean {
  return job.spec.completionMode === 'Indexed'
}

/**
 * Counts the Job's pods by uid: first stored in the status, then released from the finalizer, then counted. A crash
 * between two steps repeats a step and counts nothing twice.
 */
export function tally(job: Job, pods: readonly Pod[]): JobTally {
  const noted = readUncounted(job)
  const held = new Set(pods.filter(isTracked).map((pod) => pod.metadata.uid))
  const settled = (uids: readonly string[]) => uids.filter((uid) => !held.has(uid))
  const pending = (uids: readonly string[]) => uids.filter((uid) => held.has(uid))
  const completions = job.spec.completions ?? 0
  const indexes = isIndexed(job) ? parseIndexes(job.status?.completedIndexes, completions) : new Set<number>()
  const failedIndexes = parseIndexes(job.status?.failedIndexes, completions)
  let failsJob: string | undefined
  const succeeded = pending(noted.succeeded)
  const failed = pending(noted.failed)
  const known = new Set([...succeeded, ...failed])
  const finished: Pod[] = []
  for (const pod of pods) {
    if (!isTracked(pod)) continue
    const outcome = outcomeOf(job, pod)
    if (outcome === undefined) continue
    finished.push(pod)
    const uid = pod.metadata.uid ?? ''
    if (known.has(uid)) continue
    if (outcome === 'failed') {
      const why = countFailure(job, pod, { failed, failedIndexes })
      failsJob ??= why
      continue
    }
    if (isIndexed(job) && !takeIndex(indexes, indexOf(pod), completions)) continue
    succeeded.push(uid)
  }
  const active = pods.filter(isActive)
  const countedSucceeded = (job.status?.succeeded ?? 0) + settled(noted.succeeded).length
  return {
    active,
    terminating: pods.filter((pod) => isTerminating(pod) && !finished.includes(pod)).length,
    ready: active.filter(isReady).length,
    succeeded: isIndexed(job) ? indexes.size : countedSucceeded + succeeded.length,
    failed: (job.status?.failed ?? 0) + settled(noted.failed).length + failed.length,
    completedIndexes: indexes,
    failedIndexes,
    failsJob,
    uncounted: { succeeded, failed },
    finished,
  }
}

/**
 * Counts a failed pod unless it is ignored.
 * @returns why it fails the whole Job, if it does.
 */
function countFailure(
  job: Job,
  pod: Pod,
  { failed, failedIndexes }: { readonly failed: string[]; readonly failedIndexes: Set<number> },
): string | undefined {
  const failure = failureOf(job, pod)
  if (failure.kind === 'ignore') return undefined
  failed.push(pod.metadata.uid ?? '')
  const limit = job.spec.backoffLimitPerIndex ?? Number.POSITIVE_INFINITY
  const index = isIndexed(job) ? indexOf(pod) : undefined
  const isLast = failure.kind === 'failIndex' || failuresBefore(pod) + 1 > limit
  if (index !== undefined && isLast) failedIndexes.add(index)
  return failure.kind === 'failJob' ? failure.message : undefined
}

/** Adds a completed index; returns false if there is none to add. */
function takeIndex(indexes: Set<number>, index: number | undefined, completions: number): boolean {
  if (index === undefined || index >= completions || indexes.has(index)) return false
  indexes.add(index)
  return true
}

/** A deleted pod counts as failed once it has ended, or if it never had a node. */
function outcomeOf(job: Job, pod: Pod): 'succeeded' | 'failed' | undefined {
  if (pod.status?.phase === 'Succeeded') return 'succeeded'
  if (pod.status?.phase === 'Failed') return 'failed'
  if (isTerminating(pod) && (pod.spec.nodeName ?? '') === '') return 'failed'
  const over = isTerminating(pod) && pod.metadata.deletionGracePeriodSeconds === 0
  return over && !job.spec.suspend ? 'failed' : undefined
}

function readUncounted(job: Job): Uncounted {
  const { succeeded = [], failed = [] } = job.status?.uncountedTerminatedPods ?? {}
  return { succeeded, failed }
}

/** The counters as written: pods with a finalizer are separate from counted ones. */
export function tallyStatus(tallied: JobTally, job: Job): Record<string, unknown> {
  const { succeeded, failed } = tallied.uncounted
  const doneSucceeded = isIndexed(job) ? tallied.succeeded : tallied.succeeded - succeeded.length
  const doneFailed = tallied.failed - failed.length
  const indexes = formatIndexes(tallied.completedIndexes)
  return {
    ...(tallied.active.length > 0 && { active: tallied.active.length }),
    ready: tallied.ready,
    terminating: tallied.terminating,
    ...(doneSucceeded > 0 && { succeeded: doneSucceeded }),
    ...(doneFailed > 0 && { failed: doneFailed }),
    ...(indexes !== '' && { completedIndexes: indexes }),
    ...(job.spec.backoffLimitPerIndex !== undefined && {
      failedIndexes: formatIndexes(tallied.failedIndexes),
    }),
    uncountedTerminatedPods: {
      ...(succeeded.length > 0 && { succeeded }),
      ...(failed.length > 0 && { failed }),
    },
  }
}
