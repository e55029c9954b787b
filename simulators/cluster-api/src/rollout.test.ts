/** How the simulated Cluster API brings a changed template to its Machines, and what stops it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, kinds } from '@tenon/api'
import { budget, ClusterApiFixture } from './cluster-api.test-support.ts'
import { onDeleteStep, pausedStep, rollingStep, type SetFigures } from './deployments/rollout.ts'

const figures = (name: string, replicas: number, available = replicas): SetFigures => ({
  name,
  replicas,
  machines: replicas,
  staying: replicas,
  available,
})

const newVersion = { spec: { template: { spec: { version: 'v1.35.0' } } } }

const onDelete = { rollout: { strategy: { type: 'OnDelete' } } }

test('a rolling update surges by one, and takes an old Machine for each new one that is available', () => {
  const step = (current: SetFigures, former: SetFigures) =>
    Object.fromEntries(rollingStep({ wanted: 3, maxSurge: 1, maxUnavailable: 0, current, former: [former] }))
  assert.deepEqual(step(figures('new', 0), figures('old', 3)), { new: 1, old: 3 })
  assert.deepEqual(step(figures('new', 1, 0), figures('old', 3)), { new: 1, old: 3 })
  assert.deepEqual(step(figures('new', 1), figures('old', 3)), { new: 1, old: 2 })
  assert.deepEqual(step(figures('new', 1), figures('old', 2)), { new: 2, old: 2 })
  assert.deepEqual(step(figures('new', 3), figures('old', 1)), { new: 3, old: 0 })
})

test('Machines of former templates that are not available go at once', () => {
  const plan = {
    wanted: 3,
    maxSurge: 1,
    maxUnavailable: 0,
    current: figures('new', 1),
    former: [figures('old', 3, 2)],
  }
  assert.deepEqual(Object.fromEntries(rollingStep(plan)), { new: 1, old: 2 })
})

test('on deletion the new template takes the place of what people delete', () => {
  const plan = { wanted: 3, maxSurge: 1, maxUnavailable: 0, current: figures('new', 0) }
  const old = figures('old', 3)
  assert.deepEqual(Object.fromEntries(onDeleteStep({ ...plan, former: [old] })), { new: 0, old: 3 })
  const oneLeaves = { ...old, staying: 2 }
  assert.deepEqual(Object.fromEntries(onDeleteStep({ ...plan, former: [oneLeaves] })), { new: 0, old: 2 })
  const oneLeft = figures('old', 2)
  assert.deepEqual(Object.fromEntries(onDeleteStep({ ...plan, former: [oneLeft] })), { new: 1, old: 2 })
  assert.deepEqual(Object.fromEntries(onDeleteStep({ ...plan, wanted: 1, former: [old] })), {
    new: 0,
    old: 1,
  })
})

test('while rollouts are stopped, the MachineSet with Machines changes its size', () => {
  const plan = { wanted: 5, maxSurge: 1, maxUnavailable: 0, current: figures('new', 0) }
  assert.deepEqual(Object.fromEntries(pausedStep({ ...plan, former: [figures('old', 3)] })), { old: 5 })
})

test('while rollouts are stopped, several MachineSets share a change of the size in proportion', () => {
  const plan = { maxSurge: 0, maxUnavailable: 0, current: figures('new', 2), former: [figures('old', 4)] }
  assert.deepEqual(Object.fromEntries(pausedStep({ ...plan, wanted: 9 })), { new: 3, old: 6 })
  assert.deepEqual(Object.fromEntries(pausedStep({ ...plan, wanted: 3 })), { new: 1, old: 2 })
  assert.deepEqual(Object.fromEntries(pausedStep({ ...plan, wanted: 5 })), { new: 2, old: 3 })
  assert.deepEqual(Object.fromEntries(pausedStep({ ...plan, wanted: 0 })), { new: 0, old: 0 })
})

test('a rollout whose old Machine cannot be drained has one Machine more, and two MachineSets', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 2 })
  await world.seconds(60)
  for (const [index, { metadata }] of world.machines().entries())
    world.createPod(index === 0 ? 'held' : 'free', metadata.name)
  world.api.create(kinds.podDisruptionBudget, budget('held', 1) as never)
  await world.seconds(5)
  world.patch('small', newVersion)
  await world.seconds(1_200)
  assert.deepEqual(world.phases(), { Deleting: 1, Running: 2 })
  const sets = world.sets('small').map(({ metadata, spec, status }) => {
    const revision = metadata.annotations?.['machinedeployment.clusters.x-k8s.io/revision']
    return `revision ${revision}: ${spec?.replicas} of ${status?.replicas}`
  })
  assert.deepEqual(new Set(sets), new Set(['revision 1: 1 of 2', 'revision 2: 1 of 1']))
  world.api.delete(kinds.podDisruptionBudget, 'default', 'held')
  await world.seconds(60)
  assert.deepEqual(world.phases(), { Running: 2 })
  assert.equal(world.sets('small').length, 1)
})

test('a changed template rolls through all Machines, never with fewer or with more than one more', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 3 })
  await world.seconds(60)
  const before = new Set(world.machines().map(({ metadata }) => metadata.name))
  world.patch('small', newVersion)
  await world.until(
    'all Machines are new',
    () => {
      const ready = world.deployment('small')?.status?.readyReplicas ?? 0
      const there = world.machines()
      assert.ok(ready >= 3 && there.length <= 5, `${ready} ready of ${there.length}`)
      return there.length === 3 && there.every(({ metadata }) => !before.has(metadata.name))
    },
    900,
  )
  await world.seconds(60)
  assert.deepEqual(
    world.machines().map(({ spec }) => spec?.version),
    ['v1.35.0', 'v1.35.0', 'v1.35.0'],
  )
  assert.equal(world.sets('small').length, 1)
  assert.equal(world.nodes().length, 3)
})

test('a label of the template changes in place', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 2 })
  await world.seconds(60)
  const before = world.machines().map(({ metadata }) => metadata.name)
  const labels = { 'node.cluster.x-k8s.io/tier': 'web' }
  world.patch('small', { spec: { template: { metadata: { labels } } } })
  await world.seconds(5)
  assert.deepEqual(
    world.machines().map(({ metadata }) => metadata.name),
    before,
  )
  for (const { metadata } of world.nodes())
    assert.equal(metadata.labels?.['node.cluster.x-k8s.io/tier'], 'web')
})

test('with OnDelete, only Machines that people delete come back with the new template', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 3 })
  world.patch('small', { spec: onDelete })
  await world.seconds(60)
  world.patch('small', newVersion)
  await world.seconds(300)
  const versions = () => world.machines().map(({ spec }) => spec?.version ?? 'old')
  assert.deepEqual(versions(), ['old', 'old', 'old'])
  world.deleteMachine(world.machines()[0]?.metadata.name ?? '')
  await world.seconds(60)
  assert.deepEqual(versions().toSorted(), ['old', 'old', 'v1.35.0'])
})

for (const [what, pause, resume] of [
  [
    'the annotation',
    (world: ClusterApiFixture) =>
      world.patch('small', { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } }),
    (world: ClusterApiFixture) =>
      world.patch('small', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } }),
  ],
  [
    'its Cluster',
    (world: ClusterApiFixture) =>
      world.hub.patch(world.kinds.cluster, 'default', 'workload', { spec: { paused: true } }),
    (world: ClusterApiFixture) =>
      world.hub.patch(world.kinds.cluster, 'default', 'workload', { spec: { paused: false } }),
  ],
] as const)
  test(`a MachineDeployment that is paused by ${what} does nothing`, async (t) => {
    const world = await ClusterApiFixture.start()
    t.after(() => world.stop())
    world.createDeployment('small', { replicas: 1 })
    await world.seconds(60)
    pause(world)
    world.scale('small', 3)
    await world.seconds(60)
    assert.equal(world.machines().length, 1)
    resume(world)
    await world.seconds(5)
    assert.equal(world.machines().length, 3)
  })

test('a Machine of a paused Cluster is neither made nor ended', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(5)
  const pause = (paused: boolean) =>
    world.hub.patch(world.kinds.cluster, 'default', 'workload', { spec: { paused } })
  pause(true)
  await world.seconds(60)
  assert.equal(world.onlyMachine().spec?.providerID, undefined)
  world.deleteMachine(world.onlyMachine().metadata.name)
  await world.seconds(60)
  assert.equal(world.machines().length, 1)
  pause(false)
  await world.seconds(5.9)
  assert.equal(world.deployment('small')?.spec?.replicas, 1)
  assert.equal(world.onlyMachine().metadata.deletionTimestamp, undefined)
})

test('spec.paused stops rollouts, not changes of size', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  world.patch('small', { spec: { paused: true, replicas: 2, ...newVersion.spec } })
  await world.seconds(60)
  assert.deepEqual(
    world.machines().map(({ spec }) => spec?.version),
    [undefined, undefined],
  )
})

test('a Machine that is going during a rollout is not the one that a smaller size costs', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 3 })
  await world.seconds(60)
  world.patch('small', newVersion)
  await world.until('a new Machine is ready', () => world.phases()['Running'] === 4, 100)
  const fresh = world.machines().find(({ spec }) => spec?.version === 'v1.35.0')?.metadata.name ?? ''
  world.annotate(fresh, { 'cluster.x-k8s.io/delete-machine': '' })
  world.scale('small', 2)
  await world.seconds(5)
  // The annotation ranks within a MachineSet, and the rollout takes from the former one.
  assert.equal(world.machine(fresh)?.metadata.deletionTimestamp, undefined)
})

test('while a MachineDeployment rolls, nodes of former templates are marked, and with OnDelete they stay so', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  world.patch('small', { spec: { ...onDelete, template: { spec: { version: 'v1.34.1' } } } })
  await world.seconds(60)
  const { name } = world.onlyMachine().metadata
  const marks = () => (world.node(name)?.spec?.taints ?? []).map(({ key }) => key)
  const upToDate = () => conditionOf(world.onlyMachine(), 'UpToDate')?.status
  assert.deepEqual([upToDate(), marks()], ['True', ['karpenter.sh/unregistered']])
  world.patch('small', newVersion)
  await world.seconds(5)
  assert.deepEqual(
    [upToDate(), marks()],
    ['False', ['karpenter.sh/unregistered', 'node.cluster.x-k8s.io/outdated-revision']],
  )
  assert.equal(conditionOf(world.deployment('small') ?? world.onlyMachine(), 'RollingOut')?.status, 'True')
})

test('a Machine of which no version is asked for is never up to date', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  assert.equal(conditionOf(world.onlyMachine(), 'UpToDate')?.status, 'False')
})

test('a Machine whose Node was deleted is unhealthy, and stays', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  const { name } = world.onlyMachine().metadata
  world.cloud.lose('default', name)
  world.api.delete(kinds.node, undefined, name)
  await world.seconds(5)
  assert.deepEqual(
    [conditionOf(world.onlyMachine(), 'NodeHealthy')?.status, world.onlyMachine().status?.nodeRef?.name],
    ['False', name],
  )
})
