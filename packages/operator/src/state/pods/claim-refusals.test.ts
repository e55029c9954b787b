import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { ClaimRefusals } from './claim-refusals.ts'

const aPod = (name: string, owner?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    uid: name,
    ...(owner !== undefined && {
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true },
      ],
    }),
  },
  spec: { containers: [] },
})

/** Takes turns until nothing is left: claims are refused that hold a pod of these names. */
function passes(refusals: ClaimRefusals, pods: readonly Pod[], ...bad: readonly string[]) {
  const waiting = new Set(pods)
  const atFault = new Set<string>()
  let turns = 0
  for (; turns < 50; turns++) {
    const { pods: now, hasMore } = refusals.turn([...waiting])
    const isRefused = now.some(({ metadata }) => bad.includes(metadata.name))
    if (isRefused) for (const { metadata } of refusals.note(now, 'no')) atFault.add(metadata.name)
    else for (const pod of now) waiting.delete(pod)
    if (!hasMore && now.length === 0) break
  }
  return { left: [...waiting].map(({ metadata }) => metadata.name).toSorted(), atFault, turns }
}

test('RPT-39 of a refused claim the pods at fault are found in few turns, the others get theirs', () => {
  const pods = Array.from({ length: 32 }, (_, i) => aPod(`p-${i}`))
  const { left, atFault, turns } = passes(new ClaimRefusals(new VirtualClock(0)), pods, 'p-7', 'p-20')
  assert.deepEqual(left, ['p-20', 'p-7'])
  assert.deepEqual([...atFault].toSorted(), left)
  assert.ok(turns < 25, `${turns} turns`)
})

test('RPT-39 pods of one owner are judged together, and are tried again after a while that grows', async () => {
  const clock = new VirtualClock(0)
  const refusals = new ClaimRefusals(clock)
  const pods = ['a', 'b'].map((name) => aPod(name, 'web'))
  assert.equal(refusals.note(pods, 'denied').length, 2)
  assert.deepEqual(
    [...refusals.turn(pods).refused.values()].map(({ message }) => message),
    ['denied', 'denied'],
  )
  await clock.advance(61_000)
  assert.deepEqual(refusals.turn(pods).pods, pods)
  refusals.note(pods, 'denied')
  await clock.advance(61_000)
  assert.deepEqual(refusals.turn(pods).pods, [])
  await clock.advance(61_000)
  assert.deepEqual(refusals.turn(pods).pods, pods)
})
