import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { minutes, intercepting, seconds } from '../testing/stage.test-support.ts'
import { madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { left, tainted } from './disruption-stage.test-support.ts'
import {
  aNodeOf,
  anOversizedNode,
  consolidate,
  isMarked,
  joinReplacements,
  large,
  openReplacing,
  running,
  untilBegun,
} from './replacing-stage.test-support.ts'

describe('a command with a replacement', () => {
  test('DIS-136 taint and reason come first, then the claim, then the mark; nothing else is launched meanwhile', async (t) => {
    const steps: string[] = []
    let note = (_step: string): void => undefined
    const apiPath = intercepting((method, path, body) => {
      if (method === 'PATCH' && path.includes('/nodes/') && body.includes('karpenter.sh/disrupted'))
        note('taint')
      if (method === 'PATCH' && path.includes('/nodeclaims/') && body.includes('DisruptionReason'))
        note('reason')
      if (method === 'POST' && path.endsWith('/nodeclaims')) note('claim')
      return 'pass'
    })
    const stage = await anOversizedNode(t, { apiPath })
    note = (step) => {
      steps.push(`${step}, ${isMarked(stage, 'a') ? 'marked' : 'not marked'}`)
      // A pod that fits nowhere yet makes the provisioner decide while the claim is being created.
      if (step === 'claim' && steps.length === 3) waitingPod(stage, 'late', { cpu: '500m' })
    }
    consolidate(stage)
    assert.deepEqual(await untilBegun(stage), ['a'])
    assert.deepEqual(steps, ['taint, not marked', 'reason, not marked', 'claim, not marked'])
    assert.equal(isMarked(stage, 'a'), true)
    assert.equal(stage.state('a', 'DisruptionReason'), 'True/Underutilized')
    await stage.pass(5 * seconds)
    assert.equal(madeClaims(stage).length, 1)
  })

  test('DIS-137 a pod that comes while the old node drains is meant for the replacement', async (t) => {
    const stage = await openReplacing(t)
    await aNodeOf(stage, 'a', large)
    await running(stage, 'slow', 'node-a', '1', { spec: { terminationGracePeriodSeconds: 3600 } })
    consolidate(stage)
    await untilBegun(stage)
    await joinReplacements(stage)
    await stage.pass(3 * seconds)
    assert.ok(stage.isLeaving('slow'))
    const [replacement] = madeClaims(stage)
    waitingPod(stage, 'late', { cpu: '500m' })
    await stage.pass(5 * seconds)
    const told = stage.events('Nominated').filter(({ object }) => object === 'Pod/late')
    assert.deepEqual(
      told.map(({ message }) => message.includes(replacement?.metadata.name ?? 'none')),
      [true],
    )
    await stage.end('late')
    // Empty or not, the replacement is there for the pods of the old node, however long they take.
    await stage.pass(5 * minutes)
    assert.deepEqual(left(stage), [replacement?.metadata.name])
    assert.equal(madeClaims(stage).length, 1)
  })

  test('DIS-138 the old node stays tainted until its replacement is initialized, and then goes', async (t) => {
    const stage = await anOversizedNode(t)
    consolidate(stage)
    await untilBegun(stage)
    const [replacement] = madeClaims(stage)
    const name = replacement?.metadata.name ?? ''
    await stage.pass(minutes)
    assert.deepEqual(tainted(stage), ['a'])
    assert.deepEqual(left(stage), ['a', name].toSorted())
    assert.equal(isMarked(stage, 'a'), true)
    for (const reason of ['DisruptionLaunching', 'DisruptionWaitingReadiness'])
      assert.deepEqual([...new Set(stage.events(reason).map(({ object }) => object))], [`NodeClaim/${name}`])
    await joinReplacements(stage)
    await stage.pass(2 * seconds)
    assert.deepEqual(left(stage), [name])
    assert.deepEqual(
      stage
        .events('DisruptionTerminating')
        .map(({ object }) => object)
        .toSorted(),
      ['Node/node-a', 'NodeClaim/a'],
    )
  })

  test('DIS-144 when its node cannot be tainted, nothing is launched', async (t) => {
    let tries = 0
    const apiPath = intercepting((method, path, body) => {
      if (method !== 'PATCH' || !path.includes('/nodes/') || !body.includes('karpenter.sh/disrupted'))
        return 'pass'
      tries++
      return 'error'
    })
    const stage = await anOversizedNode(t, { apiPath })
    consolidate(stage)
    await stage.pass(minutes)
    assert.ok(tries > 0)
    assert.deepEqual(madeClaims(stage), [])
    assert.deepEqual(left(stage), ['a'])
    assert.equal(isMarked(stage, 'a'), false)
    assert.equal(await stage.metric('voluntary_disruption_decisions_total'), 0)
  })

  test('DIS-145 when limits refuse its replacement, the next pass takes the marks off', async (t) => {
    // The two nodes exceed the limit; without one of them there would be room for a small one.
    const stage = await openReplacing(t, { pool: { limits: { cpu: '12' } } })
    for (const name of ['a', 'b']) {
      await aNodeOf(stage, name, large)
      await running(stage, `on-${name}`, `node-${name}`, '1500m')
    }
    await running(stage, 'filler', 'node-b', '6')
    consolidate(stage)
    assert.deepEqual(await untilBegun(stage), [])
    assert.equal(stage.state('a', 'DisruptionReason'), 'absent')
    assert.deepEqual(madeClaims(stage), [])
    assert.ok(stage.events('ConsolidationCandidate').length > 0)
    await stage.pass(2 * minutes)
    assert.deepEqual([madeClaims(stage), left(stage), tainted(stage)], [[], ['a', 'b'], []])
    assert.equal(stage.state('a', 'DisruptionReason'), 'absent')
  })

  test('DIS-146 a claim that is gone by the time it is to be deleted is neither told of nor counted', async (t) => {
    const stage = await anOversizedNode(t)
    consolidate(stage)
    await untilBegun(stage)
    await stage.deleteClaim('a')
    await stage.end('p')
    await stage.pass(10 * seconds)
    assert.equal(stage.claimNow('a'), undefined)
    await joinReplacements(stage)
    await stage.pass(3 * seconds)
    assert.deepEqual(stage.events('DisruptionTerminating'), [])
    assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'underutilized' }), 0)
    assert.equal(await stage.metric('voluntary_disruption_queue_failures_total'), 0)
  })
})

