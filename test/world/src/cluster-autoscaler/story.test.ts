import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCredentials } from '@tenon/devcluster'
import { plantedMistakes } from './planted.ts'
import { playStory } from './story.ts'

const credentials = await createCredentials(Date.UTC(2026, 0, 1))

for (const seed of [1, 2])
  test(`must-hold 6: a cluster of node groups becomes well again after the faults of seed ${seed}`, async () => {
    const outcome = await playStory({ seed, minutes: 60, hasFaults: true }, { credentials })
    assert.equal(outcome.violation, undefined)
    assert.ok(outcome.failedCalls > 0, 'the cloud failed')
    assert.ok(outcome.failedRequests > 100, 'the API server failed')
    assert.ok(outcome.processes > 2, 'processes died, hung or handed over')
    assert.ok(outcome.nodesAtMost > 2, 'the cluster grew')
  })

/** Found soon; `npm run world:autoscaler -- --bug all` plays all. */
const found = {
  'neighbour-removed': 'onlyDrainedMembersGo',
  'ids-mistaken': 'onlyDrainedMembersGo',
  'minimum-off-by-one': 'neverBelowMinimum',
  'maximum-off-by-one': 'neverAboveMaximum',
  'pods-deleted': 'onlyEvictionsRemovePods',
  'lease-imagined': 'onlyTheLeaderActs',
} as const

for (const [name, invariant] of Object.entries(found))
  test(`must-hold 6: the planted mistake ${name} is found`, async () => {
    const mistake = plantedMistakes.find((each) => each.name === name)
    assert.ok(mistake)
    const { violation } = await playStory(
      { seed: 1, minutes: 60, hasFaults: false, mistake },
      { credentials },
    )
    assert.equal(violation?.invariant, invariant)
  })
