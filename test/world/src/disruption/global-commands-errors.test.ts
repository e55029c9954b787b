/** Commands of the global search while the API server fails: what was begun is finished or undone. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds } from '@tenon/api'
import { minutes, intercepting, seconds } from '../testing/stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import { setDisruption, tainted } from './disruption-stage.test-support.ts'
import { isTainted } from './fleet-stage.test-support.ts'
import { assertDone, replaces, threeMedium, twoLarge, untilBegun } from './global-commands.test-support.ts'
import { isMarked } from './replacing-stage.test-support.ts'

describe('an API server that answers 500', () => {
  type Fails = (method: string, path: string, body: string) => boolean
  const points: Readonly<Record<string, Fails>> = {
    'the mark of one node': (method, path, body) =>
      method === 'PATCH' && path.includes('/nodes/node-b') && body.includes('karpenter.sh/disrupted'),
    'new claims': (method, path) => method === 'POST' && path.endsWith('/nodeclaims'),
    evictions: (_, path) => path.includes('/eviction'),
    'the deletion of one claim': (method, path) => method === 'DELETE' && path.includes('/nodeclaims/b'),
    'every write': (method) => method !== 'GET',
  }
  for (const [point, fails] of Object.entries(points)) {
    test(`to ${point}: once it is over, all pods run on cheaper nodes`, async (t) => {
      let isBroken = false
      let failures = 0
      const apiPath = intercepting((...request) => {
        if (!isBroken || !fails(...request)) return 'pass'
        failures++
        return 'error'
      })
      const fleet = await twoLarge(t, { apiPath })
      setDisruption(fleet.stage, { consolidateAfter: '0s' })
      isBroken = true
      await fleet.stage.pass(45 * seconds)
      assert.ok(failures > 0)
      isBroken = false
      await assertDone(fleet, 0.6)
      // Pods that a drain evicts come in no certain order, which may cost an instance for a while.
      if (point !== 'evictions') assert.ok(madeClaims(fleet.stage).every(replaces), 'another instance came')
    })
  }

  test('to every second creation: the claim that was made is no more than one instance too many, and goes', async (t) => {
    let [count, failures] = [0, 0]
    const apiPath = intercepting((method, path) => {
      if (method !== 'POST' || !path.endsWith('/nodeclaims') || count++ % 2 === 0 || failures > 2)
        return 'pass'
      failures++
      return 'error'
    })
    const fleet = await twoLarge(t, { apiPath })
    setDisruption(fleet.stage, { consolidateAfter: '0s' })
    await fleet.stage.pass(minutes)
    assert.ok(failures > 0)
    await assertDone(fleet, 0.6)
  })

  test('to the deletion of one claim until the command is given up: it stays, what drains goes on', async (t) => {
    const apiPath = intercepting((method, path) =>
      method === 'DELETE' && path.includes('/nodeclaims/b') ? 'error' : 'pass',
    )
    const fleet = await twoLarge(t, { apiPath })
    const { stage } = fleet
    stage.cloud.deletionMs = 30 * minutes
    await untilBegun(fleet)
    const taintedSince: string[] = []
    stage.world.cluster.server.local.subscribe(kinds.node, {
      updated: (now) => {
        if (now.metadata.name === 'node-a') taintedSince.push(isTainted(now) ? 'tainted' : 'open')
      },
    })
    setDisruption(stage, { consolidateAfter: 'Never' })
    await stage.pass(12 * minutes)
    assert.ok(!taintedSince.includes('open'), 'the node that drains was to take pods again')
    assert.deepEqual([tainted(stage).includes('b'), isMarked(stage, 'b')], [false, false])
    assert.deepEqual(fleet.notRunning(), [])
  })

  test('to the mark of one node that goes without replacement: its pods are left where they are', async (t) => {
    let isBroken = true
    const apiPath = intercepting((method, path, body) =>
      isBroken &&
      method === 'PATCH' &&
      /\/nodes\/node-[ab]/.test(path) &&
      body.includes('karpenter.sh/disrupted') &&
      !path.includes('node-a')
        ? 'error'
        : 'pass',
    )
    const fleet = await threeMedium(t, { apiPath })
    const { stage } = fleet
    setDisruption(stage, { consolidateAfter: '0s' })
    const isBegun = () => tainted(stage).length > 0
    assert.ok(await stage.world.clock.advanceUntil(isBegun, minutes))
    setDisruption(stage, { consolidateAfter: 'Never' })
    const kept = stage.world
      .nodes()
      .filter(({ metadata }) => !tainted(stage).includes(metadata.name.slice(5)))
    const before = stage.world
      .pods()
      .filter(({ spec }) => kept.some(({ metadata }) => metadata.name === spec.nodeName))
    await stage.pass(30 * seconds)
    for (const { metadata } of before)
      assert.ok(!stage.isLeaving(metadata.name), `${metadata.name} was moved`)
    isBroken = false
    await assertDone(fleet, 0.6)
  })
})
