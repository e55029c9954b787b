import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import { minutes, intercepting, seconds, type Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims, unscheduled, waitingPod } from '../testing/pools.test-support.ts'
import {
  cpu,
  left,
  mediumLabels,
  openDisruption,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'

const types = [aType('medium', 4)]

/** A pod that somebody else has nominated to `node-a`. */
function nominated(stage: Stage, options: Parameters<typeof waitingPod>[2] = {}): Pod {
  const status = { phase: 'Pending' as const, ...options.status, nominatedNodeName: 'node-a' }
  return waitingPod(stage, 'nominated', { ...options, status })
}

/** `node-a`, whose last pod has just ended, with a pod nominated to it. */
async function emptied(t: TestContext, options: Parameters<typeof nominated>[1] = {}): Promise<Stage> {
  const stage = await openDisruption(t, { types })
  await stage.ready('a')
  await stage.pod('last', 'node-a')
  nominated(stage, options)
  await stage.end('last')
  return stage
}

describe('RPB-17 VER-42 an empty node that an unbound pod is nominated to', () => {
  const waits = {
    'of a scheduler that says nothing': {},
    'that its scheduler has refused': { status: unscheduled() },
    'that is gated': { spec: { schedulingGates: [{ name: 'example.com/wait' }] } },
  }
  for (const [what, options] of Object.entries(waits))
    test(`stays with a pod ${what}, for ten minutes`, async (t) => {
      const stage = await emptied(t, options)
      await stage.pass(9 * minutes)
      assert.deepEqual([left(stage), tainted(stage), madeClaims(stage)], [['a'], [], []])
      assert.deepEqual(
        eventMessages(stage, 'DisruptionBlocked', 'Node/node-a').at(-1),
        'A pod is nominated to the Node (Pod=default/nominated)',
      )
      await stage.pass(2 * minutes)
      // One that was refused is decided about from then on, and the node has room for it.
      assert.equal(left(stage).includes('a'), options === waits['that its scheduler has refused'])
    })

  const ends: Readonly<Record<string, (stage: Stage) => void>> = {
    'is gone': (stage) => {
      stage.world.cluster.server.local.delete(kinds.pod, 'default', 'nominated', { gracePeriodSeconds: 0 })
    },
    'has ended': (stage) => {
      stage.patch(kinds.pod, 'nominated', { status: { phase: 'Failed' } }, 'status', 'default')
    },
    'is nominated elsewhere': (stage) => {
      stage.patch(kinds.pod, 'nominated', { status: { nominatedNodeName: 'other' } }, 'status', 'default')
    },
    'is not nominated any more': (stage) => {
      stage.patch(kinds.pod, 'nominated', { status: { nominatedNodeName: null } }, 'status', 'default')
    },
  }
  for (const [what, end] of Object.entries(ends))
    test(`goes once the pod ${what}`, async (t) => {
      const stage = await emptied(t)
      await stage.pass(3 * minutes)
      assert.deepEqual(left(stage), ['a'])
      end(stage)
      await stage.pass(45 * seconds)
      assert.deepEqual(left(stage), [])
    })

  test('stays when the pod is nominated while the node is being looked at', async (t) => {
    const stage = await openDisruption(t, { types })
    await stage.ready('a')
    await stage.pass(8 * seconds)
    assert.deepEqual(left(stage), ['a'])
    nominated(stage)
    await stage.pass(3 * minutes)
    assert.deepEqual([left(stage), tainted(stage)], [['a'], []])
  })

  test('is let go when it was marked as the pod was nominated', async (t) => {
    let onTaint = (): void => undefined
    const stage = await openDisruption(t, {
      types,
      apiPath: intercepting((method, path, body) => {
        if (method !== 'GET' && path.startsWith('/api/v1/nodes/') && body.includes('disrupted')) onTaint()
        return 'pass'
      }),
    })
    onTaint = () => {
      onTaint = () => undefined
      nominated(stage)
    }
    await stage.ready('a')
    await stage.pass(3 * minutes)
    assert.deepEqual([left(stage), tainted(stage)], [['a'], []])
  })

  test('VER-46 expires all the same', async (t) => {
    const stage = await openDisruption(t, { types })
    await stage.ready('a', { expireAfter: '2m' })
    nominated(stage)
    await stage.pass(minutes)
    assert.deepEqual(left(stage), ['a'])
    await stage.pass(2 * minutes)
    assert.deepEqual(left(stage), [])
  })
})

test('RPB-17 consolidation leaves a node alone that a pod is nominated to', async (t) => {
  const stage = await openDisruption(t, { types })
  for (const name of ['a', 'b']) {
    await stage.claim(name, {}, { labels: mediumLabels })
    await stage.join(name)
    await stage.report(`node-${name}`)
  }
  // Each would fit on the other node.
  nominated(stage, { cpu: '1' })
  for (const name of ['a', 'b']) await stage.pod(`on-${name}`, `node-${name}`, cpu('2'))
  await stage.pass(5 * minutes)
  assert.ok(left(stage).includes('a'), left(stage).join())
})

describe('RPB-17 room on a node that a pod is nominated to', () => {
  async function launchedFor(
    t: TestContext,
    amount: string,
    prepare: (stage: Stage) => Promise<void>,
  ): Promise<number> {
    const stage = await openDisruption(t, { types, disruption: { consolidateAfter: 'Never' } })
    await stage.ready('a')
    await prepare(stage)
    waitingPod(stage, 'waiting', { cpu: amount })
    await stage.pass(20 * seconds)
    return madeClaims(stage).length
  }

  test('is not given to another pod', async (t) => {
    const launched = await launchedFor(t, '2', (stage) => {
      nominated(stage, { cpu: '3' })
      return Promise.resolve()
    })
    assert.equal(launched, 1)
  })

  test('is given to a pod that has room beside it', async (t) => {
    const launched = await launchedFor(t, '1', (stage) => {
      nominated(stage, { cpu: '3' })
      return Promise.resolve()
    })
    assert.equal(launched, 0)
  })

  test('is that of the pods which are stopped for it', async (t) => {
    const launched = await launchedFor(t, '1', async (stage) => {
      await stage.pod('victim', 'node-a', cpu('3'))
      stage.world.cluster.server.local.delete(kinds.pod, 'default', 'victim', { gracePeriodSeconds: 120 })
      nominated(stage, { cpu: '3', status: unscheduled() })
    })
    assert.equal(launched, 0)
  })

  test('counts for anti-affinity of others', async (t) => {
    const podAntiAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: { app: 'alone' } }, topologyKey: 'kubernetes.io/hostname' },
      ],
    }
    const stage = await openDisruption(t, { types, disruption: { consolidateAfter: 'Never' } })
    await stage.ready('a')
    nominated(stage, { labels: { app: 'alone' } })
    waitingPod(stage, 'waiting', { labels: { app: 'alone' }, spec: { affinity: { podAntiAffinity } } })
    await stage.pass(20 * seconds)
    assert.equal(madeClaims(stage).length, 1)
  })
})

test('RPB-17 VER-46 what replaces a drifted node has room for the pod that is nominated to it', async (t) => {
  const stage = await openDisruption(t, {
    types: [aType('medium', 4), aType('large', 8)],
    disruption: { consolidateAfter: 'Never' },
  })
  setDrifted(stage, 'a')
  await stage.ready('a')
  await stage.report('node-a', 'True', { cpu: '8' })
  await stage.pod('small', 'node-a', cpu('1'))
  nominated(stage, { cpu: '5' })
  await stage.world.clock.advanceUntil(() => tainted(stage).length > 0, minutes)
  const [replacement, ...more] = madeClaims(stage)
  assert.deepEqual([more, replacement?.spec.resources?.requests?.['cpu']], [[], '6'])
})

test('VER-45 a pod that is nominated to a node that does not exist is pending, and gets a node', async (t) => {
  const stage = await openDisruption(t, { types })
  waitingPod(stage, 'nominated', { status: { ...unscheduled(), nominatedNodeName: 'gone' } })
  await stage.pass(30 * seconds)
  assert.deepEqual(
    madeClaims(stage).map(({ spec }) => spec.resources?.requests?.['cpu']),
    ['1'],
  )
})
