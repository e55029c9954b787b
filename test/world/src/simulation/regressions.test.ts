import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { simulate } from './simulation.ts'
import { aStory, type Story } from './story.ts'

/** Stories that failed once, and what was wrong. */
const stories: readonly (readonly [what: string, story: Story])[] = [
  [
    'an instance whose deletion failed starts again and rejoins, although its bootstrap token has expired',
    aStory(13, {
      hours: 0.7,
      nodes: 6,
      withoutWorkloads: ['consolidation', 'restarts', 'poolRollouts', 'protectedNodes'],
    }),
  ],
  [
    'a claim is deleted while nobody can store that it is registered, and its Node is open and holds pods',
    aStory(901, { hours: 0.25, nodes: 4 }),
  ],
  [
    'a watch tells that a claim is gone which drains, and another node of its NodePool goes beyond the budget',
    aStory(158, { hours: 0.25, nodes: 4 }),
  ],
]

describe('stories that failed once', () => {
  for (const [what, story] of stories) {
    test(`seed ${story.seed}: ${what}`, async () => {
      const { violation } = await simulate(story)
      assert.equal(violation, undefined)
    })
  }
})
