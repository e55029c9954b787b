import { kinds, type Pod } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, splitKey } from '../loop/object-cache.ts'
import type { Outcome, Steps } from '../loop/reconcile-loop.ts'
import { findCondition, isConditionTrue } from '../objects/conditions.ts'
import { controllerOf, indexByController } from '../objects/owners.ts'
import { createPod, deletePod } from '../objects/pod-factory.ts'
import { containerStates } from '../objects/pods.ts'
import { type Job, type WorkloadCondition, workloads } from '../objects/workloads.ts'
import { failuresBefore, indexOf, isTracked, jobPod, untracked } from './job-pod.ts'
import { failureOf, successRuleOf } from './job-policies.ts'
import { isIndexed, type JobTally, tally, tallyStatus } from './job-tally.ts'

const component = 'job-controller'
const writesPerStep = 8
const burst = 500
const firstBackoffMs = 10_000
const lastBackoffMs = 360_000

/** Runs pods to completion. */
export function jobs(context: ControllerContext): void {
  const { store } = context
  const cache = store.cache(workloads.job)
  const pods = store.cache(kinds.pod)
  const podsByJob = indexByController(pods)
  const queue = context.loop.queue('jobs', (key) => {
    const { namespace, name } = splitKey(key)
    const job = store.get(workloads.job, namespace, name)
    return job === undefined ? undefined : new JobReconcile(context, podsByJob, job).run()
  })
  // Pods of a deleted Job are not counted; their finalizer would keep them forever.
  const release = context.loop.queue('job-orphan-pods', (key) => {
    const { namespace, name } = splitKey(key)
    const pod = store.get(kinds.pod, namespace, name)
    const owner = pod && controllerOf(pod)
    const job = owner && store.get(workloads.job, namespace, owner.name)
    const held = job !== undefined && job.metadata.uid === owner?.uid && !isFinishedJob(job)
    if (pod !== undefined && !held) store.modify(kinds.pod, pod, untracked)
    return undefined
  })
  cache.onChange((now, _before, job) => {
    queue.add(keyOf(job))
    if (now !== undefined && !isFinishedJob(now)) return
    for (const pod of podsByJob.of(job.metadata.uid ?? '')) if (isTracked(pod)) release.add(keyOf(pod))
  })
  pods.onChange((now, _before, pod) => {
    const owner = controllerOf(pod)
    if (owner?.kind !== 'Job') return
    const key = `${pod.metadata.namespace}/${owner.name}`
    const job = cache.get(key)
    if (job?.metadata.uid === owner.uid) queue.add(key)
    const lost = job?.metadata.uid !== owner.uid || isFinishedJob(job)
    if (lost && now !== undefined && isTracked(now)) release.add(keyOf(now))
  })
}

function isFinishedJob(job: Job): boolean {
  const conditions = job.status?.conditions
  return isConditionTrue(conditions, 'Complete') || isConditionTrue(conditions, 'Failed')
}

type Verdict = {
  readonly type: 'SuccessCriteriaMet' | 'FailureTarget'
  readonly reason: string
  readonly message: string
}

class JobReconcile {
  readonly #context: ControllerContext
  readonly #podsByJob: Index<Pod>
  #job: Job
  #tally: JobTally
  #writes = 0

  constructor(context: ControllerContext, podsByJob: Index<Pod>, job: Job) {
    this.#context = context
    this.#podsByJob = podsByJob
    this.#job = job
    this.#tally = tally(job, this.#pods())
  }

  *run(): Steps {
    const job = this.#job
    if (isFinishedJob(job)) return this.#expire()
    if (job.metadata.deletionTimestamp !== undefined) return undefined
    yield* this.#count()
    this.#syncSuspension()
    const verdict = this.#verdict()
    if (verdict !== undefined) return yield* this.#end(verdict)
    return yield* this.#syncPods()
  }

