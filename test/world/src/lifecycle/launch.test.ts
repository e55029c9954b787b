import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, labels } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import type { Transport } from '@tenon/runtime'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'

test('LIF-1 nothing is launched before the finalizer is stored', async (t) => {
  const stage = await Stage.open(t)
  let seen: readonly string[] = []
  stage.cloud.onCreate = (claim) => {
    seen = stage.claimNow(claim.metadata.name)?.metadata.finalizers ?? []
  }
  await stage.claim('a')
  assert.deepEqual(seen, ['karpenter.sh/termination'])
})

test('RPT-34 an answer that does not show the finalizer launches nothing', async (t) => {
  const path = '/apis/karpenter.sh/v1/nodeclaims/a'
  const apiPath = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const isStale = isLying && request.method === 'PATCH' && request.path.split('?')[0] === path
      return isStale
        ? await inner.send({ method: 'GET', path, headers: request.headers }, signal)
        : await inner.send(request, signal)
    },
  })
  let isLying = true
  const stage = await Stage.open(t, { apiPath })
  await stage.claim('a')
  await stage.pass(30 * seconds)
  assert.equal(stage.cloud.count('create'), 0)
  isLying = false
  await stage.pass(2 * minutes)
  assert.equal(stage.state('a', 'Launched'), 'True/Launched')
})

test('LIF-2 a claim of a foreign node class is left alone', async (t) => {
  const stage = await Stage.open(t)
  await stage.claim('a', { nodeClassRef: { group: 'other.io', kind: 'OtherClass', name: 'x' } })
  await stage.pass(10 * seconds)
  assert.deepEqual(
    [stage.claimNow('a')?.metadata.finalizers, stage.claimNow('a')?.status],
    [undefined, undefined],
  )
  assert.equal(stage.cloud.count('create'), 0)
})

test('LIF-3 LIF-4 a launched claim carries its instance, keeps its own labels and takes the annotations of the cloud', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.extras = {
    labels: { [labels.instanceType]: 'large', 'example.com/own': 'cloud' },
    annotations: { 'example.com/note': 'cloud' },
  }
  await stage.claim(
    'a',
    {},
    {
      labels: { 'example.com/own': 'claim' },
      annotations: { 'example.com/note': 'claim', 'example.com/x': '1' },
    },
  )
  const claim = stage.claimNow('a')
  assert.equal(stage.state('a', 'Launched'), 'True/Launched')
  assert.equal(claim?.status?.providerID, 'fake://a')
  assert.equal(claim.status.imageID, 'image-1')
  assert.deepEqual(claim.status.capacity, { cpu: '4', memory: '8Gi', pods: '110' })
  assert.deepEqual(claim.status.allocatable, { cpu: '3800m', memory: '7Gi', pods: '110' })
  assert.equal(claim.metadata.labels?.[labels.instanceType], 'large')
  assert.equal(claim.metadata.labels['example.com/own'], 'claim')
  assert.deepEqual(claim.metadata.annotations, { 'example.com/note': 'cloud', 'example.com/x': '1' })
})

test('LIF-5 a status write that fails after the launch is made up for without a second launch', async (t) => {
  let refusals = 2
  const apiPath = intercepting((method, path) =>
    method === 'PATCH' && path.includes('/nodeclaims/a/status') && refusals-- > 0 ? 'error' : 'pass',
  )
  const stage = await Stage.open(t, { apiPath })
  await stage.claim('a')
  await stage.pass(10 * seconds)
  assert.equal(stage.state('a', 'Launched'), 'True/Launched')
  assert.equal(stage.cloud.count('create'), 1)
})

test('LIF-6 without capacity the claim goes, with an event and a count', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new ProviderError('insufficientCapacity', 'zone-1 is sold out')
  }
  await stage.claim('a')
  await stage.pass(5 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
  const [event] = stage.events('InsufficientCapacityError')
  assert.equal(event?.type, 'Warning')
  assert.equal(event.object, 'NodeClaim/a')
  assert.match(event.message, /zone-1 is sold out/)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'insufficient_capacity' }), 1)
})

test('LIF-7 a node class that is not ready ends the claim without an event', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new ProviderError('nodeClassNotReady', 'no image')
  }
  await stage.claim('a')
  await stage.pass(5 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'nodeclass_not_ready' }), 1)
  assert.deepEqual([...stage.events('NodeClassNotReady'), ...stage.events('InsufficientCapacityError')], [])
})

