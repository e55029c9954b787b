import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isConditionTrue } from '../objects/conditions.ts'
import { type CronJob, type Job, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

const minutes = 60_000

function open(t: TestContext): World {
  const world = startWorld()
  t.after(() => world.stop())
  world.endsAs = () => 'Succeeded'
  return world
}

function create(world: World, spec: Partial<CronJob['spec']> = {}, name = 'report'): void {
  const { metadata, spec: pod } = template('report')
  world.api.create<CronJob>(workloads.cronJob, {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name, namespace: 'default' },
    spec: {
      schedule: '* * * * *',
      jobTemplate: {
        metadata: { labels: { team: 'finance' }, annotations: { note: 'kept' } },
        spec: { template: { metadata, spec: { ...pod, restartPolicy: 'Never' } } },
      },
      ...spec,
    },
  })
}

const cronJob = (world: World) => world.api.get(workloads.cronJob, 'default', 'report') as CronJob
const jobs = (world: World) => world.api.list<Job>(workloads.job)
const active = (world: World) =>
  jobs(world).filter(
    ({ status }) =>
      !isConditionTrue(status?.conditions, 'Complete') && !isConditionTrue(status?.conditions, 'Failed'),
  )

/** Times, as hours and minutes, at which Jobs were meant to run. */
const runs = (world: World) =>
  jobs(world).map(({ metadata }) =>
    metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp']?.slice(11, 16),
  )

/** Advances to a time of day of the day on which the world began. */
async function until(world: World, time: string, second = 0): Promise<void> {
  const day = new Date(world.clock.now()).toISOString().slice(0, 10)
  const at = Date.parse(`${day}T${time}:00Z`) + second * 1000
  await world.clock.advance(at - world.clock.now())
}

test('RPT-56 a CronJob of every minute makes a Job each minute, and keeps the last three', async (t) => {
  const world = open(t)
  await until(world, '12:00', 30)
  create(world)
  await until(world, '12:01', 1)
  assert.deepEqual(runs(world), ['12:01'])
  const [job] = jobs(world)
  assert.equal(job?.metadata.name, `report-${Math.floor(world.clock.now() / minutes)}`)
  assert.equal(job.metadata.labels?.['team'], 'finance')
  assert.equal(job.metadata.annotations?.['note'], 'kept')
  assert.deepEqual(
    cronJob(world).status?.active?.map(({ name }) => name),
    [job.metadata.name],
  )
  await until(world, '12:05', 30)
  assert.deepEqual(runs(world), ['12:03', '12:04', '12:05'])
  const { status } = cronJob(world)
  assert.equal(status?.lastScheduleTime?.slice(11, 19), '12:05:00')
  assert.equal(status.active, undefined)
  assert.ok((status.lastSuccessfulTime ?? '') > (status.lastScheduleTime ?? ''))
  assert.equal(world.pods().length, 3)
})

test('RPT-56 failed Jobs have a limit of their own', async (t) => {
  const world = open(t)
  await until(world, '12:00', 30)
  world.endsAs = () => (new Date(world.clock.now()).getUTCMinutes() % 2 === 0 ? 'Failed' : 'Succeeded')
  create(world, {
    successfulJobsHistoryLimit: 2,
    failedJobsHistoryLimit: 1,
    jobTemplate: {
      spec: {
        backoffLimit: 0,
        template: { metadata: {}, spec: { ...template('x').spec, restartPolicy: 'Never' } },
      },
    },
  })
  await until(world, '12:06', 40)
  assert.deepEqual(runs(world), ['12:03', '12:05', '12:06'])
})

test('RPT-56 policy Forbid waits for the Job before, Replace ends it, Allow lets both run', async (t) => {
  const results: Record<string, readonly (string | undefined)[]> = {}
  for (const concurrencyPolicy of ['Forbid', 'Replace', 'Allow'] as const) {
    const world = open(t)
    world.endsAs = () => undefined
    await until(world, '12:00', 30)
    create(world, { concurrencyPolicy })
    await until(world, '12:03', 30)
    results[concurrencyPolicy] = runs(world)
    assert.equal(cronJob(world).status?.active?.length, active(world).length)
    if (concurrencyPolicy === 'Forbid')
      assert.match(world.events('JobAlreadyActive')[0] ?? '', /concurrency policy is Forbid/)
  }
  assert.deepEqual(results, {
    Forbid: ['12:01'],
    Replace: ['12:03'],
    Allow: ['12:01', '12:02', '12:03'],
  })
})

