import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findCondition } from '../objects/conditions.ts'
import { isActive } from '../objects/pods.ts'
import { type Deployment, type ReplicaSet, workloads } from '../objects/workloads.ts'
import { startWorld, template, type World } from '../world.test-support.ts'
import { kinds } from '@tenon/api'

function create(world: World, spec: Partial<Deployment['spec']> = {}): void {
  world.api.create(workloads.deployment, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas: 3, selector: { matchLabels: { app: 'web' } }, template: template('web'), ...spec },
  })
}

const read = (world: World) => world.api.get(workloads.deployment, 'default', 'web') as Deployment
const condition = (world: World, type: string) => findCondition(read(world).status?.conditions, type)

function change(world: World, spec: Partial<Deployment['spec']>): void {
  const deployment = read(world)
  world.api.update(workloads.deployment, { ...deployment, spec: { ...deployment.spec, ...spec } })
}

function sets(world: World): ReplicaSet[] {
  return world.api.list(workloads.replicaSet, { namespace: 'default' })
}

/** What `kubectl rollout status` waits for. */
function isRolledOut(world: World): boolean {
  const { metadata, spec, status } = read(world)
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0, observedGeneration = 0 } = status ?? {}
  return (
    observedGeneration >= (metadata.generation ?? 0) &&
    updatedReplicas === (spec.replicas ?? 1) &&
    replicas === updatedReplicas &&
    availableReplicas === updatedReplicas
  )
}

test('a Deployment makes a ReplicaSet and pods, and reports its rollout as kubectl reads it', async () => {
  const world = startWorld()
  create(world)
  await world.settle()
  const [set] = sets(world)
  const hash = set?.metadata.labels?.['pod-template-hash']
  assert.equal(set?.metadata.name, `web-${hash}`)
  assert.equal(set?.metadata.annotations?.['deployment.kubernetes.io/revision'], '1')
  assert.equal(read(world).metadata.annotations?.['deployment.kubernetes.io/revision'], '1')
  assert.equal(world.pods().length, 3)
  for (const pod of world.pods()) {
    assert.match(pod.metadata.name, new RegExp(`^web-${hash}-[bcdfghjklmnpqrstvwxz2456789]{5}$`))
    const [owner] = pod.metadata.ownerReferences ?? []
    assert.deepEqual([owner?.kind, owner?.controller, owner?.blockOwnerDeletion], ['ReplicaSet', true, true])
  }
  assert.ok(isRolledOut(world))
  assert.equal(condition(world, 'Available')?.reason, 'MinimumReplicasAvailable')
  assert.equal(condition(world, 'Progressing')?.reason, 'NewReplicaSetAvailable')
  assert.deepEqual(world.events('ScalingReplicaSet'), [
    `Scaled up replica set ${set?.metadata.name} from 0 to 3`,
  ])
  assert.equal(world.events('SuccessfulCreate').length, 3)
  world.stop()
})

test('a rolling update stays within maxSurge and maxUnavailable', async () => {
  const world = startWorld()
  create(world, {
    replicas: 8,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 1 } },
  })
  await world.settle()
  change(world, { template: template('web', 'app:2') })
  let fewestReady = 8
  let most = 0
  const done = await world.clock.advanceUntil(() => {
    const active = world.pods().filter(isActive)
    const ready = active.filter((pod) => pod.status?.phase === 'Running').length
    fewestReady = Math.min(fewestReady, ready)
    most = Math.max(most, active.length)
    return isRolledOut(world)
  }, 120_000)
  assert.ok(done)
  assert.ok(fewestReady >= 7, `fewest ready: ${fewestReady}`)
  assert.ok(most <= 10, `most: ${most}`)
  assert.equal(sets(world).length, 2)
  assert.equal(read(world).metadata.annotations?.['deployment.kubernetes.io/revision'], '2')
  world.stop()
})

test('Recreate starts new pods only after all old ones are gone', async () => {
  const world = startWorld()
  create(world, { strategy: { type: 'Recreate' } })
  await world.settle()
  change(world, { template: template('web', 'app:2') })
  let mixed = false
  const done = await world.clock.advanceUntil(() => {
    const images = new Set(world.pods().map((pod) => pod.spec.containers[0]?.image))
    mixed ||= images.size > 1
    return isRolledOut(world)
  }, 60_000)
  assert.ok(done)
  assert.equal(mixed, false)
  world.stop()
})