describe('what a command counts', () => {
  test('DIS-147 nodes and pods by policy, capacity type and termination mode; drift has no policy', async (t) => {
    const stage = await openReplacing(t)
    await aNodeOf(stage, 'a', large, { terminationGracePeriod: '1h' })
    await running(stage, 'p', 'node-a')
    await stage.pod('agent', 'node-a', { ownerReferences: [await stage.daemonSet('agent')] })
    consolidate(stage)
    await untilBegun(stage)
    await joinReplacements(stage)
    await stage.pass(3 * seconds)
    const common = { nodepool: 'default', capacity_type: 'on-demand' }
    const consolidated = {
      ...common,
      reason: 'underutilized',
      consolidation_policy: 'when_empty_or_underutilized',
      termination_mode: 'eventual',
    }
    for (const name of ['nodeclaims_disrupted_total', 'pods_disruption_initiated_total'])
      assert.equal(await stage.metric(name, consolidated), 1, name)
    stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption: { consolidateAfter: 'Never' } } })
    await stage.end('p')
    await stage.pass(10 * seconds)
    const [replacement] = madeClaims(stage)
    await running(stage, 'q', `node-${replacement?.metadata.name}`)
    stage.cloud.onIsDrifted = ({ metadata }) =>
      metadata.name === replacement?.metadata.name ? 'ImageChanged' : undefined
    await stage.pass(6 * minutes)
    await joinReplacements(stage)
    await stage.pass(3 * seconds)
    const drifted = { ...common, reason: 'drifted', consolidation_policy: '', termination_mode: 'graceful' }
    for (const name of ['nodeclaims_disrupted_total', 'pods_disruption_initiated_total'])
      assert.equal(await stage.metric(name, drifted), 1, name)
  })
})

test('DIS-139 a drifted node stays while one of its two replacements is not initialized', async (t) => {
  const stage = await openReplacing(t)
  await aNodeOf(stage, 'a', large)
  for (const name of ['p', 'q']) await running(stage, name, 'node-a', '1500m')
  // Large instances are sold out: its pods need two small ones.
  stage.cloud.instanceTypes = stage.cloud.instanceTypes.filter(({ name }) => name === 'small')
  stage.cloud.onIsDrifted = ({ metadata }) => (metadata.name === 'a' ? 'ImageChanged' : undefined)
  await stage.pass(6 * minutes)
  assert.deepEqual(tainted(stage), ['a'])
  const replacements = madeClaims(stage).map(({ metadata }) => metadata.name)
  assert.equal(replacements.length, 2)
  await stage.join(replacements[0] ?? '')
  await stage.report(`node-${replacements[0]}`, 'True', { cpu: '2' })
  await stage.pass(minutes)
  assert.deepEqual(left(stage), ['a', ...replacements].toSorted())
  await joinReplacements(stage)
  await stage.pass(3 * seconds)
  assert.deepEqual(left(stage), replacements.toSorted())
})

test('DIS-148 a node that takes pods of a removed one is no candidate while it waits for them', async (t) => {
  const stage = await openReplacing(t)
  for (const name of ['a', 'b']) {
    await aNodeOf(stage, name, large)
    await running(stage, `on-${name}`, `node-${name}`, name === 'a' ? '1' : '3')
  }
  await running(stage, 'second', 'node-b', '3')
  stage.cloud.instanceTypes = [large]
  consolidate(stage)
  assert.deepEqual(await untilBegun(stage), ['a'])
  const { state } = stage.operator.operator
  assert.equal(state.isNominated('fake://b'), true)
  await stage.pass(10 * seconds)
  const blocked = stage.events('DisruptionBlocked').filter(({ object }) => object === 'Node/node-b')
  assert.ok(
    blocked.some(({ message }) => message.includes('pending pod')),
    JSON.stringify(blocked),
  )
  assert.equal(stage.nodeNow('node-a')?.metadata.deletionTimestamp !== undefined, true)
  assert.equal(
    stage.world.cluster.server.local.get(kinds.node, undefined, 'node-b')?.spec?.taints?.length ?? 0,
    0,
  )
})
