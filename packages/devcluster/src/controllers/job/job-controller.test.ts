import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { findCondition } from '../objects/conditions.ts'
import { isActive } from '../objects/pods.ts'
import { type Job, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

function create(world: World, spec: Partial<Job['spec']> = {}): void {
  const { metadata, spec: pod } = template('job')
  world.api.create(workloads.job, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'work', namespace: 'default' },
    spec: {
      completions: 1,
      parallelism: 1,
      template: { metadata, spec: { ...pod, restartPolicy: 'Never' } },
      ...spec,
    },
  })
}

const read = (world: World) => world.api.get(workloads.job, 'default', 'work') as Job
const condition = (world: World, type: string) => findCondition(read(world).status?.conditions, type)

test('a Job runs completions with at most parallelism pods at once, then is Complete', async () => {
  const world = startWorld()
  world.endsAs = () => 'Succeeded'
  create(world, { completions: 5, parallelism: 2 })
  let most = 0
  const done = await world.clock.advanceUntil(() => {
    most = Math.max(most, world.pods().filter(isActive).length)
    return condition(world, 'Complete')?.status === 'True'
  }, 60_000)
  assert.ok(done)
  assert.equal(most, 2)
  assert.equal(read(world).status?.succeeded, 5)
  assert.equal(read(world).status?.active, undefined)
  assert.ok(read(world).status?.completionTime)
  assert.equal(condition(world, 'SuccessCriteriaMet')?.status, 'True')
  assert.equal(world.pods().length, 5)
  assert.ok(world.pods().every((pod) => (pod.metadata.finalizers ?? []).length === 0))
  assert.deepEqual(world.events('Completed'), ['Job completed'])
  world.stop()
})

test('an Indexed Job gives every index one success', async () => {
  const world = startWorld()
  let failed = false
  world.endsAs = (pod) => {
    const first = pod.metadata.annotations?.['batch.kubernetes.io/job-completion-index'] === '1' && !failed
    if (first) failed = true
    return first ? 'Failed' : 'Succeeded'
  }
  create(world, { completions: 4, parallelism: 4, completionMode: 'Indexed' })
  await world.settle(60_000)
  assert.equal(read(world).status?.completedIndexes, '0-3')
  assert.equal(condition(world, 'Complete')?.status, 'True')
  assert.equal(read(world).status?.failed, 1)
  const names = world.pods().map((pod) => pod.metadata.name.slice(0, -6))
  assert.deepEqual([...new Set(names)].sort(), ['work-0', 'work-1', 'work-2', 'work-3'])
  world.stop()
})

test('more failures than backoffLimit fail the Job, with growing pauses before', async () => {
  const world = startWorld()
  world.endsAs = () => 'Failed'
  create(world, { backoffLimit: 2 })
  await world.settle(8_000)
  assert.equal(world.pods().length, 1)
  await world.settle(120_000)
  assert.equal(condition(world, 'Failed')?.reason, 'BackoffLimitExceeded')
  assert.equal(condition(world, 'FailureTarget')?.status, 'True')
  assert.equal(read(world).status?.failed, 3)
  assert.equal(world.pods().length, 3)
  world.stop()
})

test('activeDeadlineSeconds ends a Job that runs too long', async () => {
  const world = startWorld()
  create(world, { activeDeadlineSeconds: 30 })
  await world.settle(20_000)
  assert.equal(world.pods().filter(isActive).length, 1)
  await world.settle(20_000)
  assert.equal(condition(world, 'Failed')?.reason, 'DeadlineExceeded')
  assert.equal(world.pods().filter(isActive).length, 0)
  world.stop()
})

test('a suspended Job has no pods, and runs once resumed', async () => {
  const world = startWorld()
  create(world, { suspend: true })
  await world.settle()
  assert.equal(world.pods().length, 0)
  assert.equal(condition(world, 'Suspended')?.status, 'True')
  world.endsAs = () => 'Succeeded'
  world.api.update(workloads.job, { ...read(world), spec: { ...read(world).spec, suspend: false } })
  await world.settle(20_000)
  assert.equal(condition(world, 'Complete')?.status, 'True')
  world.stop()
})

test('ttlSecondsAfterFinished removes the Job and its pods', async () => {
  const world = startWorld()
  world.endsAs = () => 'Succeeded'
  create(world, { ttlSecondsAfterFinished: 60 })
  await world.settle(30_000)
  assert.equal(condition(world, 'Complete')?.status, 'True')
  await world.settle(60_000)
  assert.equal(world.api.get(workloads.job, 'default', 'work'), undefined)
  assert.equal(world.api.list(kinds.pod).length, 0)
  world.stop()
})

