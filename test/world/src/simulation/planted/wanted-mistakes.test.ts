import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { simulate } from '../simulation.ts'
import { plantedBug, storyOf } from './bugs.ts'

/** Each with a seed that finds it; they take some seconds, as windows and ages do not pass at once. */
const found = [
  ['quota-off-by-one', 1, 'quotasKept'],
  ['quota-unreserved', 1, 'quotasKept'],
  ['repair-brake-ignored', 1, 'repairsBounded'],
  ['repair-zones-overlooked', 2, 'repairsBounded'],
  ['repair-budget-ignored', 1, 'repairsBounded'],
  ['repair-veto-ignored', 3, 'repairsBounded'],
  ['surge-skipped', 2, 'readyPodKept'],
  ['surge-repeated', 1, 'readyPodKept'],
  ['windows-in-utc', 1, 'windowsKept'],
  ['time-zone-ignored', 2, 'budgetsKept'],
  ['expiry-by-force', 1, 'agesKept'],
  ['expiry-too-early', 2, 'agesKept'],
  ['zones-forgotten', 2, 'oneZoneAtATime'],
] as const

describe('the world finds planted bugs of what users have asked for', () => {
  for (const [name, seed, invariant] of found)
    test(`${name} breaks ${invariant}`, async () => {
      const bug = plantedBug(name)
      const { violation } = await simulate(storyOf(bug, seed), bug)
      assert.equal(violation?.invariant, invariant)
    })
})

describe('without the bug its seed passes', () => {
  const passes = async (name: string, seed: number) => {
    const { violation } = await simulate(storyOf(plantedBug(name), seed))
    assert.equal(violation, undefined)
  }
  test('WNT-3 launches side by side keep below a quota', async () => {
    await passes('quota-unreserved', 1)
  })
  test('WNT-15 no node is repaired while many of the cluster have failed together', async () => {
    await passes('repair-brake-ignored', 1)
  })
  test('WNT-15 no node is repaired while many of its zone have failed together', async () => {
    await passes('repair-zones-overlooked', 2)
  })
})
