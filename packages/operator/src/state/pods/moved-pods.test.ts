import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { MovedPods } from './moved-pods.ts'

const minutes = 60_000

function of(owner: string): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${owner}-pod`,
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true },
      ],
    },
    spec: { containers: [] },
  }
}

const [web, batch] = [of('web'), of('batch')]

test('a workload backs off when an instance is launched for it soon after it was moved, others do not', () => {
  const moved = new MovedPods(new VirtualClock())
  moved.move([web, batch], true)
  assert.equal(moved.launchFor([web]), 1)
  assert.deepEqual(moved.backingOff([batch]), undefined)
  assert.deepEqual(moved.backingOff([batch, web]), { pod: web, forMs: 15 * minutes })
})

test('a pod of a workload that was moved counts as moved for five minutes', async () => {
  const clock = new VirtualClock()
  const moved = new MovedPods(clock)
  moved.move([web], true)
  assert.deepEqual([moved.isMoved(web), moved.isMoved(batch)], [true, false])
  await clock.advance(5 * minutes)
  assert.equal(moved.isMoved(web), false)
})

test('a workload that was moved for another reason than its price counts as moved, and does not back off', () => {
  const moved = new MovedPods(new VirtualClock())
  moved.move([web], false)
  assert.equal(moved.isMoved(web), true)
  assert.equal(moved.launchFor([web]), 0)
})

test('an instance for a workload that was not moved, or long ago, changes nothing', async () => {
  const clock = new VirtualClock()
  const moved = new MovedPods(clock)
  assert.equal(moved.launchFor([web]), 0)
  moved.move([web], true)
  await clock.advance(6 * minutes)
  assert.equal(moved.launchFor([web]), 0)
  assert.equal(moved.backingOff([web]), undefined)
})

test('it backs off for twice as long each time, four hours at most, and one move counts once', async () => {
  const clock = new VirtualClock()
  const moved = new MovedPods(clock)
  const minutesOff: number[] = []
  for (let time = 0; time < 6; time++) {
    moved.move([web], true)
    moved.launchFor([web])
    moved.launchFor([web])
    const forMs = moved.backingOff([web])?.forMs ?? 0
    minutesOff.push(forMs / minutes)
    await clock.advance(forMs)
    assert.equal(moved.backingOff([web]), undefined)
  }
  assert.deepEqual(minutesOff, [15, 30, 60, 120, 240, 240])
})
