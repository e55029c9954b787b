/** ProvisioningRequests of class best-effort-atomic-scale-up in the loop (gangs.md 2, 3). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod, pods } from '../testing/objects.test-support.ts'
import { consuming, RequestStage } from './request-stage.test-support.ts'

const minute = 60_000
const day = 24 * 60 * minute

/** One group of nodes with 4 cores, whose only node is full. */
function oneGroup(maxSize = 10): RequestStage {
  return new RequestStage({
    groups: [aGroup('g', { maxSize })],
    nodes: { g: [aNode('g0')] },
    pods: [aPod('keep', { cpu: '4', nodeName: 'g0', owner: 'keep' })],
  })
}

describe('an atomic request', () => {
  test('GNG-50 is provisioned at the call that the cloud accepts, with nodes for all of its pods', async () => {
    const stage = oneGroup()
    stage.request('r', { count: 4 })
    await stage.loop()
    assert.deepEqual(stage.cloud.calls, ['increase g 4'])
    assert.equal(stage.state('r', 'Accepted'), 'True/Accepted')
    assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsProvisioned')
    assert.match(
      stage.events.of('TriggeredScaleUp').join(),
      /ProvisioningRequest\/r: .*\{g 1->5 \(max: 10\)\}/,
    )
    await stage.loopFor(5 * minute)
    assert.deepEqual(stage.cloud.calls, ['increase g 4'])
    assert.equal(stage.metrics.of('provisioning_requests_count', { state: 'booked' }), 1)
  })

  test('GNG-50 for which there is room gets no node', async () => {
    const stage = new RequestStage({ groups: [aGroup('g')], nodes: { g: [aNode('g0')] } })
    stage.request('r', { count: 2, cpu: '2' })
    await stage.loop()
    assert.deepEqual(stage.cloud.calls, [])
    assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsFound')
  })

  test('GNG-50 launches only what room is missing', async () => {
    const stage = new RequestStage({ groups: [aGroup('g')], nodes: { g: [aNode('g0')] } })
    stage.request('r', { count: 3, cpu: '3' })
    await stage.loop()
    assert.deepEqual(stage.cloud.calls, ['increase g 2'])
  })

  test('GNG-50 of sets that need different groups is not served in part', async () => {
    const stage = new RequestStage({
      groups: [aGroup('a'), aGroup('b')],
      nodes: { a: [aNode('a0', { labels: { pool: 'a' } })], b: [aNode('b0', { labels: { pool: 'b' } })] },
    })
    stage.template('a', '4', { nodeSelector: { pool: 'a' } })
    stage.template('b', '4', { nodeSelector: { pool: 'b' } })
    stage.request('r', { templates: ['a', 'b'], count: 2 })
    await stage.loop()
    assert.deepEqual(stage.cloud.calls, [])
    assert.equal(stage.state('r', 'Provisioned'), 'False/CapacityIsNotFound')
    assert.match(stage.message('r', 'Provisioned'), /no node group alone has room for all of them/)
  })

  test('GNG-50 beyond what the group may have gets nothing, and says why', async () => {
    const stage = oneGroup(3)
    stage.request('r', { count: 3 })
    await stage.loop()
    assert.deepEqual(stage.cloud.calls, [])
    assert.equal(stage.state('r', 'Provisioned'), 'False/CapacityIsNotFound')
    assert.match(stage.message('r', 'Provisioned'), /node group g has room for 2 of them/)
  })

  test('a pod that no group takes is named with the reason', async () => {
    const stage = oneGroup()
    stage.request('r', { count: 2, cpu: '5' })
    await stage.loop()
    assert.match(stage.message('r', 'Provisioned'), /: pod 1 of 2 of PodTemplate r: 1 Insufficient cpu$/)
    assert.match(
      stage.explanations.of({ kind: 'request', name: 'default/r' }),
      /no room was found for its pods \(CapacityIsNotFound: .*tried again after 2026-01-01T00:01:00/,
    )
  })

  test('GNG-50 that the cloud refuses is tried again after 1, 2, 4, 8, 10 and 10 minutes', async () => {
    const stage = new RequestStage({
      groups: [aGroup('g')],
      nodes: { g: [aNode('g0')] },
      pods: [aPod('keep', { cpu: '4', nodeName: 'g0', owner: 'keep' })],
      options: { registry: { initialBackoffMs: 1000, maxBackoffMs: 1000 } },
    })
    stage.cloud.failing.set('g', 'at once')
    stage.request('r')
    await stage.loop()
    assert.equal(stage.state('r', 'Provisioned'), 'False/CapacityIsNotFound')
    assert.match(stage.message('r', 'Provisioned'), /the cloud says no/)
    const times: number[] = []
    const startMs = stage.clock.now()
    for (let calls = 1; times.length < 6; ) {
      await stage.loopFor(10_000)
      if (stage.cloud.calls.length > calls) times.push(stage.clock.now() - startMs)
      calls = stage.cloud.calls.length
    }
    const pauses = times.map((time, at) => (time - (times[at - 1] ?? 0)) / minute)
    assert.deepEqual(pauses, [1, 2, 4, 8, 10, 10])
    stage.cloud.failing.clear()
    await stage.loopFor(10 * minute)
    assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsProvisioned')
  })

  test('what the caches do not tell yet is not bought twice', async () => {
    const stage = oneGroup()
    stage.request('r', { count: 2 })
    stage.cachedRequests = [...stage.requests.values()]
    await stage.loop()
    await stage.loop()
    await stage.loopFor(minute)
    assert.deepEqual(stage.cloud.calls, ['increase g 2'])
    assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsProvisioned')
  })

  test('a write that fails after the call is made up for without another node', async () => {
    const stage = oneGroup()
    stage.request('r', { count: 2 })
    let writes = 0
    stage.beforeWrite = () => {
      if (++writes === 2) throw new Error('the server is away')
    }
    await stage.loop()
    assert.equal(stage.state('r', 'Provisioned'), 'absent')
    await stage.loopFor(minute)
    assert.match(stage.state('r', 'Provisioned'), /^True/)
    assert.deepEqual(stage.cloud.calls, ['increase g 2'])
  })
})

describe('a booking', () => {
  test('GNG-50 GNG-47 keeps nodes that hold nothing else for ten minutes', async () => {
    const stage = new RequestStage({
      groups: [aGroup('g', { targetSize: 2 })],
      nodes: { g: [aNode('g0'), aNode('g1')] },
      options: {
        scaleDown: { unneededTimeMs: minute, delayAfterAddMs: 0, unremovableNodeRecheckTimeoutMs: 0 },
      },
    })
    stage.request('r', { count: 2, cpu: '1500m' })
    await stage.loopFor(9 * minute)
    assert.deepEqual(stage.cloud.calls, [])
    assert.match(
      stage.explanations.of({ kind: 'node', name: 'g0' }),
      /it stands for room that a ProvisioningRequest keeps/,
    )
    await stage.loopFor(2 * minute)
    assert.equal(stage.state('r', 'BookingExpired'), 'True/CapacityReservationTimeExpired')
    await stage.loopFor(3 * minute)
    assert.deepEqual(stage.cloud.calls.length, 1, stage.cloud.calls.join())
  })

  test('GNG-50 ends when as many pods as it is for have a node, and is full until then', async () => {
    const stage = new RequestStage({ groups: [aGroup('g')], nodes: { g: [aNode('g0')] } })
    stage.request('r', { count: 2, cpu: '2' })
    await stage.loop()
    const made = { annotations: consuming('r'), nodeName: 'g0', cpu: '2' }
    stage.addPod(aPod('c0', made))
    await stage.loopFor(10_000)
    assert.equal(stage.state('r', 'BookingExpired'), 'absent')
    stage.addPod(aPod('c1', made))
    await stage.loopFor(10_000)
    assert.equal(stage.state('r', 'BookingExpired'), 'True/CapacityBookingConsumed')
  })

  test('room that is kept is not there for other pods', async () => {
    const stage = new RequestStage({ groups: [aGroup('g')], nodes: { g: [aNode('g0')] } })
    stage.request('r', { count: 1, cpu: '3' })
    await stage.loop()
    stage.addPod(aPod('other', { cpu: '2' }))
    await stage.loopFor(10_000)
    assert.deepEqual(stage.cloud.calls, ['increase g 1'])
  })

  test('GNG-50 whose template is gone fails', async () => {
    const stage = new RequestStage({ groups: [aGroup('g')], nodes: { g: [aNode('g0')] } })
    stage.request('r')
    await stage.loop()
    stage.podTemplates.clear()
    await stage.loopFor(10_000)
    assert.equal(stage.state('r', 'Failed'), 'True/FailedToBookCapacity')
  })
})

describe('pods made for a request', () => {
  test('GNG-50 never get a node, and fifty of them are told in a loop', async () => {
    const stage = oneGroup()
    for (let at = 0; at < 60; at++)
      stage.addPod(aPod(`c${at}`, { cpu: '1', annotations: consuming('no-such-request') }))
    await stage.loopFor(5 * minute)
    assert.deepEqual(stage.cloud.calls, [])
    assert.equal(new Set(stage.events.of('ConsumesProvisioningRequest')).size, 50)
    assert.match(
      stage.explanations.of({ kind: 'pod', name: 'default/c0' }),
      /it takes the room of ProvisioningRequest default\/no-such-request/,
    )
  })

  test('the former annotation counts as well', async () => {
    const stage = oneGroup()
    const annotations = { 'cluster-autoscaler.kubernetes.io/consume-provisioning-request': 'r' }
    stage.addPod(aPod('c', { cpu: '1', annotations }))
    await stage.loopFor(minute)
    assert.deepEqual(stage.cloud.calls, [])
  })

  test('are like other pods while requests are not served', async () => {
    const stage = new RequestStage(
      {
        groups: [aGroup('g')],
        nodes: { g: [aNode('g0')] },
        pods: [aPod('keep', { cpu: '4', nodeName: 'g0', owner: 'keep' })],
      },
      { isEnabled: false },
    )
    stage.addPod(aPod('c', { cpu: '1', annotations: consuming('r') }))
    await stage.loopFor(minute)
    assert.deepEqual(stage.cloud.calls, ['increase g 1'])
  })
})

test('requests and pods that wait take turns', async () => {
  const stage = oneGroup(100)
  for (const pod of pods('web', 2, { cpu: '3' })) stage.addPod(pod)
  for (const name of ['r0', 'r1', 'r2']) stage.request(name, { count: 3 })
  await stage.loop()
  await stage.loop()
  await stage.loop()
  assert.deepEqual(stage.cloud.calls, ['increase g 3', 'increase g 2', 'increase g 3'])
})

describe('the end of requests', () => {
  test('GNG-50 a request without room fails after seven days, and is deleted seven days later', async () => {
    const stage = oneGroup(1)
    stage.request('r')
    await stage.loop()
    await stage.clock.advance(7 * day - minute)
    await stage.loop()
    assert.equal(stage.state('r', 'Failed'), 'absent')
    await stage.clock.advance(minute)
    await stage.loop()
    assert.equal(stage.state('r', 'Failed'), 'True/Expired')
    await stage.clock.advance(7 * day - minute)
    await stage.loop()
    assert.ok(stage.now('r'))
    await stage.clock.advance(minute)
    await stage.loop()
    assert.equal(stage.now('r'), undefined)
  })

  test('GNG-50 a booked one is deleted seven days after it got room', async () => {
    const stage = new RequestStage({ groups: [aGroup('g')], nodes: { g: [aNode('g0')] } })
    stage.request('r')
    await stage.loop()
    await stage.clock.advance(10 * minute)
    await stage.loop()
    assert.equal(stage.state('r', 'BookingExpired'), 'True/CapacityReservationTimeExpired')
    await stage.clock.advance(7 * day - 11 * minute)
    await stage.loop()
    assert.ok(stage.now('r'))
    await stage.clock.advance(minute)
    await stage.loop()
    assert.equal(stage.now('r'), undefined)
  })

  test('GNG-50 twenty end in one loop', async () => {
    const stage = oneGroup(1)
    for (let at = 0; at < 25; at++) stage.request(`r${at}`)
    await stage.clock.advance(7 * day)
    await stage.loop()
    const ended = () =>
      [...stage.requests.keys()].filter((name) => stage.state(name, 'Failed') !== 'absent').length
    assert.equal(ended(), 20)
    await stage.loop()
    assert.equal(ended(), 25)
  })

  test('GNG-45 a template that comes within half a minute is waited for', async () => {
    const stage = new RequestStage({ groups: [aGroup('g')], nodes: { g: [aNode('g0')] } })
    stage.request('r', { templates: ['late'] })
    stage.request('never', { templates: ['none', 'none'] })
    await stage.loopFor(20_000)
    assert.equal(stage.state('r', 'Failed'), 'absent')
    stage.template('late', '1')
    await stage.loopFor(20_000)
    assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsFound')
    assert.equal(stage.state('never', 'Failed'), 'True/FailedToCreatePods')
    assert.equal(stage.message('never', 'Failed'), '1 PodTemplate missing: none')
  })
})
