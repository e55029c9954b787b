/** ProvisioningRequests of class check-capacity in the loop (gangs.md 2, 4). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { provisioningClasses } from '@tenon/api'
import type { RequestOptions } from '../options/options.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod } from '../testing/objects.test-support.ts'
import { RequestStage } from './request-stage.test-support.ts'

const minute = 60_000

/** One empty node with 4 cores. */
function oneNode(requests: Partial<RequestOptions> = {}): RequestStage {
  return new RequestStage({ groups: [aGroup('g')], nodes: { g: [aNode('g0')] } }, requests)
}

describe('a request that only checks', () => {
  test('GNG-50 GNG-46 of two for the same room one has it until its booking ends, and no node is asked for', async () => {
    const stage = oneNode()
    stage.request('a', { class: 'check', cpu: '3' })
    await stage.clock.advance(1000)
    stage.request('b', { class: 'check', cpu: '3' })
    await stage.loop()
    await stage.loop()
    assert.equal(stage.state('a', 'Provisioned'), 'True/CapacityIsFound')
    assert.equal(stage.state('b', 'Provisioned'), 'False/CapacityIsNotFound')
    assert.match(
      stage.message('b', 'Provisioned'),
      /pod 1 of 1 of PodTemplate b: 0\/1 nodes are available: 1 Insufficient cpu\.$/,
    )
    await stage.loopFor(25 * minute)
    assert.equal(stage.state('a', 'BookingExpired'), 'True/CapacityReservationTimeExpired')
    assert.equal(stage.state('b', 'Provisioned'), 'True/CapacityIsFound')
    assert.deepEqual(stage.cloud.calls, [])
  })

  test('GNG-50 GNG-46 with noRetry fails at once, and other values of it count for nothing', async () => {
    const stage = oneNode()
    stage.request('once', { class: 'check', cpu: '5', parameters: { noRetry: 'true' } })
    stage.request('again', { class: 'check', cpu: '5', parameters: { noRetry: 'yes' } })
    await stage.loop()
    await stage.loop()
    assert.equal(stage.state('once', 'Failed'), 'True/CapacityIsNotFound')
    assert.equal(stage.state('again', 'Failed'), 'absent')
  })

  test('GNG-50 counts nodes on their way', async () => {
    const stage = oneNode()
    stage.addPod(aPod('big', { cpu: '3' }))
    stage.addPod(aPod('full', { cpu: '3', nodeName: 'g0' }))
    await stage.loop()
    assert.deepEqual(stage.cloud.calls, ['increase g 1'])
    stage.request('r', { class: 'check', cpu: '1', count: 2 })
    await stage.loop()
    assert.equal(stage.state('r', 'Provisioned'), 'True/CapacityIsFound')
  })

  test('a request of another class is left alone', async () => {
    const stage = oneNode()
    stage.request('r', { className: 'queued-provisioning.gke.io' })
    await stage.loopFor(minute)
    assert.equal(stage.now('r')?.status, undefined)
  })

  test('one with Provisioned=Unknown is never taken up', async () => {
    const stage = oneNode()
    const lastTransitionTime = '2025-12-31T23:00:00Z'
    const condition = {
      type: 'Provisioned',
      status: 'Unknown' as const,
      reason: 'X',
      message: '',
      lastTransitionTime,
    }
    stage.request('r', { class: 'check', cpu: '1', conditions: [condition] })
    await stage.loopFor(minute)
    assert.equal(stage.state('r', 'Accepted'), 'absent')
  })
})

describe('in batches', () => {
  test('GNG-50 as many as allowed are answered in a loop, each in one write', async () => {
    const stage = oneNode({ batchProcessing: true, maxBatchSize: 3 })
    for (let at = 0; at < 5; at++) stage.request(`r${at}`, { class: 'check', cpu: '1500m' })
    let writes = 0
    stage.beforeWrite = () => {
      writes++
    }
    await stage.loop()
    assert.equal(writes, 3)
    const states = () => ['r0', 'r1', 'r2', 'r3', 'r4'].map((name) => stage.state(name, 'Provisioned'))
    assert.deepEqual(states(), [
      'True/CapacityIsFound',
      'True/CapacityIsFound',
      'False/CapacityIsNotFound',
      'absent',
      'absent',
    ])
    assert.equal(stage.state('r0', 'Accepted'), 'True/Accepted')
    await stage.loop()
    assert.deepEqual(states().slice(3), ['False/CapacityIsNotFound', 'False/CapacityIsNotFound'])
  })

  test('GNG-50 what the time is not enough for waits for the next loop', async () => {
    const stage = oneNode({ batchProcessing: true, batchTimeboxMs: 0 })
    for (const name of ['r0', 'r1']) stage.request(name, { class: 'check', cpu: '1' })
    await stage.loop()
    assert.equal(stage.state('r1', 'Provisioned'), 'absent')
    await stage.loop()
    assert.equal(stage.state('r1', 'Provisioned'), 'True/CapacityIsFound')
  })

  test('GNG-50 one that cannot be written leaves the others', async () => {
    const stage = oneNode({ batchProcessing: true })
    for (const name of ['r0', 'r1']) stage.request(name, { class: 'check', cpu: '1' })
    let writes = 0
    stage.beforeWrite = () => {
      if (++writes === 1) throw new Error('the server is away')
    }
    await stage.loop()
    assert.deepEqual(
      ['r0', 'r1'].map((name) => stage.state(name, 'Provisioned')),
      ['absent', 'True/CapacityIsFound'],
    )
    await stage.loop()
    assert.equal(stage.state('r0', 'Provisioned'), 'True/CapacityIsFound')
  })
})

test('GNG-50 an instance serves the checks that name it, and nobody else does', async () => {
  const named = { processorInstance: 'one' }
  const make = (stage: RequestStage) => {
    stage.request('plain', { class: 'check', cpu: '1' })
    stage.request('named', { class: 'check', cpu: '1', parameters: named })
    stage.request('prefixed', { className: `one${provisioningClasses.check}`, cpu: '1' })
    stage.request('atomic', { cpu: '1' })
  }
  const servedBy = async (stage: RequestStage) => {
    make(stage)
    await stage.loopFor(minute)
    return [...stage.requests.keys()].filter((name) => stage.state(name, 'Accepted') !== 'absent')
  }
  assert.deepEqual(await servedBy(oneNode()), ['plain', 'atomic'])
  assert.deepEqual(await servedBy(oneNode({ processorInstance: 'one' })), ['named', 'prefixed'])
})
