/** What is told of pods, and of how long they wait (operations.md 9.2). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { kinds, labels, type PodCondition } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'

/** Since when the metrics of a process tell of a pod. */
const names = ['unbound', 'unstarted', 'provisioning_unbound', 'provisioning_unstarted'] as const

interface Value {
  readonly labels: Readonly<Record<string, unknown>>
  readonly value: number
}

async function values(stage: Stage, name: string, pod: string): Promise<readonly Value[]> {
  const family = stage.operator.operator.metrics.registry.getSingleMetric(`karpenter_pods_${name}`)
  const all: readonly Value[] = (await family?.get())?.values ?? []
  return all.filter((each) => each.labels['name'] === pod)
}

/** The age of the pod that a gauge shows; undefined without a series. */
async function age(stage: Stage, name: (typeof names)[number], pod: string): Promise<number | undefined> {
  return (await values(stage, `${name}_time_seconds`, pod))[0]?.value
}

async function agesOf(stage: Stage, pod: string) {
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await age(stage, name, pod)] as const)),
  )
}

const observed = async (stage: Stage) => ({
  bound: await stage.metric('pods_bound_duration_seconds'),
  startup: await stage.metric('pods_startup_duration_seconds'),
  provisioningBound: await stage.metric('pods_provisioning_bound_duration_seconds'),
  provisioningStartup: await stage.metric('pods_provisioning_startup_duration_seconds'),
})
const nothing = { bound: 0, startup: 0, provisioningBound: 0, provisioningStartup: 0 }

/** Sums of a distribution's observations. */
async function sum(stage: Stage, name: string): Promise<number | undefined> {
  const line = new RegExp(`^karpenter_pods_${name}_duration_seconds_sum (.*)$`, 'm')
  const found = line.exec(await stage.operator.operator.metrics.registry.metrics())?.[1]
  return found === undefined ? undefined : Number(found)
}

function became(stage: Stage, type: string, status: 'True' | 'False' = 'True'): PodCondition {
  return { type, status, lastTransitionTime: rfc3339(stage.now) }
}

/** The scheduler binds the pod, whose phase stays Pending. */
function bind(stage: Stage, pod: string, node: string): void {
  stage.patch(kinds.pod, pod, { spec: { nodeName: node } }, undefined, 'default')
  const conditions = [became(stage, 'PodScheduled')]
  stage.patch(kinds.pod, pod, { status: { phase: 'Pending', conditions } }, 'status', 'default')
}

function setPhase(stage: Stage, pod: string, phase: string, ...conditions: readonly PodCondition[]): void {
  const kept = stage.podNow(pod)?.status?.conditions?.filter(({ type }) => type === 'PodScheduled') ?? []
  const status = { phase, conditions: [...kept, ...conditions] }
  stage.patch(kinds.pod, pod, { status }, 'status', 'default')
}

async function open(t: TestContext): Promise<Stage> {
  const stage = await Stage.open(t)
  stage.cloud.instanceTypes = [aType('medium', 4)]
  return stage
}

test('OPS-31 a pod that waits 40 s is shown while it does, and is observed once it is bound and ready', async (t) => {
  const stage = await open(t)
  waitingPod(stage, 'p')
  await stage.pass(40 * seconds)
  const [made] = madeClaims(stage)
  assert.ok(made)
  const waiting = await agesOf(stage, 'p')
  assert.deepEqual([waiting['unbound'], waiting['unstarted']], [40, 40])
  const plannedMs = 1000 * (40 - (waiting['provisioning_unbound'] ?? 0))
  assert.ok(plannedMs > 0 && plannedMs < 10 * seconds, `planned after ${plannedMs} ms`)
  assert.equal(waiting['provisioning_unstarted'], waiting['provisioning_unbound'])
  assert.deepEqual(await observed(stage), nothing)
  await stage.join(made.metadata.name)
  await stage.report(`node-${made.metadata.name}`)
  bind(stage, 'p', `node-${made.metadata.name}`)
  const boundAt = (await age(stage, 'unstarted', 'p')) ?? 0
  await stage.pass(2 * seconds)
  setPhase(stage, 'p', 'Running', became(stage, 'Ready', 'False'))
  await stage.pass(2 * seconds)
  assert.deepEqual(await observed(stage), { ...nothing, bound: 1, provisioningBound: 1 })
  assert.equal(await age(stage, 'unbound', 'p'), undefined)
  assert.equal(await age(stage, 'unstarted', 'p'), boundAt + 4)
  setPhase(stage, 'p', 'Running', became(stage, 'Ready'))
  await stage.pass(seconds)
  const gone = Object.fromEntries(names.map((name) => [name, undefined]))
  assert.deepEqual(await agesOf(stage, 'p'), gone)
  assert.deepEqual(await observed(stage), {
    bound: 1,
    startup: 1,
    provisioningBound: 1,
    provisioningStartup: 1,
  })
  // Conditions have times in whole seconds.
  assert.ok(Math.abs(((await sum(stage, 'bound')) ?? 0) - boundAt) < 1.001)
  assert.ok(Math.abs(((await sum(stage, 'startup')) ?? 0) - boundAt - 4) < 1.001)
  assert.ok(
    Math.abs(((await sum(stage, 'provisioning_startup')) ?? 0) - boundAt - 4 + plannedMs / 1000) < 1.001,
  )
})

