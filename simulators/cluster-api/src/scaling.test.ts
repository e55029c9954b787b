/** How MachineDeployments of the simulated Cluster API change their size, and which Machines go first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClusterApiFixture } from './cluster-api.test-support.ts'
import type { DeletionPolicy, FullMachine } from './kinds.ts'
import { deletionOrder } from './machine-sets/deletion-order.ts'

const deleteMachine = 'cluster.x-k8s.io/delete-machine'

interface Traits {
  readonly leaves?: boolean
  readonly annotated?: boolean
  readonly node?: boolean
  readonly healthy?: boolean
  readonly updating?: boolean
  readonly bornAt?: string
}

function aMachine(name: string, traits: Traits = {}): FullMachine {
  const {
    annotated = false,
    bornAt = '2026-01-01T00:00:00Z',
    healthy = true,
    leaves = false,
    node = true,
    updating = false,
  } = traits
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: {
      name,
      creationTimestamp: bornAt,
      ...(leaves && { deletionTimestamp: '2026-01-02T00:00:00Z' }),
      ...(updating && {
        annotations: { 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress': '' },
      }),
      ...(annotated && { annotations: { [deleteMachine]: '' } }),
    },
    status: {
      ...(node && { nodeRef: { name } }),
      conditions: [
        {
          type: 'NodeHealthy',
          status: healthy ? 'True' : 'False',
          reason: 'Known',
          message: '',
          lastTransitionTime: bornAt,
        },
      ],
    },
  }
}

const order = (machines: readonly FullMachine[], policy: DeletionPolicy = 'Random') =>
  deletionOrder(machines, policy, deleteMachine).map(({ metadata }) => metadata.name)

test('CAP-95 a Machine that is being deleted goes first, then annotated, updating, unhealthy and other ones, by name', () => {
  const machines = [
    aMachine('healthy-b'),
    aMachine('healthy-a'),
    aMachine('no-node', { node: false }),
    aMachine('ill', { healthy: false }),
    aMachine('updating', { updating: true }),
    aMachine('annotated', { annotated: true }),
    aMachine('z-leaving', { leaves: true }),
  ]
  assert.deepEqual(order(machines), [
    'z-leaving',
    'annotated',
    'updating',
    'ill',
    'no-node',
    'healthy-a',
    'healthy-b',
  ])
})

test('the policy decides among healthy Machines alone', () => {
  const machines = [
    aMachine('b', { bornAt: '2026-01-01T00:00:00Z' }),
    aMachine('a', { bornAt: '2026-01-02T00:00:00Z' }),
    aMachine('c', { bornAt: '2026-01-03T00:00:00Z' }),
    aMachine('ill-b', { healthy: false, bornAt: '2026-01-01T00:00:00Z' }),
    aMachine('ill-a', { healthy: false, bornAt: '2026-01-03T00:00:00Z' }),
  ]
  assert.deepEqual(order(machines, 'Newest'), ['ill-a', 'ill-b', 'c', 'a', 'b'])
  assert.deepEqual(order(machines, 'Oldest'), ['ill-a', 'ill-b', 'b', 'a', 'c'])
  assert.deepEqual(order(machines), ['ill-a', 'ill-b', 'a', 'b', 'c'])
})

test('a MachineDeployment grows and shrinks with its replicas, after a while', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 0 })
  await world.seconds(2)
  assert.equal(world.machines().length, 0)
  world.scale('small', 4)
  assert.equal(world.machines().length, 0)
  await world.seconds(1)
  assert.equal(world.machines().length, 4)
  await world.seconds(60)
  assert.deepEqual(world.phases(), { Running: 4 })
  const [, second] = world.machines().map(({ metadata }) => metadata.name)
  world.annotate(second ?? '', { [deleteMachine]: 'yes' })
  world.scale('small', 3)
  await world.seconds(1)
  assert.notEqual(world.machine(second ?? '')?.metadata.deletionTimestamp, undefined)
  await world.seconds(20)
  assert.equal(world.machine(second ?? ''), undefined)
  assert.equal(world.node(second ?? ''), undefined)
  assert.deepEqual(world.phases(), { Running: 3 })
})

test('a Machine that is being deleted counts until it is gone, and is replaced then', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 2 })
  await world.seconds(60)
  const { name } = world.machines()[0]?.metadata ?? { name: '' }
  world.deleteMachine(name)
  await world.seconds(3)
  assert.deepEqual(world.phases(), { Deleting: 1, Running: 1 })
  assert.equal(world.deployment('small')?.status?.replicas, 2)
  await world.seconds(10)
  assert.equal(world.machine(name), undefined)
  assert.equal(world.machines().length, 2)
})

test('a deletion and a decrement that meet cost one Machine, not two', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 3 })
  await world.seconds(60)
  const last = world.machines().at(-1)?.metadata.name ?? ''
  world.deleteMachine(last)
  world.scale('small', 2)
  await world.seconds(30)
  assert.deepEqual(world.phases(), { Running: 2 })
  assert.equal(world.machine(last), undefined)
})

test('a lagging controller of MachineDeployments does nothing before its time', async (t) => {
  const world = await ClusterApiFixture.start()
  t.after(() => world.stop())
  world.createDeployment('small', { replicas: 0 })
  await world.seconds(5)
  world.cloud.settings.deploymentDelay = { minMs: 60_000, maxMs: 60_000 }
  world.scale('small', 2)
  await world.seconds(59)
  assert.equal(world.machines().length, 0)
  await world.seconds(2)
  assert.equal(world.machines().length, 2)
})