test('restarts count no pod twice', async () => {
  const world = startWorld()
  world.endsAs = () => 'Succeeded'
  create(world, { completions: 10, parallelism: 3 })
  for (let i = 0; i < 40; i++) {
    await world.clock.advance(370)
    world.restart()
  }
  await world.settle(20_000)
  assert.equal(condition(world, 'Complete')?.status, 'True')
  assert.equal(read(world).status?.succeeded, 10)
  assert.equal(world.pods().length, 10)
  world.stop()
})

test('deleting a running Job removes its pods though they carry the tracking finalizer', async () => {
  const world = startWorld()
  create(world, { completions: 3, parallelism: 3 })
  await world.settle()
  world.api.delete(workloads.job, 'default', 'work', { propagationPolicy: 'Background' })
  await world.settle(10_000)
  assert.equal(world.api.list(kinds.pod).length, 0)
  world.stop()
})

/** Ends pods as their exit code says; what is omitted runs on. */
function ends(world: World, exitCodeOf: (index: number, name: string) => number | undefined): void {
  const seen = new Set<string>()
  world.api.subscribe(kinds.pod, {
    updated: (pod) => {
      const { name, uid = '', annotations } = pod.metadata
      if (pod.status?.phase !== 'Running' || seen.has(uid)) return
      seen.add(uid)
      const exitCode = exitCodeOf(Number(annotations?.['batch.kubernetes.io/job-completion-index']), name)
      if (exitCode === undefined) return
      const containerStatuses = [{ name: 'main', state: { terminated: { exitCode } } }]
      const phase = exitCode === 0 ? 'Succeeded' : 'Failed'
      world.clock.after(1000, () => {
        if (world.api.get(kinds.pod, 'default', name)?.metadata.uid !== uid) return
        world.api.patch(kinds.pod, 'default', name, { status: { phase, containerStatuses } }, 'status')
      })
    },
  })
}

const indexed = (completions: number) =>
  ({ completions, parallelism: completions, completionMode: 'Indexed' }) as const

test('podFailurePolicy ends the Job, or leaves a failure out', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  let tries = 0
  ends(world, () => (tries++ < 2 ? 3 : 42))
  const onExitCodes = (...values: number[]) => ({ operator: 'In', values }) as const
  const rules = [
    { action: 'Ignore', onExitCodes: onExitCodes(3) },
    { action: 'FailJob', onExitCodes: onExitCodes(42) },
  ] as const
  create(world, { backoffLimit: 0, podFailurePolicy: { rules } })
  await world.settle(120_000)
  assert.equal(condition(world, 'Failed')?.reason, 'PodFailurePolicy')
  assert.match(
    condition(world, 'Failed')?.message ?? '',
    /^Container main for pod default\/work-[a-z0-9]+ failed with exit code 42 matching FailJob rule at index 1$/,
  )
  assert.equal(read(world).status?.failed, 1)
  assert.equal(tries, 3)
})

test('pods that fail together are all counted, whichever ends the Job', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  ends(world, () => 42)
  const onExitCodes = { operator: 'In', values: [42] } as const
  create(world, { ...indexed(3), podFailurePolicy: { rules: [{ action: 'FailJob', onExitCodes }] } })
  await world.settle(60_000)
  assert.equal(condition(world, 'Failed')?.reason, 'PodFailurePolicy')
  assert.equal(read(world).status?.failed, 3)
})

test('backoffLimitPerIndex gives up on an index while the others go on', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  const tries = new Map<number, number>()
  ends(world, (index) => {
    tries.set(index, (tries.get(index) ?? 0) + 1)
    return index === 1 ? 1 : 0
  })
  create(world, { ...indexed(3), backoffLimitPerIndex: 1 })
  await world.settle(300_000)
  assert.equal(condition(world, 'Failed')?.reason, 'FailedIndexes')
  assert.deepEqual([read(world).status?.completedIndexes, read(world).status?.failedIndexes], ['0,2', '1'])
  assert.equal(tries.get(1), 2)
})

test('maxFailedIndexes ends the Job as soon as more have failed', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  ends(world, (index) => (index < 2 ? 1 : undefined))
  create(world, { ...indexed(4), backoffLimitPerIndex: 0, maxFailedIndexes: 1 })
  await world.settle(60_000)
  assert.equal(condition(world, 'Failed')?.reason, 'MaxFailedIndexesExceeded')
})

test('successPolicy completes the Job before all indexes are', async (t) => {
  const world = startWorld()
  t.after(() => world.stop())
  ends(world, (index) => (index === 0 ? 0 : undefined))
  create(world, { ...indexed(3), successPolicy: { rules: [{ succeededIndexes: '0' }] } })
  await world.settle(60_000)
  assert.equal(condition(world, 'Complete')?.reason, 'SuccessPolicy')
  assert.equal(condition(world, 'Complete')?.message, 'Matched rules at index 0')
  assert.equal(world.pods().filter(isActive).length, 0)
})
