/** What is counted of NodeClaims that come and go (operations.md 9.1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProviderError } from '@tenon/provider'
import { openDisruption, setDisruption, setDrifted } from '../disruption/disruption-stage.test-support.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'

const created = 'nodeclaims_created_total'
const disrupted = 'nodeclaims_disrupted_total'

test('OPS-20 from the start a scrape tells which program this is, and that no search has timed out', async (t) => {
  const stage = await Stage.open(t)
  const text = await stage.operator.operator.metrics.registry.metrics()
  assert.match(
    text,
    /^karpenter_build_info\{version="[^"]+",goversion="[^"]+",goarch="[^"]+",commit="[^"]*"\} 1$/m,
  )
  for (const type of ['multi', 'single'])
    assert.ok(
      text.includes(
        `\nkarpenter_voluntary_disruption_consolidation_timeouts_total{consolidation_type="${type}"} 0\n`,
      ),
    )
})

test('OPS-21 a claim for pods that wait counts as provisioned', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  waitingPod(stage, 'p')
  await stage.start()
  await stage.pass(10 * seconds)
  assert.equal(madeClaims(stage).length, 1)
  assert.equal(
    await stage.metric(created, { reason: 'provisioned', nodepool: 'default', min_values_relaxed: 'false' }),
    1,
  )
  assert.equal(await stage.metric(created), 1)
})

test('OPS-22 the replacement of a drifted node counts as made, and the node as disrupted, for drift', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  await stage.ready('old')
  await stage.pod('p', 'node-old')
  setDrifted(stage, 'old')
  await stage.world.clock.advanceUntil(() => madeClaims(stage).length > 0, 10 * minutes)
  const name = madeClaims(stage)[0]?.metadata.name ?? ''
  await stage.pass(seconds)
  assert.equal(await stage.metric(created, { reason: 'drifted', nodepool: 'default' }), 1)
  assert.equal(await stage.metric(disrupted), 0)
  await stage.join(name)
  await stage.report(`node-${name}`)
  await stage.pass(30 * seconds)
  assert.equal(await stage.metric(disrupted, { reason: 'drifted', consolidation_policy: '' }), 1)
  assert.equal(await stage.metric(disrupted), 1)
  assert.equal(await stage.metric('pods_disruption_initiated_total', { reason: 'drifted' }), 1)
})

test('OPS-23 an empty node counts with the policy of its pool and how it ends', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  await stage.ready('a', { terminationGracePeriod: '60s' })
  setDisruption(stage, { consolidationPolicy: 'WhenEmpty', consolidateAfter: '0s' })
  await stage.pass(minutes)
  const labels = { reason: 'empty', consolidation_policy: 'when_empty', termination_mode: 'eventual' }
  assert.equal(
    await stage.metric(disrupted, { ...labels, nodepool: 'default', capacity_type: 'on-demand' }),
    1,
  )
  assert.equal(await stage.metric(disrupted), 1)
})

test('OPS-24 without a grace period nodes end gracefully, with none by force', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  await stage.ready('patient')
  await stage.ready('hasty', { terminationGracePeriod: '0s' })
  setDisruption(stage, { consolidateAfter: '0s' })
  await stage.pass(minutes)
  for (const termination_mode of ['graceful', 'forceful'])
    assert.equal(await stage.metric(disrupted, { reason: 'empty', termination_mode }), 1)
})

test('OPS-25 OPS-39 a launch without capacity is counted as the call that failed and as the claim that goes', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = ({ metadata }) => {
    if (metadata.name === 'odd') throw new Error('the cloud stumbles')
    throw new ProviderError('insufficientCapacity', 'sold out')
  }
  await stage.claim('a')
  await stage.pass(5 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
  assert.equal(await stage.metric(disrupted, { reason: 'insufficient_capacity' }), 1)
  const [event] = stage.events('InsufficientCapacityError')
  assert.deepEqual([event?.type, event?.object], ['Warning', 'NodeClaim/a'])
  const errors = 'cloudprovider_errors_total'
  const call = { controller: 'nodeclaim.lifecycle', method: 'Create', provider: 'scripted' }
  assert.equal(await stage.metric(errors, { ...call, error: 'InsufficientCapacityError' }), 1)
  assert.equal(await stage.metric(errors, { ...call, error: '' }), 0)
  await stage.claim('odd')
  assert.equal(await stage.metric(errors, { ...call, error: '' }), 1)
  assert.equal(await stage.metric(errors, { ...call, error: 'InsufficientCapacityError' }), 1)
})

test('OPS-26 claims that are not launched, or not registered, in time count with what was late', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = ({ metadata }) => {
    if (metadata.name === 'stuck') throw new Error('try again')
  }
  await stage.claim('stuck')
  await stage.claim('lonely')
  await stage.pass(16 * minutes)
  assert.deepEqual(stage.world.claims(), [])
  assert.equal(await stage.metric(disrupted, { reason: 'launch_timeout' }), 1)
  assert.equal(await stage.metric(disrupted, { reason: 'registration_timeout' }), 1)
})
