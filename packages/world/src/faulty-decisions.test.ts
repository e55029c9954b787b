/** One object with which every decision fails, or that the API server refuses, holds up nobody else. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { SchedulingInput } from '@tenon/engine'
import { InlineDecider } from '@tenon/operator'
import { minutes, seconds, Stage } from './lifecycle/stage.test-support.ts'
import { aType, madeClaims, toldAbout, waitingPod } from './provisioning.test-support.ts'

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
  assert.deepEqual(toldAbout(stage, 'FailedScheduling'), ['Pod/broken'])
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