test('RPT-56 nothing runs while suspended, and only the latest missed run afterwards', async (t) => {
  const world = open(t)
  await until(world, '12:00', 30)
  create(world, { suspend: true, schedule: '*/2 * * * *' })
  await until(world, '12:09')
  assert.deepEqual(runs(world), [])
  world.api.patch(workloads.cronJob, 'default', 'report', { spec: { suspend: false } })
  await until(world, '12:09', 30)
  assert.deepEqual(runs(world), ['12:08'])
})

test('RPT-56 a run missed for longer than startingDeadlineSeconds is left out', async (t) => {
  const world = open(t)
  await until(world, '12:00', 30)
  create(world, { suspend: true, schedule: '0 * * * *', startingDeadlineSeconds: 120 })
  await until(world, '13:03')
  world.api.patch(workloads.cronJob, 'default', 'report', { spec: { suspend: false } })
  await until(world, '13:30')
  assert.deepEqual(runs(world), [])
  await until(world, '14:00', 1)
  assert.deepEqual(runs(world), ['14:00'])
})

test('RPT-56 a schedule is read in its time zone', async (t) => {
  const world = open(t)
  create(world, { schedule: '30 9 * * *', timeZone: 'Asia/Kolkata' })
  await world.clock.advance(24 * 60 * minutes)
  const [job] = jobs(world)
  assert.match(
    job?.metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'] ?? '',
    /T09:30:00\+05:30$/,
  )
  assert.match(cronJob(world).status?.lastScheduleTime ?? '', /T04:00:00Z$/)
})

test('RPT-56 a restart in the middle runs nothing twice and misses nothing', async (t) => {
  const world = open(t)
  await until(world, '12:00', 30)
  create(world, { successfulJobsHistoryLimit: 10 })
  await until(world, '12:02')
  world.restart()
  await until(world, '12:03')
  world.restart()
  await until(world, '12:04', 30)
  assert.deepEqual(runs(world), ['12:01', '12:02', '12:03', '12:04'])
})

test('RPT-56 the forms of a schedule: macros, names, steps, @every', async (t) => {
  const world = open(t)
  await until(world, '12:00', 30)
  const forms = {
    hourly: '@hourly',
    named: '15 * * JAN-DEC sun-sat',
    steps: '0-59/20 */1 ? * *',
    delay: '@every 25m',
  }
  for (const [name, schedule] of Object.entries(forms))
    create(world, { schedule, successfulJobsHistoryLimit: 10 }, name)
  await until(world, '13:01')
  const of = (name: string) =>
    jobs(world)
      .filter(({ metadata }) => metadata.ownerReferences?.[0]?.name === name)
      .map(({ metadata }) =>
        metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp']?.slice(11, 16),
      )
  assert.deepEqual(of('hourly'), ['13:00'])
  assert.deepEqual(of('named'), ['12:15'])
  assert.deepEqual(of('steps'), ['12:20', '12:40', '13:00'])
  assert.deepEqual(of('delay'), ['12:25', '12:50'])
})

test('RPT-56 a schedule or a time zone that cannot be read is refused', (t) => {
  const world = open(t)
  const refusals: Readonly<Record<string, Partial<CronJob['spec']>>> = {
    'spec.schedule: Invalid value: "every day": expected exactly 5 fields, found 2: [every day]': {
      schedule: 'every day',
    },
    'spec.schedule: Invalid value: "61 * * * *"': { schedule: '61 * * * *' },
    'spec.schedule: Invalid value: "* * * * 7"': { schedule: '* * * * 7' },
    'spec.schedule: Invalid value: "@often"': { schedule: '@often' },
    'cannot use TZ or CRON_TZ in schedule, use timeZone field instead': { schedule: 'TZ=UTC 0 * * * *' },
    'spec.timeZone: Invalid value: "Moon/Crater": unknown time zone Moon/Crater': { timeZone: 'Moon/Crater' },
    'must be nil or non-empty string': { timeZone: '' },
  }
  for (const [message, spec] of Object.entries(refusals))
    assert.throws(
      () => create(world, spec),
      (error: Error) => error.message.includes(message),
      message,
    )
  assert.throws(() => create(world, {}, 'x'.repeat(53)), /must be no more than 52 characters/)
})
