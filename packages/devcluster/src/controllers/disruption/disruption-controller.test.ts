import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type PodDisruptionBudget } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { findCondition } from '../objects/conditions.ts'
import { type WorkloadCondition, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'

function create(world: World, spec: PodDisruptionBudget['spec'], replicas = 10): void {
  world.api.create(workloads.deployment, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas, selector: { matchLabels: { app: 'web' } }, template: template('web') },
  })
  world.api.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  })
}

type Status = NonNullable<PodDisruptionBudget['status']> & {
  readonly conditions?: readonly WorkloadCondition[]
}
const read = (world: World) =>
  world.api.get(kinds.podDisruptionBudget, 'default', 'web') as PodDisruptionBudget
const status = (world: World) => read(world).status as Status
const counts = (world: World) => {
  const { expectedPods, currentHealthy, desiredHealthy, disruptionsAllowed } = status(world)
  return [expectedPods, currentHealthy, desiredHealthy, disruptionsAllowed]
}

for (const [spec, expected] of [
  [{ minAvailable: 7 }, [10, 10, 7, 3]],
  [{ minAvailable: '75%' }, [10, 10, 8, 2]],
  [{ maxUnavailable: 1 }, [10, 10, 9, 1]],
  [{ maxUnavailable: '25%' }, [10, 10, 7, 3]],
  [{ maxUnavailable: 0 }, [10, 10, 10, 0]],
] as const) {
  test(`a budget of ${JSON.stringify(spec)} over 10 healthy pods`, async () => {
    const world = startWorld()
    create(world, spec)
    await world.settle()
    assert.deepEqual(counts(world), expected)
    const { reason } = findCondition(status(world).conditions, 'DisruptionAllowed') ?? {}
    assert.equal(reason, expected[3] > 0 ? 'SufficientPods' : 'InsufficientPods')
    world.stop()
  })
}

test('percentages count the replicas that are wanted, not those that are there', async () => {
  const world = startWorld()
  let started = 0
  world.readyAfterMs = () => (started++ < 6 ? 1000 : -1)
  create(world, { minAvailable: '50%' })
  await world.settle()
  assert.deepEqual(counts(world), [10, 6, 5, 1])
  world.stop()
})

test('an allowed eviction counts against the budget until its note expires', async () => {
  const world = startWorld()
  create(world, { minAvailable: 9 })
  await world.settle()
  const [pod] = world.pods()
  const disruptedPods = { [pod?.metadata.name ?? '']: rfc3339(world.clock.now()) }
  const budget = read(world)
  world.api.updateStatus(kinds.podDisruptionBudget, {
    ...budget,
    status: { ...budget.status, disruptionsAllowed: 0, disruptedPods } as Status,
  })
  await world.settle(60_000)
  assert.deepEqual(counts(world), [10, 9, 9, 0])
  await world.settle(70_000)
  assert.deepEqual(counts(world), [10, 10, 9, 1])
  world.stop()
})

test('pods without a controller make a percentage unanswerable, and nothing may be evicted', async () => {
  const world = startWorld()
  create(world, { maxUnavailable: '50%' }, 0)
  world.api.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'bare', namespace: 'default', labels: { app: 'web', bare: 'yes' } },
    spec: template('web').spec,
  })
  world.api.delete(workloads.deployment, 'default', 'web', { propagationPolicy: 'Orphan' })
  await world.settle()
  assert.equal(status(world).disruptionsAllowed, 0)
  assert.equal(findCondition(status(world).conditions, 'DisruptionAllowed')?.reason, 'SyncFailed')
  world.stop()
})
