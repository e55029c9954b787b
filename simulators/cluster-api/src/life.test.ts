/** What the simulated Cluster API does with a MachineDeployment when all goes well. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, isConditionTrue } from '@tenon/api'
import { ClusterApiFixture, labelsOf } from './cluster-api.test-support.ts'

test('a Machine gets bootstrap data, a provider ID, a Node, and the Node gets ready', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.until('there is a Machine', () => world.machines().length === 1, 1)
  const { name, uid } = world.onlyMachine().metadata
  const seen = () => {
    const { spec, status } = world.onlyMachine()
    return [status?.phase, spec?.providerID, status?.nodeRef?.name, world.node(name)?.spec?.providerID]
  }
  const id = `simulated://default/${uid}`
  await world.seconds(0.5)
  assert.deepEqual(seen(), ['Pending', undefined, undefined, undefined])
  await world.seconds(1)
  assert.deepEqual(seen(), ['Provisioning', undefined, undefined, undefined])
  await world.seconds(9)
  assert.deepEqual(seen(), ['Provisioned', id, undefined, undefined])
  await world.seconds(30)
  assert.deepEqual(seen(), ['Running', id, name, id])
  assert.equal(conditionOf(world.onlyMachine(), 'NodeHealthy')?.status, 'False')
  await world.seconds(3)
  const ready = world.onlyMachine()
  for (const type of ['Available', 'Ready', 'InfrastructureReady', 'NodeHealthy', 'NodeReady'])
    assert.ok(isConditionTrue(ready, type), type)
  const { replicas, readyReplicas, upToDateReplicas, phase } = world.deployment('small')?.status ?? {}
  assert.deepEqual([replicas, readyReplicas, upToDateReplicas, phase], [1, 1, 1, 'Running'])
})

test('labels flow from the template to MachineSet and Machine, and those of managed domains to the Node', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', {
    replicas: 1,
    annotations: { 'example.com/team': 'data' },
    templateLabels: {
      'node.cluster.x-k8s.io/tier': 'batch',
      'eu.node-restriction.kubernetes.io/zone': 'a',
      'node-role.kubernetes.io/worker': '',
      'example.com/other': 'x',
    },
  })
  await world.seconds(60)
  const machine = world.onlyMachine()
  const { name } = machine.metadata
  const [set] = world.sets('small')
  assert.ok(set !== undefined)
  const labels = labelsOf(machine)
  assert.equal(labels.get('cluster.x-k8s.io/set-name'), set.metadata.name)
  assert.equal(labels.get('cluster.x-k8s.io/deployment-name'), 'small')
  assert.equal(labels.get('cluster.x-k8s.io/cluster-name'), 'workload')
  assert.equal(labels.get('machine-template-hash'), labelsOf(set).get('machine-template-hash'))
  assert.equal(labels.get('example.com/other'), 'x')
  assert.equal(set.metadata.annotations?.['example.com/team'], 'data')
  assert.equal(machine.metadata.annotations?.['example.com/team'], undefined)
  const ofNode = labelsOf(world.node(name))
  assert.equal(ofNode.get('node.cluster.x-k8s.io/tier'), 'batch')
  assert.equal(ofNode.get('eu.node-restriction.kubernetes.io/zone'), 'a')
  assert.equal(ofNode.get('node-role.kubernetes.io/worker'), '')
  assert.equal(ofNode.has('example.com/other'), false)
  assert.equal(world.node(name)?.metadata.annotations?.['cluster.x-k8s.io/machine'], name)
})

test('a label that a Machine gets later reaches its Node, and leaves it with the Machine', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  const { name } = world.onlyMachine().metadata
  const key = 'node.cluster.x-k8s.io/karpenter-member'
  const label = (value: string | null) =>
    world.hub.patch(world.kinds.machine, 'default', name, { metadata: { labels: { [key]: value } } })
  label('')
  await world.seconds(1)
  assert.equal(world.node(name)?.metadata.labels?.[key], '')
  label(null)
  await world.seconds(1)
  assert.equal(world.node(name)?.metadata.labels?.[key], undefined)
})

test('the annotation of the Node with the name of its Machine is put right', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  const { name } = world.onlyMachine().metadata
  const key = 'cluster.x-k8s.io/machine'
  world.api.patch(
    { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false },
    undefined,
    name,
    {
      metadata: { annotations: { [key]: `default/${name}` } },
    },
  )
  assert.equal(world.node(name)?.metadata.annotations?.[key], `default/${name}`)
  await world.seconds(1)
  assert.equal(world.node(name)?.metadata.annotations?.[key], name)
})

test('a Node has size, labels and taints of its template, and the taint of unregistered nodes', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createTemplate('arm', {
    capacity: { cpu: '8', memory: '32Gi' },
    architecture: 'arm64',
    labels: { 'node.kubernetes.io/instance-type': 'arm.8', 'topology.kubernetes.io/zone': 'a' },
    taints: [{ key: 'dedicated', value: 'arm', effect: 'NoSchedule' }],
  })
  world.createTemplate('plain', { registersUnregistered: false })
  world.createDeployment('arm', { replicas: 1, template: 'arm' })
  world.createDeployment('plain', {
    replicas: 1,
    template: 'plain',
    annotations: {
      'capacity.cluster-autoscaler.kubernetes.io/cpu': '3',
      'capacity.cluster-autoscaler.kubernetes.io/memory': '5Gi',
      'capacity.cluster-autoscaler.kubernetes.io/labels': 'topology.kubernetes.io/zone=b,odd,a=b',
    },
  })
  await world.seconds(60)
  const nodeOf = (name: string) => world.node(world.machines(name)[0]?.metadata.name ?? '')
  const sizeOf = (name: string) => {
    const { cpu, memory } = nodeOf(name)?.status?.capacity ?? {}
    return [cpu, memory]
  }
  assert.deepEqual(
    [sizeOf('arm'), sizeOf('plain')],
    [
      ['8', '32Gi'],
      ['3', '5Gi'],
    ],
  )
  const arm = labelsOf(nodeOf('arm'))
  assert.equal(arm.get('kubernetes.io/arch'), 'arm64')
  assert.equal(arm.get('node.kubernetes.io/instance-type'), 'arm.8')
  assert.deepEqual(nodeOf('arm')?.spec?.taints, [
    { key: 'karpenter.sh/unregistered', effect: 'NoExecute' },
    { key: 'dedicated', value: 'arm', effect: 'NoSchedule' },
  ])
  assert.deepEqual(world.hub.get(world.kinds.template, 'default', 'arm')?.status, {
    capacity: { cpu: '8', memory: '32Gi' },
    nodeInfo: { architecture: 'arm64', operatingSystem: 'linux' },
  })
  const plain = labelsOf(nodeOf('plain'))
  assert.deepEqual([plain.get('topology.kubernetes.io/zone'), plain.get('a')], ['b', 'b'])
  assert.equal(nodeOf('plain')?.spec?.taints, undefined)
})

test('without replicas a MachineDeployment gets one, or its least size where it is scaled by others', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  const size = (which: string) => `cluster.x-k8s.io/cluster-api-autoscaler-node-group-${which}-size`
  world.createDeployment('one')
  world.createDeployment('none', { annotations: { [size('min')]: '0', [size('max')]: '5' } })
  await world.seconds(5)
  assert.deepEqual(
    ['one', 'none'].map((name) => [world.deployment(name)?.spec?.replicas, world.machines(name).length]),
    [
      [1, 1],
      [0, 0],
    ],
  )
})

test('replicas that are taken away stay as they were', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 2 })
  await world.seconds(60)
  const names = world.machines().map(({ metadata }) => metadata.name)
  world.patch('small', { spec: { replicas: null } })
  await world.seconds(5)
  assert.equal(world.deployment('small')?.spec?.replicas, 2)
  assert.deepEqual(
    world.machines().map(({ metadata }) => metadata.name),
    names,
  )
})

test('a deleted MachineDeployment takes its MachineSets, Machines and Nodes with it', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 3 })
  await world.seconds(60)
  world.hub.delete(world.kinds.deployment, 'default', 'small')
  await world.seconds(20)
  assert.equal(world.deployment('small'), undefined)
  assert.deepEqual([world.sets('small'), world.machines(), world.nodes()], [[], [], []])
  assert.deepEqual(world.cluster.kubelets.running(), [])
})

test('machines are billed from their provider ID to their end, at the price of their MachineDeployment', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', {
    replicas: 1,
    annotations: { 'cluster.x-k8s.io/machine-current-price': '0.25' },
  })
  await world.seconds(5)
  assert.deepEqual(world.cloud.instances(), [])
  await world.seconds(10)
  const { name } = world.onlyMachine().metadata
  assert.deepEqual(world.cloud.instances(), [{ name, pricePerHour: 0.25 }])
  world.scale('small', 0)
  await world.seconds(4)
  assert.equal(world.cloud.instances().length, 1)
  await world.seconds(4)
  assert.deepEqual(world.cloud.instances(), [])
})

test('v1beta1 is served where it is asked for, with its own fields', async (t) => {
  const world = await ClusterApiFixture.start({ version: 'v1beta1' })
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 1 })
  await world.seconds(60)
  const { status } = world.deployment('small') ?? {}
  assert.deepEqual([status?.updatedReplicas, status?.upToDateReplicas], [1, undefined])
  assert.equal(world.onlyMachine().apiVersion, 'cluster.x-k8s.io/v1beta1')
})