test('OPS-32 a pod that fails before it is ready is shown no more, and was never ready', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  waitingPod(stage, 'p')
  await stage.pass(5 * seconds)
  bind(stage, 'p', 'node-a')
  setPhase(stage, 'p', 'Running', became(stage, 'Ready', 'False'))
  await stage.pass(seconds)
  assert.notEqual(await age(stage, 'unstarted', 'p'), undefined)
  setPhase(stage, 'p', 'Failed', became(stage, 'Ready', 'False'))
  await stage.pass(seconds)
  assert.deepEqual(await agesOf(stage, 'p'), Object.fromEntries(names.map((name) => [name, undefined])))
  assert.equal((await observed(stage)).startup, 0)
  assert.equal((await values(stage, 'state', 'p'))[0]?.labels['phase'], 'Failed')
})

test('OPS-33 of a pod that is deleted while it waits nothing is left', async (t) => {
  const stage = await open(t)
  waitingPod(stage, 'p')
  await stage.pass(40 * seconds)
  const text = async () => await stage.operator.operator.metrics.registry.metrics()
  assert.equal((await text()).match(/\{name="p",namespace="default"/g)?.length, 5)
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'p', { gracePeriodSeconds: 0 })
  await stage.pass(100)
  assert.doesNotMatch(await text(), /name="p"/)
  assert.deepEqual(await observed(stage), nothing)
})

test('OPS-97 a pod that is bound stands still until it leaves phase Pending, and is observed then', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  waitingPod(stage, 'p')
  await stage.pass(10 * seconds)
  const last = await age(stage, 'unbound', 'p')
  assert.ok(last !== undefined && last >= 10)
  bind(stage, 'p', 'node-a')
  await stage.pass(5 * seconds)
  assert.equal(await age(stage, 'unbound', 'p'), last)
  await stage.pass(minutes)
  assert.equal(await age(stage, 'unbound', 'p'), last)
  assert.equal((await observed(stage)).bound, 0)
  setPhase(stage, 'p', 'Running', became(stage, 'Ready', 'False'))
  await stage.pass(100)
  assert.equal(await age(stage, 'unbound', 'p'), undefined)
  assert.equal((await observed(stage)).bound, 1)
})

test('OPS-98 of a pod that ran before this process began nothing is observed', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  waitingPod(stage, 'p')
  await stage.pass(10 * seconds)
  bind(stage, 'p', 'node-a')
  setPhase(stage, 'p', 'Running', became(stage, 'Ready', 'False'))
  await stage.restart()
  assert.deepEqual(await agesOf(stage, 'p'), Object.fromEntries(names.map((name) => [name, undefined])))
  setPhase(stage, 'p', 'Running', became(stage, 'Ready'))
  await stage.pass(minutes)
  assert.deepEqual(await observed(stage), nothing)
  assert.equal((await values(stage, 'state', 'p')).length, 1)
})

test('a pod nothing was decided about yet shows for how long', async (t) => {
  const stage = await Stage.open(t, { settings: { batchIdleMs: 45 * seconds, batchMaxMs: 45 * seconds } })
  waitingPod(stage, 'p')
  const undecided = async () =>
    (await values(stage, 'provisioning_scheduling_undecided_time_seconds', 'p'))[0]?.value
  await stage.pass(40 * seconds)
  assert.ok(((await undecided()) ?? 0) > 39)
  await stage.pass(40 * seconds)
  assert.equal(await undecided(), undefined)
})

test('a pod is shown with its owner and with the labels of its node, as they are now', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a', { ownerReferences: [await stage.daemonSet('agent')] })
  const expected = {
    name: 'p',
    namespace: 'default',
    owner: '/apis/apps/v1/namespaces/default/daemonsets/agent',
    node: 'node-a',
    scheduled: 'true',
    nodepool: 'default',
    zone: 'zone-1',
    arch: '',
    capacity_type: 'on-demand',
    instance_type: 'medium',
    phase: 'Running',
    ready: 'false',
    managed: 'true',
  }
  assert.deepEqual(await values(stage, 'state', 'p'), [{ labels: expected, value: 1 }])
  stage.patch(kinds.node, 'node-a', { metadata: { labels: { [labels.arch]: 'arm64' } } })
  setPhase(stage, 'p', 'Running', became(stage, 'Ready'))
  await stage.pass(100)
  assert.deepEqual(await values(stage, 'state', 'p'), [
    { labels: { ...expected, arch: 'arm64', ready: 'true' }, value: 1 },
  ])
  waitingPod(stage, 'q')
  await stage.pass(100)
  const [other] = await values(stage, 'state', 'q')
  assert.deepEqual(
    [other?.labels['scheduled'], other?.labels['node'], other?.labels['managed'], other?.labels['owner']],
    ['false', '', 'false', ''],
  )
})

test('a pod that could not be read for a while is shown again, although it is as it was', async (t) => {
  const stage = await open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  const shown = await values(stage, 'state', 'p')
  assert.equal(shown.length, 1)
  const setConditions = async (conditions: unknown) => {
    stage.patch(kinds.pod, 'p', { status: { conditions } }, 'status', 'default')
    await stage.pass(100)
  }
  await setConditions([{ type: 7, status: 'True' }])
  assert.deepEqual(await values(stage, 'state', 'p'), [])
  await setConditions([])
  assert.deepEqual(await values(stage, 'state', 'p'), shown)
})
