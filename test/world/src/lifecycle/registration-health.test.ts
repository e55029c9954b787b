import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

function health(stage: Stage): string {
  const pool = stage.poolNow()
  const found = pool && conditionOf(pool, 'NodeRegistrationHealthy')
  return found === undefined ? 'absent' : `${found.status}/${found.reason}`
}

let made = 0
const fresh = () => `c${made++}`
const succeed = async (stage: Stage) => {
  await stage.ready(fresh())
}
/** An instance that never joins. */
const fail = async (stage: Stage) => {
  await stage.claim(fresh())
  await stage.pass(15 * minutes + seconds)
}
const unknown = 'Unknown/AwaitingReconciliation'
const healthy = 'True/NodeRegistrationHealthy'
const failed = 'False/RegistrationFailed'

test('LIF-32 the first node of a pool makes it healthy', async (t) => {
  const stage = await Stage.open(t)
  assert.equal(health(stage), unknown)
  assert.equal(stage.poolNow()?.status?.nodeClassObservedGeneration, 1)
  await succeed(stage)
  assert.equal(health(stage), healthy)
})

test('LIF-33 one failure changes nothing, the second makes the pool unhealthy', async (t) => {
  const stage = await Stage.open(t)
  await fail(stage)
  assert.equal(health(stage), unknown)
  await fail(stage)
  assert.equal(health(stage), failed)
  const ready = stage.poolNow()
  assert.equal(ready && conditionOf(ready, 'Ready')?.status, 'True')
})

test('LIF-33 when launches fail the pool says why', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new ProviderError('create', 'no quota left', { reason: 'QuotaExceeded' })
  }
  for (const name of [fresh(), fresh()]) await stage.claim(name)
  await stage.pass(5 * minutes + seconds)
  assert.equal(health(stage), 'False/QuotaExceeded')
  const pool = stage.poolNow()
  assert.equal(pool && conditionOf(pool, 'NodeRegistrationHealthy')?.message, 'no quota left')
})

test('LIF-34 after two failures one success is not enough', async (t) => {
  const stage = await Stage.open(t)
  await fail(stage)
  await fail(stage)
  await succeed(stage)
  assert.equal(health(stage), failed)
  await succeed(stage)
  assert.equal(health(stage), failed)
  await succeed(stage)
  assert.equal(health(stage), healthy)
})

test('LIF-35 claims of a pool that was deleted say nothing about its successor', async (t) => {
  const stage = await Stage.open(t)
  const pool = stage.poolNow()
  assert.ok(pool !== undefined)
  const orphans = [fresh(), fresh(), fresh()]
  for (const name of orphans) await stage.claim(name)
  const { local } = stage.world.cluster.server
  local.delete(karpenterKinds.nodePool, undefined, 'default', { propagationPolicy: 'Orphan' })
  await stage.pass(seconds)
  stage.world.create(karpenterKinds.nodePool, {
    apiVersion: pool.apiVersion,
    kind: pool.kind,
    metadata: { name: 'default' },
    spec: pool.spec,
  })
  await stage.pass(seconds)
  await stage.join(orphans[0] ?? '')
  assert.equal(health(stage), unknown)
  await stage.pass(16 * minutes)
  assert.equal(health(stage), unknown)
})

for (const change of ['pool', 'node class'] as const) {
  test(`LIF-36 STA-70 STA-71 a change of the ${change} makes the pool start over`, async (t) => {
    const stage = await Stage.open(t)
    const edit = async (n: number) => {
      if (change === 'pool')
        stage.patch(karpenterKinds.nodePool, 'default', { spec: { limits: { cpu: `${n}` } } })
      else stage.patch(kwokNodeClassKind, 'default', { spec: { nodeRegistrationDelay: `${n}s` } })
      await stage.pass(seconds)
    }
    await fail(stage)
    await fail(stage)
    assert.equal(health(stage), failed)
    await edit(1000)
    assert.equal(health(stage), unknown)
    if (change === 'node class') assert.equal(stage.poolNow()?.status?.nodeClassObservedGeneration, 2)
    await fail(stage)
    assert.equal(health(stage), unknown)
    await edit(2000)
    await succeed(stage)
    assert.equal(health(stage), healthy)
  })
}

test('LIF-37 STA-69 after a restart one success does not make an unhealthy pool healthy', async (t) => {
  const stage = await Stage.open(t)
  await fail(stage)
  await fail(stage)
  await stage.restart()
  await succeed(stage)
  assert.equal(health(stage), failed)
  await succeed(stage)
  await succeed(stage)
  assert.equal(health(stage), healthy)
  await stage.restart()
  await fail(stage)
  assert.equal(health(stage), healthy)
  await fail(stage)
  assert.equal(health(stage), failed)
})
