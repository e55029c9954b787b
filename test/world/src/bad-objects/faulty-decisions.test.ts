/** One object with which every decision fails, or that the API server refuses, holds up nobody else. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import type { SchedulingInput } from '@tenon/engine'
import { InlineDecider } from '@tenon/operator'
import type { Transport } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, createPool, madeClaims, objectsWithEvent, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

/** Throws whenever it is to decide about a pod of this name. */
class BrokenDecider extends InlineDecider {
  broken = 'broken'

  override decide(
    ...[input, options]: Parameters<InlineDecider['decide']>
  ): ReturnType<InlineDecider['decide']> {
    this.#refuse(input)
    return super.decide(input, options)
  }

  #refuse({ pods }: SchedulingInput): void {
    if (pods.some(({ metadata }) => metadata.name === this.broken))
      throw new RangeError('Invalid array length')
  }
}

async function openStage(t: TestContext, options: Parameters<typeof Stage.open>[1]): Promise<Stage> {
  const stage = await Stage.open(t, options)
  stage.cloud.instanceTypes = [aType('medium', 4)]
  return stage
}

test('RPT-30 pods are placed although every decision with one of them fails, and that one is told', async (t) => {
  let decider: BrokenDecider | undefined
  const stage = await openStage(t, { decider: (clock) => (decider = new BrokenDecider(clock)) })
  for (const name of ['a', 'b', 'broken', 'c', 'd']) waitingPod(stage, name, { cpu: '3' })
  await stage.pass(20 * seconds)
  assert.equal(madeClaims(stage).length, 4)
  assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling'), ['Pod/broken'])
  const [event] = stage.events('FailedScheduling')
  assert.match(event?.message ?? '', /every decision with this pod fails \(Invalid array length\)/)
  assert.ok((await stage.metric('scheduler_faults_total', { part: 'decision' })) > 0)
  assert.equal(await stage.metric('scheduler_unschedulable_pods_count'), 1)
  // Later pods do not wait for it either, and it gets a node once decisions with it succeed.
  waitingPod(stage, 'e', { cpu: '3' })
  await stage.pass(20 * seconds)
  assert.equal(madeClaims(stage).length, 5)
  if (decider !== undefined) decider.broken = 'nobody'
  await stage.pass(5 * minutes)
  assert.equal(madeClaims(stage).length, 6)
})

/** Refuses NodeClaims as a webhook, a quota or a schema would. */
function rejectingClaims(isRefused: (claim: string) => boolean, code: 400 | 403 | 422, message: string) {
  return (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const body = typeof request.body === 'string' ? request.body : new TextDecoder().decode(request.body)
      const isCreation = request.method === 'POST' && request.path.endsWith('/nodeclaims')
      if (!isCreation || !isRefused(body)) return await inner.send(request, signal)
      const reason = { 400: 'BadRequest', 403: 'Forbidden', 422: 'Invalid' }[code]
      const status = { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason, message }
      const headers = { 'content-type': 'application/json' }
      return { status: code, headers, body: Readable.from([JSON.stringify(status)]) }
    },
  })
}

/** Of these, more than a NodeClaim may have. */
const tooMany = {
  nodeSelectorTerms: [
    {
      matchExpressions: Array.from({ length: 101 }, (_, i) => ({
        key: `example.com/key-${i}`,
        operator: 'NotIn' as const,
        values: ['x'],
      })),
    },
  ],
}
const picky = { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: tooMany } } }

test('RPT-39 a pod that needs 101 requirements is told what the API server says, and its batch mates run', async (t) => {
  const stage = await openStage(t, {})
  for (const name of ['a', 'b', 'c']) waitingPod(stage, name, { cpu: '500m' })
  waitingPod(stage, 'picky', { cpu: '3900m', spec: picky })
  await stage.pass(90 * seconds)
  assert.equal(madeClaims(stage).length, 1)
  assert.deepEqual([...new Set(objectsWithEvent(stage, 'Nominated'))].toSorted(), ['Pod/a', 'Pod/b', 'Pod/c'])
  assert.deepEqual([...new Set(objectsWithEvent(stage, 'FailedScheduling'))], ['Pod/picky'])
  const [event] = stage.events('FailedScheduling')
  assert.match(event?.message ?? '', /the API server rejects its NodeClaim: .*spec\.requirements.*100/)
})

test('RPT-39 pods that were to share its node get one, on which it may run too', async (t) => {
  const stage = await openStage(t, {})
  for (const name of ['a', 'b', 'c']) waitingPod(stage, name, { cpu: '500m' })
  waitingPod(stage, 'picky', { cpu: '500m', spec: picky })
  await stage.pass(90 * seconds)
  assert.equal(madeClaims(stage).length, 1)
  const all = ['Pod/a', 'Pod/b', 'Pod/c', 'Pod/picky']
  assert.deepEqual([...new Set(objectsWithEvent(stage, 'Nominated'))].toSorted(), all)
})

for (const code of [400, 403, 422] as const)
  test(`RPT-39 what is refused with ${code} holds up nobody else, and is tried again later`, async (t) => {
    let isRejecting = true
    const isRefused = (claim: string) => isRejecting && claim.includes('example.com/denied')
    const stage = await openStage(t, { apiPath: rejectingClaims(isRefused, code, 'denied by the policy') })
    stage.patch(karpenterKinds.nodePool, 'default', {
      spec: {
        template: {
          spec: { requirements: [{ key: 'example.com/denied', operator: 'Exists' }] },
        },
      },
    })
    createPool(stage, aKwokPool('other', { weight: 1, disruption: { consolidateAfter: 'Never' } }))
    const denied = { nodeSelector: { 'example.com/denied': 'x' } }
    for (const name of ['a', 'b', 'c']) waitingPod(stage, name, { cpu: '3' })
    for (const name of ['d', 'e']) waitingPod(stage, name, { cpu: '3', spec: denied })
    await stage.pass(50 * seconds)
    assert.equal(madeClaims(stage).length, 3)
    assert.deepEqual(objectsWithEvent(stage, 'FailedScheduling').toSorted(), ['Pod/d', 'Pod/e'])
    assert.match(stage.events('FailedScheduling')[0]?.message ?? '', /denied by the policy/)
    isRejecting = false
    await stage.pass(5 * minutes)
    assert.equal(madeClaims(stage).length, 5)
  })