test('undo to an earlier template reuses its ReplicaSet under a new revision', async () => {
  const world = startWorld()
  create(world)
  await world.settle()
  const first = sets(world)[0]?.metadata.name
  change(world, { template: template('web', 'app:2') })
  await world.settle(30_000)
  change(world, { template: template('web') })
  await world.settle(30_000)
  assert.ok(isRolledOut(world))
  assert.equal(sets(world).length, 2)
  const current = sets(world).find((set) => set.spec.replicas === 3)
  assert.equal(current?.metadata.name, first)
  assert.equal(current?.metadata.annotations?.['deployment.kubernetes.io/revision'], '3')
  assert.equal(current?.metadata.annotations?.['deployment.kubernetes.io/revision-history'], '1')
  world.stop()
})

test('a paused Deployment scales but does not roll out until it is resumed', async () => {
  const world = startWorld()
  create(world)
  await world.settle()
  change(world, { paused: true, template: template('web', 'app:2'), replicas: 5 })
  await world.settle(30_000)
  assert.equal(sets(world).length, 1)
  assert.equal(world.pods().length, 5)
  assert.equal(condition(world, 'Progressing')?.reason, 'DeploymentPaused')
  change(world, { paused: false })
  await world.settle(60_000)
  assert.ok(isRolledOut(world))
  assert.equal(sets(world).length, 2)
  world.stop()
})

test('a rollout that makes no progress reports ProgressDeadlineExceeded', async () => {
  const world = startWorld()
  world.readyAfterMs = () => -1
  create(world, { progressDeadlineSeconds: 60 })
  await world.settle(30_000)
  assert.equal(condition(world, 'Progressing')?.status, 'True')
  await world.settle(45_000)
  assert.equal(condition(world, 'Progressing')?.reason, 'ProgressDeadlineExceeded')
  assert.equal(condition(world, 'Progressing')?.status, 'False')
  assert.equal(condition(world, 'Available')?.reason, 'MinimumReplicasUnavailable')
  world.stop()
})

test('scaling in the middle of a rollout spreads the new pods over both ReplicaSets', async () => {
  const world = startWorld()
  create(world, {
    replicas: 10,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } },
  })
  await world.settle()
  world.readyAfterMs = () => -1
  change(world, { template: template('web', 'app:2') })
  await world.settle(10_000)
  assert.deepEqual(
    sets(world)
      .map((set) => set.spec.replicas)
      .sort((a, b) => (a ?? 0) - (b ?? 0)),
    [5, 8],
  )
  change(world, { replicas: 15 })
  await world.settle(10_000)
  assert.deepEqual(
    sets(world)
      .map((set) => set.spec.replicas)
      .sort((a = 0, b = 0) => a - b),
    [7, 11],
  )
  world.stop()
})

test('old ReplicaSets beyond revisionHistoryLimit are deleted', async () => {
  const world = startWorld()
  create(world, { revisionHistoryLimit: 1 })
  await world.settle()
  for (const image of ['app:2', 'app:3', 'app:4']) {
    change(world, { template: template('web', image) })
    await world.settle(40_000)
  }
  assert.equal(sets(world).length, 2)
  world.stop()
})

test('controllers restarted in the middle of a rollout finish it without extra pods', async () => {
  for (let stopAfterMs = 0; stopAfterMs < 6_000; stopAfterMs += 700) {
    const world = startWorld()
    create(world, { replicas: 6 })
    await world.settle()
    change(world, { template: template('web', 'app:2') })
    await world.clock.advance(stopAfterMs)
    world.restart()
    let most = 0
    const done = await world.clock.advanceUntil(() => {
      most = Math.max(most, world.pods().filter(isActive).length)
      return isRolledOut(world)
    }, 60_000)
    assert.ok(done, `stopped after ${stopAfterMs}`)
    assert.ok(most <= 8, `${most} pods, stopped after ${stopAfterMs}`)
    assert.equal(sets(world).length, 2)
    world.stop()
  }
})

test('deleting a Deployment in the background removes its ReplicaSets and pods', async () => {
  const world = startWorld()
  create(world)
  await world.settle()
  world.api.delete(workloads.deployment, 'default', 'web', { propagationPolicy: 'Background' })
  await world.settle(10_000)
  assert.equal(sets(world).length, 0)
  assert.equal(world.pods().length, 0)
  assert.equal(world.api.list(kinds.pod).length, 0)
  world.stop()
})
