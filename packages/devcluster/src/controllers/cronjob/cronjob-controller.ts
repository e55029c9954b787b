import { rfc3339 } from '@tenon/runtime'
import { ApiError } from '../../contract.ts'
import { cronSchedule, type CronSchedule } from '../../schema/cron-schedule.ts'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, splitKey } from '../loop/object-cache.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'
import { isConditionTrue } from '../objects/conditions.ts'
import { controllerOf, controllerReference, indexByController } from '../objects/owners.ts'
import { type CronJob, type Job, type ObjectReference, workloads } from '../objects/workloads.ts'

const component = 'cronjob-controller'
/** Above this number of missed runs, an event is recorded. */
const mostMissed = 100
/** Clocks may jump and timers are bounded, so a distant run is checked again at least this often. */
const longestWaitMs = 3_600_000

/** Creates Jobs on a schedule. */
export function cronJobs(context: ControllerContext): void {
  const { store } = context
  const cache = store.cache(workloads.cronJob)
  const jobs = store.cache(workloads.job)
  const jobsByOwner = indexByController(jobs)
  const queue = context.loop.queue('cronjobs', (key) => {
    const { namespace, name } = splitKey(key)
    const cronJob = store.get(workloads.cronJob, namespace, name)
    return cronJob === undefined ? undefined : new CronJobReconcile(context, jobsByOwner, cronJob).run()
  })
  cache.onChange((now) => {
    if (now !== undefined) queue.add(keyOf(now))
  })
  jobs.onChange((_now, _before, job) => {
    const owner = controllerOf(job)
    if (owner?.kind === 'CronJob') queue.add(`${job.metadata.namespace}/${owner.name}`)
  })
}

/** How a Job ended. */
function endOf(job: Job): 'Complete' | 'Failed' | undefined {
  const { conditions } = job.status ?? {}
  if (isConditionTrue(conditions, 'Complete')) return 'Complete'
  return isConditionTrue(conditions, 'Failed') ? 'Failed' : undefined
}

class CronJobReconcile {
  readonly #context: ControllerContext
  readonly #cronJob: CronJob
  readonly #jobs: readonly Job[]
  #active: readonly ObjectReference[]
  #lastScheduleTime: string | undefined
  #lastSuccessfulTime: string | undefined

  constructor(context: ControllerContext, jobsByOwner: Index<Job>, cronJob: CronJob) {
    this.#context = context
    this.#cronJob = cronJob
    this.#jobs = [...jobsByOwner.of(cronJob.metadata.uid ?? '')]
    const { active = [], lastScheduleTime, lastSuccessfulTime } = cronJob.status ?? {}
    this.#active = active
    this.#lastScheduleTime = lastScheduleTime
    this.#lastSuccessfulTime = lastSuccessfulTime
  }

  run(): Outcome {
    this.#followJobs()
    const outcome = this.#schedule()
    this.#writeStatus()
    this.#removeOldJobs()
    return outcome
  }

  /** Removes Jobs that have ended or are gone from the list of active ones. */
  #followJobs(): void {
    const active = new Set(this.#active.map(({ uid }) => uid))
    for (const job of this.#jobs) {
      const end = endOf(job)
      const listed = active.has(job.metadata.uid)
      if (!listed && end === undefined) {
        const message = `Saw a job that the controller did not create or forgot: ${job.metadata.name}`
        this.#tell('Warning', 'UnexpectedJob', message)
      } else if (listed && end !== undefined) {
        this.#drop(job.metadata.uid)
        const message = `Saw completed job: ${job.metadata.name}, condition: ${end}`
        this.#tell('Normal', 'SawCompletedJob', message)
      }
      if (end === 'Complete') this.#noteSuccess(job)
    }
    const present = new Set(this.#jobs.map(({ metadata }) => metadata.uid))
    for (const { uid, name } of this.#active) {
      if (present.has(uid)) continue
      this.#drop(uid)
      this.#tell('Normal', 'MissingJob', `Active job went missing: ${name}`)
    }
  }

  #noteSuccess(job: Job): void {
    const time = job.status?.completionTime ?? ''
    if (time > (this.#lastSuccessfulTime ?? '')) this.#lastSuccessfulTime = time
  }

  #drop(uid: string | undefined): void {
    this.#active = this.#active.filter((each) => each.uid !== uid)
  }

  #schedule(): Outcome {
    const { spec, metadata } = this.#cronJob
    if (metadata.deletionTimestamp !== undefined || spec.suspend) return undefined
    const schedule = cronSchedule(spec.schedule, spec.timeZone ?? 'UTC')
    if (schedule === undefined) {
      this.#tell('Warning', 'UnparseableSchedule', `unparseable schedule: "${spec.schedule}"`)
      return undefined
    }
    const now = this.#context.clock.now()
    const due = this.#dueRun(schedule, now)
    if (due !== undefined) this.#runAt(due, now)
    const next = schedule.next(now)
    return next === undefined ? undefined : { afterMs: Math.min(longestWaitMs, Math.max(1, next - now)) }
  }

  /** The latest run that has not started; earlier missed ones are skipped. */
  #dueRun(schedule: CronSchedule, now: number): number | undefined {
    const { spec, metadata } = this.#cronJob
    const since = Date.parse(this.#lastScheduleTime ?? metadata.creationTimestamp ?? '')
    const deadlineMs = (spec.startingDeadlineSeconds ?? Number.POSITIVE_INFINITY) * 1000
    const earliest = Math.max(Number.isNaN(since) ? now : since, now - deadlineMs)
    const due = schedule.last(earliest, now)
    if (due === undefined) return undefined
    let missed = 0
    let run = schedule.next(earliest)
    while (run !== undefined && run < due && missed <= mostMissed) {
      missed++
      run = schedule.next(run)
    }
    if (missed > mostMissed) {
      const message =
        'too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew'
      this.#tell('Warning', 'TooManyMissedTimes', message)
    }
    return due
  }

