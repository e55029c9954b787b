/** CapacityBuffers that count inside their windows only. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { autoscalingKinds } from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { seconds, type Stage } from '../testing/stage.test-support.ts'
import * as b from './buffer-stage.test-support.ts'

const nodes = (stage: Stage): number => stage.world.nodes().length
const claims = (stage: Stage): number => stage.world.claims().length

async function until(stage: Stage, time: string): Promise<void> {
  await stage.pass(Date.parse(`2026-03-30T${time}Z`) - stage.now)
}

function schedule(stage: Stage, text: string | null): void {
  const annotations = { 'tenon.sh/schedule': text }
  stage.patch(autoscalingKinds.capacityBuffer, 'web', { metadata: { annotations } }, undefined, 'default')
}

test('WNT-31 room of a scheduled buffer is there when its window begins, and is let go at its end', async (t) => {
  const startMs = Date.parse('2026-03-30T05:23:00Z')
  const stage = await b.openBuffers(t, {}, { startMs })
  stage.patch(kwokNodeClassKind, 'default', { spec: { nodeRegistrationDelay: '90s' } })
  b.templated(stage, 'web', 3)
  schedule(stage, '07:30-07:35 Europe/Zurich, 07:45-07:50 Europe/Zurich')
  await until(stage, '05:24:30')
  assert.equal(claims(stage), 0)
  assert.match(
    b.messageOf(stage, 'web', 'ReadyForProvisioning'),
    /no room is kept until 2026-03-30T05:24:45Z/,
  )
  // No node was ever seen to start, so the first ones are given five minutes.
  await until(stage, '05:25:00')
  assert.equal(claims(stage), 1)
  await until(stage, '05:30:00')
  assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'True/FitsExistingCapacity')
  assert.equal(nodes(stage), 1)
  await until(stage, '05:34:58')
  assert.equal(nodes(stage), 1)
  await until(stage, '05:37:30')
  assert.equal(nodes(stage), 0)
  // Nodes take a minute and a half.
  await until(stage, '05:42:30')
  assert.equal(claims(stage), 0)
  await until(stage, '05:45:00')
  assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'True/FitsExistingCapacity')
  assert.equal(nodes(stage), 1)
})

test('WNT-31 nodes that start faster than expected stay until the window begins, over a restart too', async (t) => {
  const startMs = Date.parse('2026-03-30T05:24:00Z')
  const stage = await b.openBuffers(t, {}, { startMs })
  b.templated(stage, 'web', 3)
  schedule(stage, '07:30-07:50 Europe/Zurich')
  await until(stage, '05:25:20')
  const names = stage.world.claims().map(({ metadata }) => metadata.name)
  assert.equal(names.length, 1)
  await until(stage, '05:27:00')
  await stage.restart()
  await until(stage, '05:30:30')
  assert.deepEqual(
    stage.world.claims().map(({ metadata }) => metadata.name),
    names,
  )
  assert.equal(b.stateOf(stage, 'web', 'Provisioning'), 'True/FitsExistingCapacity')
})

test('WNT-42 a schedule that cannot be read is named, and the buffer always counts', async (t) => {
  const stage = await b.openBuffers(t)
  b.templated(stage, 'web', 3)
  schedule(stage, '0 7 * * *')
  await stage.pass(30 * seconds)
  assert.equal(nodes(stage), 1)
  const [event] = stage.events('AnnotationIgnored')
  assert.equal(event?.object, 'CapacityBuffer/web')
  assert.match(event.message, /schedule"\]: it cannot be read and is ignored: "0 7 \* \* \*" is not a window/)
})