  /** Stores finished pods in the status, then removes their finalizers, then counts them. */
  *#count(): Generator<undefined, void, undefined> {
    for (let round = 0; round < 2; round++) {
      const { finished, failsJob } = this.#tally
      // Written before the finalizer is removed: afterwards the pod may be gone, and nothing shows that it
      // ended the Job.
      const conditions =
        failsJob === undefined ? [] : [this.#condition('FailureTarget', 'PodFailurePolicy', failsJob)]
      this.#writeStatus({ conditions })
      if (finished.length === 0 && round > 0) return
      for (const pod of finished) {
        this.#context.store.modify(kinds.pod, pod, untracked)
        if (++this.#writes % writesPerStep === 0) yield
      }
      this.#retally()
    }
    this.#writeStatus({})
  }

  #retally(): void {
    const { namespace, name, uid } = this.#job.metadata
    const latest = this.#context.store.get(workloads.job, namespace, name)
    if (latest?.metadata.uid === uid) this.#job = latest as Job
    this.#tally = tally(this.#job, this.#pods())
  }

  #verdict(): Verdict | undefined {
    const { spec, status } = this.#job
    for (const type of ['FailureTarget', 'SuccessCriteriaMet'] as const) {
      const met = findCondition(status?.conditions, type)
      if (met?.status === 'True') return { type, reason: met.reason ?? '', message: met.message ?? '' }
    }
    const refused = this.#failedByIndexes()
    if (refused !== undefined) return refused
    if (this.#tally.failed > (spec.backoffLimit ?? 6)) {
      const message = 'Job has reached the specified backoff limit'
      return { type: 'FailureTarget', reason: 'BackoffLimitExceeded', message }
    }
    if ((this.#deadlineInMs() ?? 1) <= 0) {
      const message = 'Job was active longer than specified deadline'
      return { type: 'FailureTarget', reason: 'DeadlineExceeded', message }
    }
    const rule = successRuleOf(this.#job, this.#tally.completedIndexes)
    if (rule !== undefined)
      return {
        type: 'SuccessCriteriaMet',
        reason: 'SuccessPolicy',
        message: `Matched rules at index ${rule}`,
      }
    if (!this.#isSatisfied()) return undefined
    const message = 'Reached expected number of succeeded pods'
    return { type: 'SuccessCriteriaMet', reason: 'CompletionsReached', message }
  }

  #failedByIndexes(): Verdict | undefined {
    const { completions = 0, maxFailedIndexes } = this.#job.spec
    const { failedIndexes, succeeded } = this.#tally
    if (failedIndexes.size > (maxFailedIndexes ?? Number.POSITIVE_INFINITY)) {
      const message = 'Job has exceeded the specified maximal number of failed indexes'
      return { type: 'FailureTarget', reason: 'MaxFailedIndexesExceeded', message }
    }
    if (failedIndexes.size === 0 || succeeded + failedIndexes.size < completions) return undefined
    return { type: 'FailureTarget', reason: 'FailedIndexes', message: 'Job has failed indexes' }
  }

  #isSatisfied(): boolean {
    const { completions } = this.#job.spec
    if (completions !== undefined) return this.#tally.succeeded >= completions
    return this.#tally.succeeded > 0 && this.#tally.active.length === 0
  }

  #deadlineInMs(): number | undefined {
    const { activeDeadlineSeconds, suspend } = this.#job.spec
    const started = Date.parse(this.#job.status?.startTime ?? '')
    if (activeDeadlineSeconds === undefined || suspend || Number.isNaN(started)) return undefined
    return started + activeDeadlineSeconds * 1000 - this.#context.clock.now()
  }