  #runAt(due: number, now: number): void {
    const { spec } = this.#cronJob
    const { startingDeadlineSeconds: deadline, concurrencyPolicy } = spec
    if (deadline !== undefined && due + deadline * 1000 < now) {
      this.#tell('Warning', 'MissSchedule', `Missed scheduled time to start a job: ${rfc3339(due)}`)
      return
    }
    if (concurrencyPolicy === 'Forbid' && this.#active.length > 0) {
      const message = 'Not starting job because prior execution is running and concurrency policy is Forbid'
      this.#tell('Normal', 'JobAlreadyActive', message)
      return
    }
    if (concurrencyPolicy === 'Replace') for (const { uid } of this.#active) this.#remove(uid)
    this.#create(due)
  }

  #remove(uid: string | undefined): void {
    const job = this.#jobs.find(({ metadata }) => metadata.uid === uid)
    this.#drop(uid)
    if (job === undefined || !this.#delete(job)) return
    this.#tell('Normal', 'SuccessfulDelete', `Deleted job ${job.metadata.name}`)
  }

  #delete(job: Job): boolean {
    return this.#context.store.delete(workloads.job, job, { propagationPolicy: 'Background' })
  }

  /** The name is derived from the time, so that a run starts only once. */
  #create(due: number): void {
    const { store } = this.#context
    const wanted = jobOf(this.#cronJob, due)
    const { namespace, name } = wanted.metadata
    try {
      if (store.createIfAbsent(workloads.job, wanted)) {
        this.#tell('Normal', 'SuccessfulCreate', `Created job ${name}`)
      }
    } catch (error) {
      if (error instanceof ApiError) {
        this.#tell('Warning', 'FailedCreate', `Error creating job: ${error.message}`)
      }
      throw error
    }
    const job = store.get(workloads.job, namespace, name)
    if (
      job !== undefined &&
      endOf(job) === undefined &&
      controllerOf(job)?.uid === this.#cronJob.metadata.uid
    )
      this.#active = [...this.#active.filter(({ uid }) => uid !== job.metadata.uid), referenceTo(job)]
    this.#lastScheduleTime = rfc3339(due)
  }

  #removeOldJobs(): void {
    const { successfulJobsHistoryLimit, failedJobsHistoryLimit } = this.#cronJob.spec
    const removeBeyond = (end: 'Complete' | 'Failed', limit: number | undefined) => {
      if (limit === undefined) return
      const ended = this.#jobs.filter((job) => endOf(job) === end).sort(oldestFirst)
      for (const job of ended.slice(0, Math.max(0, ended.length - limit))) {
        if (job.metadata.deletionTimestamp !== undefined || !this.#delete(job)) continue
        this.#tell('Normal', 'SuccessfulDelete', `Deleted job ${job.metadata.name}`)
      }
    }
    removeBeyond('Complete', successfulJobsHistoryLimit)
    removeBeyond('Failed', failedJobsHistoryLimit)
  }

  #writeStatus(): void {
    this.#context.store.setStatus(workloads.cronJob, this.#cronJob, {
      ...(this.#active.length > 0 && { active: this.#active }),
      ...(this.#lastScheduleTime !== undefined && { lastScheduleTime: this.#lastScheduleTime }),
      ...(this.#lastSuccessfulTime !== undefined && { lastSuccessfulTime: this.#lastSuccessfulTime }),
    })
  }

  #tell(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.events.record(component, this.#cronJob, type, reason, message)
  }
}

function oldestFirst(a: Job, b: Job): number {
  const [left, right] = [a.status?.startTime ?? '', b.status?.startTime ?? '']
  if (left !== right) return left < right ? -1 : 1
  return a.metadata.name < b.metadata.name ? -1 : 1
}

function referenceTo(job: Job): ObjectReference {
  const { namespace = '', name, uid = '' } = job.metadata
  return { apiVersion: 'batch/v1', kind: 'Job', namespace, name, uid }
}

function jobOf(cronJob: CronJob, due: number): Job {
  const { metadata: { labels, annotations } = {}, spec } = cronJob.spec.jobTemplate
  const { namespace = '', name } = cronJob.metadata
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: `${name}-${Math.floor(due / 60_000)}`,
      namespace,
      ...(labels !== undefined && { labels }),
      annotations: {
        ...annotations,
        'batch.kubernetes.io/cronjob-scheduled-timestamp': zonedTime(due, cronJob.spec.timeZone),
      },
      ownerReferences: [controllerReference(cronJob, workloads.cronJob)],
    },
    spec,
  }
}

/** RFC 3339 with the offset of a time zone at that time (`2026-07-01T12:00:00+02:00`). */
function zonedTime(ms: number, timeZone: string | undefined): string {
  const minutes = timeZone === undefined ? 0 : offsetMinutes(ms, timeZone)
  if (minutes === 0) return rfc3339(ms)
  const size = Math.abs(minutes)
  const offset = [Math.floor(size / 60), size % 60].map((part) => String(part).padStart(2, '0')).join(':')
  return `${rfc3339(ms + minutes * 60_000).slice(0, 19)}${minutes < 0 ? '-' : '+'}${offset}`
}

function offsetMinutes(ms: number, timeZone: string): number {
  const parts = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' }).formatToParts(ms)
  const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign, hours = '0', minutes = '0'] = /GMT([+-])(\d+)(?::(\d+))?/.exec(name) ?? []
  if (sign === undefined) return 0
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}
