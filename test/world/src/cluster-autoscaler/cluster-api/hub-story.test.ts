import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCredentials } from '@tenon/devcluster'
import { plantedHubMistakes } from './hub-planted.ts'
import { playHubStory } from './hub-story.ts'

const credentials = await createCredentials(Date.UTC(2026, 0, 1))

test('MachineDeployments become well again after the faults of seed 1', async () => {
  const outcome = await playHubStory({ seed: 1, minutes: 60, hasFaults: true }, credentials)
  assert.equal(outcome.violation, undefined)
  assert.ok(outcome.failedCalls > 0, 'the hub failed')
  assert.ok(outcome.processes > 2, 'processes died or handed over')
})

/** Found soon; `npm run world:autoscaler -- --provider cluster-api --bug all` plays all. */
const found = {
  'lowered-twice': 'replicasCoverMachinesInUse',
  'raised-too-far': 'sizesAreKept',
  'requests-forgotten': 'growthIsNeeded',
  'bounds-imagined': 'othersAreLeftAlone',
} as const

for (const [name, invariant] of Object.entries(found))
  test(`the planted mistake ${name} is found`, async () => {
    const mistake = plantedHubMistakes.find((each) => each.name === name)
    assert.ok(mistake)
    const { violation } = await playHubStory({ seed: 1, minutes: 60, hasFaults: false, mistake }, credentials)
    assert.equal(violation?.invariant, invariant)
  })