  /** Deletes running pods, and sets the terminal condition when none is left. */
  *#end(verdict: Verdict): Steps {
    const { type, reason, message } = verdict
    this.#writeStatus({ conditions: [this.#condition(type, reason, message)] })
    for (const pod of this.#tally.active) {
      deletePod(this.#context, component, this.#job, pod)
      if (++this.#writes % writesPerStep === 0) yield
    }
    yield* this.#count()
    if (this.#tally.active.length > 0 || this.#tally.terminating > 0) return undefined
    const succeeded = type === 'SuccessCriteriaMet'
    const terminal = this.#condition(succeeded ? 'Complete' : 'Failed', reason, message)
    this.#writeStatus({ conditions: [terminal], completed: succeeded })
    const { events } = this.#context
    if (succeeded) events.record(component, this.#job, 'Normal', 'Completed', 'Job completed')
    else events.record(component, this.#job, 'Warning', reason, message)
    return { afterMs: 0 }
  }

  #syncSuspension(): void {
    const { spec, status } = this.#job
    const suspended = isConditionTrue(status?.conditions, 'Suspended')
    if (spec.suspend && !suspended) {
      const condition = this.#condition('Suspended', 'JobSuspended', 'Job suspended')
      this.#writeStatus({ conditions: [condition], stopped: true })
      this.#context.events.record(component, this.#job, 'Normal', 'Suspended', 'Job suspended')
    } else if (!spec.suspend && suspended) {
      const condition = this.#condition('Suspended', 'JobResumed', 'Job resumed', 'False')
      this.#writeStatus({ conditions: [condition], started: true })
      this.#context.events.record(component, this.#job, 'Normal', 'Resumed', 'Job resumed')
    } else if (!spec.suspend && status?.startTime === undefined) {
      this.#writeStatus({ started: true })
    }
  }

  *#syncPods(): Steps {
    const { active } = this.#tally
    const wanted = this.#wantedActive()
    const pauseMs = this.#failurePauseMs()
    const outOfRange = this.#superfluous(wanted)
    for (const pod of outOfRange) {
      deletePod(this.#context, component, this.#job, pod)
      if (++this.#writes % writesPerStep === 0) yield
    }
    const ending = this.#job.spec.podReplacementPolicy === 'Failed' ? this.#tally.terminating : 0
    const missing = wanted - (active.length - outOfRange.length) - ending
    let refused = false
    if (missing > 0 && pauseMs <= 0) refused = yield* this.#create(Math.min(missing, burst))
    this.#retally()
    this.#writeStatus({})
    if (refused) return { backOff: true }
    if (missing > burst) return { afterMs: 0 }
    const waits = [this.#deadlineInMs(), missing > 0 && pauseMs > 0 ? pauseMs : undefined]
    const afterMs = Math.min(...waits.filter((ms) => ms !== undefined))
    const touched = this.#tally.active.length
    return Number.isFinite(afterMs) ? { touched, afterMs: Math.max(1, afterMs) } : { touched }
  }

  #wantedActive(): number {
    const { completions, parallelism = 1, suspend } = this.#job.spec
    if (suspend) return 0
    const { succeeded, active, failedIndexes } = this.#tally
    if (completions === undefined) return succeeded > 0 ? Math.min(active.length, parallelism) : parallelism
    return Math.max(0, Math.min(parallelism, completions - succeeded - failedIndexes.size))
  }

  /**
   * Active pods above the desired number: those of completed or duplicate indexes first, then the youngest.
   */
  #superfluous(wanted: number): Pod[] {
    const seen = new Set<number>([...this.#tally.completedIndexes, ...this.#tally.failedIndexes])
    const useless: Pod[] = []
    const useful: Pod[] = []
    for (const pod of [...this.#tally.active].sort(oldestFirst)) {
      const index = isIndexed(this.#job) ? indexOf(pod) : undefined
      if (isIndexed(this.#job) && (index === undefined || seen.has(index))) useless.push(pod)
      else useful.push(pod)
      if (index !== undefined) seen.add(index)
    }
    return [...useless, ...useful.slice(Math.max(0, wanted))]
  }

  *#create(count: number): Generator<undefined, boolean, undefined> {
    const indexes = isIndexed(this.#job) ? this.#freeIndexes(count) : Array<undefined>(count).fill(undefined)
    for (const index of indexes) {
      try {
        createPod(this.#context, component, this.#job, jobPod(this.#job, index, this.#failuresOf(index)))
      } catch (error) {
        this.#context.log.debug('job pod not created', { job: keyOf(this.#job), error })
        return true
      }
      if (++this.#writes % writesPerStep === 0) yield
    }
    return false
  }

  #failuresOf(index: number | undefined): number {
    if (index === undefined || this.#job.spec.backoffLimitPerIndex === undefined) return 0
    const failed = this.#pods().filter((pod) => pod.status?.phase === 'Failed' && indexOf(pod) === index)
    const counts = failed.map(
      (pod) => failuresBefore(pod) + (failureOf(this.#job, pod).kind === 'ignore' ? 0 : 1),
    )
    return Math.max(0, ...counts)
  }

  #freeIndexes(count: number): number[] {
    const taken = new Set<number>([...this.#tally.completedIndexes, ...this.#tally.failedIndexes])
    for (const pod of this.#tally.active) {
      const index = indexOf(pod)
      if (index !== undefined) taken.add(index)
    }
    const free: number[] = []
    for (let index = 0; index < (this.#job.spec.completions ?? 0) && free.length < count; index++) {
      if (!taken.has(index)) free.push(index)
    }
    return free
  }

  /** Back-off after failures without a success since: 10 s, 20 s, … up to 6 min. */
  #failurePauseMs(): number {
    const failures = this.#pods().filter((pod) => pod.status?.phase === 'Failed')
    if (failures.length === 0) return 0
    const count = Math.max(1, this.#tally.failed)
    const last = Math.max(...failures.map((pod) => finishedAt(pod)))
    const pauseMs = Math.min(lastBackoffMs, firstBackoffMs * 2 ** Math.min(count - 1, 10))
    return last + pauseMs - this.#context.clock.now()
  }

  #expire(): Outcome {
    const { ttlSecondsAfterFinished } = this.#job.spec
    if (ttlSecondsAfterFinished === undefined || this.#job.metadata.deletionTimestamp !== undefined)
      return undefined
    const { conditions } = this.#job.status ?? {}
    const end = findCondition(conditions, 'Complete') ?? findCondition(conditions, 'Failed')
    const since = Date.parse(end?.lastTransitionTime ?? '')
    const leftMs = since + ttlSecondsAfterFinished * 1000 - this.#context.clock.now()
    if (leftMs > 0) return { afterMs: leftMs }
    this.#context.store.delete(workloads.job, this.#job, { propagationPolicy: 'Foreground' })
    return undefined
  }

  #condition(
    type: string,
    reason: string,
    message: string,
    status: 'True' | 'False' = 'True',
  ): WorkloadCondition {
    const now = rfc3339(this.#context.clock.now())
    return { type, status, reason, message, lastProbeTime: now, lastTransitionTime: now }
  }

  #writeStatus(change: {
    readonly conditions?: readonly WorkloadCondition[]
    readonly started?: boolean
    readonly stopped?: boolean
    readonly completed?: boolean
  }): void {
    const now = rfc3339(this.#context.clock.now())
    const { conditions = [], startTime: oldStart, completionTime } = this.#job.status ?? {}
    const fresh = (change.conditions ?? []).filter((each) => {
      const old = findCondition(conditions, each.type)
      return old?.status !== each.status
    })
    const kept = conditions.filter((each) => !fresh.some((condition) => condition.type === each.type))
    const merged = [...kept, ...fresh]
    const startTime = change.stopped ? undefined : change.started ? now : oldStart
    const end = change.completed ? now : completionTime
    const status = {
      ...(merged.length > 0 && { conditions: merged }),
      ...(startTime !== undefined && { startTime }),
      ...(end !== undefined && { completionTime: end }),
      ...tallyStatus(this.#tally, this.#job),
    }
    if (this.#context.store.setStatus(workloads.job, this.#job, status)) this.#retally()
  }

  #pods(): Pod[] {
    return [...this.#podsByJob.of(this.#job.metadata.uid ?? '')]
  }
}

function finishedAt(pod: Pod): number {
  const times = containerStates(pod).map((each) => Date.parse(each.state?.terminated?.finishedAt ?? ''))
  const known = times.filter((time) => !Number.isNaN(time))
  if (known.length > 0) return Math.max(...known)
  return Date.parse(pod.status?.startTime ?? pod.metadata.creationTimestamp ?? '') || 0
}

function oldestFirst(a: Pod, b: Pod): number {
  const left = a.metadata.creationTimestamp ?? ''
  const right = b.metadata.creationTimestamp ?? ''
  if (left !== right) return left < right ? -1 : 1
  return a.metadata.name < b.metadata.name ? -1 : 1
}
