import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { simulate } from '../simulation.ts'
import { aStory } from '../story.ts'
import { plantedBug } from './bugs.ts'

/** Bugs that show within minutes; `npm run world:planted` looks for all of them. */
const quick = [
  ['finalizer-late', 'finalizerFirst'],
  ['lease-ignored', 'onlyTheLeaderWrites'],
  ['secret-logged', 'noSecretsInLogs'],
] as const

describe('the world finds planted bugs', () => {
  for (const [name, invariant] of quick) {
    test(`${name} breaks ${invariant}`, async () => {
      const story = aStory(1, { hours: 0.2, nodes: 4, mutation: name })
      const { violation } = await simulate(story, plantedBug(name))
      assert.equal(violation?.invariant, invariant)
    })
  }

  test('a name that is unknown is refused with the known ones', () => {
    assert.throws(() => plantedBug('gremlin'), /no planted bug gremlin; known are finalizer-late, /)
  })
})