test('LIF-8 the reason that the provider gives stands on the claim', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new ProviderError('create', 'x'.repeat(400), { reason: 'QuotaExceeded' })
  }
  await stage.claim('a')
  assert.equal(stage.state('a', 'Launched'), 'Unknown/QuotaExceeded')
  assert.ok(stage.condition('a', 'Launched')?.message.endsWith('x'.repeat(400)))
})

test('LIF-8 a reason that the API would refuse does not keep the failure from being seen', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new ProviderError('create', 'no', { reason: 'quota exceeded!' })
  }
  await stage.claim('a')
  assert.equal(stage.state('a', 'Launched'), 'Unknown/LaunchFailed')
})

for (const [length, expected] of [
  [299, 'x'.repeat(299)],
  [300, `${'x'.repeat(300)}...`],
] as const) {
  test(`LIF-9 a message of ${length} characters`, async (t) => {
    const stage = await Stage.open(t)
    stage.cloud.onCreate = () => {
      throw new Error('x'.repeat(length))
    }
    await stage.claim('a')
    assert.equal(stage.state('a', 'Launched'), 'Unknown/LaunchFailed')
    assert.equal(stage.condition('a', 'Launched')?.message, expected)
  })
}

test('LIF-14 LIF-151 attempts are spaced 1, 2, 4 … 60 s, whatever the errors say', async (t) => {
  const stage = await Stage.open(t, { settings: { launchTimeoutMs: 60 * minutes } })
  let attempt = 0
  stage.cloud.onCreate = () => {
    throw new Error(`request ${attempt++} failed`)
  }
  await stage.claim('a')
  await stage.pass(5 * minutes)
  const times = stage.cloud.timesOf('create a')
  const gaps = times.slice(1).map((time, i) => Math.round((time - (times[i] as number)) / seconds))
  assert.deepEqual(gaps, [1, 2, 4, 8, 16, 32, 60, 60, 60])
})

test('LIF-10 a claim that cannot be launched is kept for 5 min and then deleted', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.onCreate = () => {
    throw new Error('no')
  }
  await stage.claim('a')
  await stage.pass(4 * minutes)
  assert.notEqual(stage.claimNow('a'), undefined)
  await stage.pass(2 * minutes)
  assert.equal(stage.claimNow('a'), undefined)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'launch_timeout' }), 1)
})

test('LIF-11 the transition time of Launched decides, not the age of the claim', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  stage.cloud.onCreate = () => {
    throw new Error('no')
  }
  await stage.claim('a')
  const lastTransitionTime = new Date(stage.now + 10 * minutes).toISOString().replace(/\.\d+/, '')
  const condition = {
    type: 'Launched',
    status: 'Unknown',
    reason: 'LaunchFailed',
    message: '',
    lastTransitionTime,
  }
  stage.patch(karpenterKinds.nodeClaim, 'a', { status: { conditions: [condition] } }, 'status')
  await stage.start()
  await stage.pass(12 * minutes)
  assert.notEqual(stage.claimNow('a'), undefined)
  await stage.pass(5 * minutes)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-12 the launch timeout is a setting', async (t) => {
  const stage = await Stage.open(t, { settings: { launchTimeoutMs: 45 * seconds } })
  stage.cloud.onCreate = () => {
    throw new Error('no')
  }
  await stage.claim('a')
  await stage.pass(30 * seconds)
  assert.notEqual(stage.claimNow('a'), undefined)
  await stage.pass(30 * seconds)
  assert.equal(stage.claimNow('a'), undefined)
})

test('LIF-13 a launch that succeeds on the first pass after 5 min saves the claim', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  await stage.claim('a')
  await stage.pass(6 * minutes)
  await stage.start()
  assert.equal(stage.state('a', 'Launched'), 'True/Launched')
})

test('the node class label is put on managed claims and Nodes that lack it', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  const key = 'karpenter.kwok.sh/kwoknodeclass'
  for (const [type, name] of [[karpenterKinds.nodeClaim, 'a']] as const) {
    stage.patch(type, name, { metadata: { labels: { [key]: null } } })
  }
  await stage.pass(seconds)
  assert.equal(stage.claimNow('a')?.metadata.labels?.[key], 'default')
  assert.equal(stage.nodeNow('node-a')?.metadata.labels?.[key], 'default')
  await stage.claim('foreign', { nodeClassRef: { group: 'other.io', kind: 'OtherClass', name: 'x' } })
  assert.equal(stage.claimNow('foreign')?.metadata.labels?.['other.io/otherclass'], undefined)
})
