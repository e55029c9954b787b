/** What a cluster autoscaler meets on the simulated hub: sizes, MachineSets, MachinePools, and others who change them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, kinds, ownValue } from '@tenon/api'
import { ClusterApiFixture } from './cluster-api.test-support.ts'

const size = (which: string) => `cluster.x-k8s.io/cluster-api-autoscaler-node-group-${which}-size`
const deleteMachine = 'cluster.x-k8s.io/delete-machine'

test('MachineDeployments, MachineSets and MachinePools have a scale, to read, patch and put', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  world.createSet('alone', { replicas: 1 })
  world.createPool('pool', { replicas: 1 })
  await world.seconds(60)
  for (const path of ['machinedeployments/small', 'machinesets/alone', 'machinepools/pool']) {
    const scale = `/apis/cluster.x-k8s.io/v1beta2/namespaces/default/${path}/scale`
    const read = await world.request('GET', scale)
    assert.deepEqual(
      [read.body.kind, read.body.spec, read.body.status.replicas],
      ['Scale', { replicas: 1 }, 1],
    )
    const patched = await world.request('PATCH', scale, { spec: { replicas: 2 } })
    assert.deepEqual([patched.status, patched.body.spec.replicas], [200, 2])
    const stale = await world.request('PUT', scale, read.body)
    assert.equal(stale.status, 409)
    const put = await world.request('PUT', scale, { ...patched.body, spec: { replicas: 0 } })
    assert.deepEqual([put.status, put.body.spec], [200, { replicas: 0 }])
  }
  await world.seconds(60)
  assert.deepEqual([world.machines(), world.nodes()], [[], []])
})

test('a MachineSet without a MachineDeployment is scaled by itself', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createSet('alone', {
    annotations: {
      [size('min')]: '2',
      [size('max')]: '5',
      'capacity.cluster-autoscaler.kubernetes.io/cpu': '7',
    },
  })
  await world.seconds(60)
  assert.deepEqual(world.phases(), { Running: 2 })
  const [first, second] = world.machines()
  assert.equal(ownValue(first?.metadata.labels, 'cluster.x-k8s.io/set-name'), 'alone')
  assert.equal(world.node(first?.metadata.name ?? '')?.status?.capacity?.['cpu'], '7')
  world.annotate(second?.metadata.name ?? '', { [deleteMachine]: '' })
  world.hub.setScale(world.kinds.set, 'default', 'alone', 1)
  await world.seconds(30)
  assert.deepEqual(
    world.machines().map(({ metadata }) => metadata.name),
    [first?.metadata.name],
  )
})

test('replicas that are not set are the old ones, within the sizes of the annotations', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 4 })
  await world.seconds(60)
  const annotations = { [size('min')]: '1', [size('max')]: '3' }
  world.patch('small', { metadata: { annotations }, spec: { replicas: null } })
  await world.seconds(1)
  assert.equal(world.deployment('small')?.spec?.replicas, 3)
})

test('a MachinePool without Machines lists its instances, and its infrastructure picks which one goes', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createPool('pool', { replicas: 2 })
  await world.seconds(60)
  assert.deepEqual(world.machines(), [])
  const ids = world.pool('pool')?.spec?.providerIDList ?? []
  assert.equal(ids.length, 2)
  assert.deepEqual(new Set(world.nodes().map(({ spec }) => spec?.providerID)), new Set(ids))
  for (const { metadata } of world.nodes()) {
    assert.equal(ownValue(metadata.annotations, 'cluster.x-k8s.io/machine'), undefined)
    assert.equal(ownValue(metadata.annotations, 'cluster.x-k8s.io/owner-kind'), 'MachinePool')
  }
  const [oldest = ''] = world.nodes().map(({ metadata }) => metadata.name)
  world.createPod('app', oldest)
  world.hub.setScale(world.kinds.pool, 'default', 'pool', 1)
  await world.seconds(20)
  assert.equal(world.node(oldest), undefined)
  assert.equal(world.pool('pool')?.spec?.providerIDList?.length, 1)
  assert.equal(world.pool('pool')?.status?.replicas, 1)
  world.hub.delete(world.kinds.pool, 'default', 'pool')
  await world.seconds(20)
  assert.deepEqual([world.pool('pool'), world.nodes(), world.cloud.instances()], [undefined, [], []])
})

for (const poolIgnoresMarks of [false, true])
  test(`a MachinePool with Machines ${poolIgnoresMarks ? 'ignores the mark of' : 'removes first'} a marked one`, async (t) => {
    const world = await ClusterApiFixture.start()
    t.after(() => world.stop())
    world.createTemplate('pool', { poolHasMachines: true, poolIgnoresMarks })
    world.createPool('pool', { replicas: 3, template: 'pool' })
    await world.seconds(60)
    const names = world.machines().map(({ metadata }) => metadata.name)
    const last = names.at(-1) ?? ''
    world.annotate(last, { [deleteMachine]: '' })
    world.hub.setScale(world.kinds.pool, 'default', 'pool', 2)
    await world.seconds(30)
    assert.equal(world.machine(last) === undefined, !poolIgnoresMarks)
    assert.equal(world.machines().length, 2)
    assert.deepEqual(
      new Set(world.pool('pool')?.spec?.providerIDList),
      new Set(world.machines().map(({ spec }) => spec?.providerID)),
    )
  })

test('instances of a MachinePool go on after a restart', async (t) => {
  const before = await ClusterApiFixture.start()
  before.createPool('pool', { replicas: 2 })
  await before.seconds(60)
  const names = before.nodes().map(({ metadata }) => metadata.name)
  const world = await before.killedAfter(before.revision)
  t.after(() => world.stop())
  await world.seconds(120)
  assert.deepEqual(
    world.nodes().map(({ metadata }) => metadata.name),
    names,
  )
  assert.equal(world.pool('pool')?.spec?.providerIDList?.length, 2)
})

for (const version of ['v1beta1', 'v1beta2'] as const)
  test(`a MachineHealthCheck of ${version} has a Machine replaced whose Node is away, at the same size`, async (t) => {
    const world = await ClusterApiFixture.start({ version })
    t.after(() => world.stop())
    world.createDeployment('small', { replicas: 2 })
    const condition = { type: 'Ready', status: 'Unknown' }
    world.createHealthCheck('small', {
      selector: { matchLabels: { 'cluster.x-k8s.io/deployment-name': 'small' } },
      ...(version === 'v1beta1'
        ? { nodeStartupTimeout: '10m', unhealthyConditions: [{ ...condition, timeout: '5m' }] }
        : { checks: { unhealthyNodeConditions: [{ ...condition, timeoutSeconds: 300 }] } }),
    })
    await world.seconds(120)
    const [machine, second] = world.machines()
    assert.ok(machine)
    const first = machine.metadata.name
    assert.equal(conditionOf(machine, 'HealthCheckSucceeded')?.status, 'True')
    world.cluster.kubelets.silence(first, 3_600_000)
    await world.seconds(300)
    assert.equal(world.machine(first)?.metadata.deletionTimestamp, undefined)
    await world.seconds(180)
    assert.equal(world.machine(first), undefined)
    assert.notEqual(world.machine(second?.metadata.name ?? ''), undefined)
    assert.equal(world.deployment('small')?.spec?.replicas, 2)
    assert.equal(world.machines().length, 2)
  })

test('a MachineHealthCheck replaces a Machine that gets no Node, and one that has failed', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createHealthCheck('all', {
    selector: {},
    checks: { nodeStartupTimeoutSeconds: 120, unhealthyNodeConditions: [] },
  })
  world.cloud.faults.add({ times: 1, effect: { kind: 'neverJoins' } })
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(10)
  const first = world.onlyMachine().metadata.name
  await world.seconds(105)
  assert.notEqual(world.machine(first), undefined)
  await world.seconds(120)
  assert.equal(world.machine(first), undefined)
  assert.deepEqual(world.phases(), { Running: 1 })
  const second = world.onlyMachine().metadata.name
  world.cloud.lose('default', second)
  await world.seconds(120)
  assert.equal(world.machine(second), undefined)
  assert.deepEqual(world.phases(), { Running: 1 })
})

test('a topology with replicas writes them back, and leaves them to others without', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  const topology = (replicas: number | null) =>
    world.hub.patch(world.kinds.cluster, 'default', 'workload', {
      spec: { topology: { workers: { machineDeployments: [{ name: 'md', replicas }] } } },
    })
  topology(2)
  world.createDeployment('small', {
    replicas: 2,
    labels: { 'topology.cluster.x-k8s.io/owned': '', 'topology.cluster.x-k8s.io/deployment-name': 'md' },
  })
  await world.seconds(60)
  world.hub.setScale(world.kinds.deployment, 'default', 'small', 3)
  await world.seconds(60)
  const found = world.deployment('small')
  assert.equal(found?.spec?.replicas, 2)
  const owner = found?.metadata.managedFields?.find(
    ({ fieldsV1, subresource }) =>
      subresource === undefined && JSON.stringify(fieldsV1).includes('"f:replicas"'),
  )
  assert.equal(owner?.manager, 'capi-topology')
  topology(null)
  world.hub.setScale(world.kinds.deployment, 'default', 'small', 3)
  await world.seconds(60)
  assert.equal(world.deployment('small')?.spec?.replicas, 3)
  assert.equal(world.machines().length, 3)
})

test('a paused Cluster or MachinePool changes no MachinePool', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createPool('pool', { replicas: 1 })
  await world.seconds(60)
  world.hub.patch(world.kinds.cluster, 'default', 'workload', { spec: { paused: true } })
  world.hub.setScale(world.kinds.pool, 'default', 'pool', 2)
  await world.seconds(60)
  assert.equal(world.nodes().length, 1)
  const annotations = { 'cluster.x-k8s.io/paused': '' }
  world.hub.patch(world.kinds.pool, 'default', 'pool', { metadata: { annotations } })
  world.hub.patch(world.kinds.cluster, 'default', 'workload', { spec: { paused: false } })
  await world.seconds(60)
  assert.equal(world.nodes().length, 1)
  world.hub.patch(world.kinds.pool, 'default', 'pool', {
    metadata: { annotations: { 'cluster.x-k8s.io/paused': null } },
  })
  await world.seconds(60)
  assert.equal(world.nodes().length, 2)
  assert.equal(world.api.list(kinds.node).length, 2)
})
