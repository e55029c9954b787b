import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Violation } from './invariants/scene.ts'
import { shrink } from './shrink.ts'
import { aStory, faultKinds, type Story, workloadKinds } from './story.ts'

const violation = (invariant: string, atMs = 60_000): Violation => ({ invariant, text: 'it broke', atMs })

/** Fails with `limitsKept` while the crash, the jobs and half an hour are there, and with something else without jobs. */
function crashDuringJobs(played: Story[]): (story: Story) => Promise<Violation | undefined> {
  return (story) => {
    played.push(story)
    if (story.withoutFaults.includes('crash') || story.hours < 0.5) return Promise.resolve(undefined)
    const isOther = story.withoutWorkloads.includes('jobs')
    return Promise.resolve(violation(isOther ? 'budgetsKept' : 'limitsKept', 30 * 60_000))
  }
}

describe('the shortest story of a failure', () => {
  test('keeps only what the same invariant needs to fail', async () => {
    const played: Story[] = []
    const start = { story: aStory(1, { hours: 4 }), violation: violation('limitsKept', 30 * 60_000) }
    const { story } = await shrink(start, crashDuringJobs(played), 200)
    assert.equal(story.hours, 0.5)
    assert.equal(story.nodes, 4)
    assert.deepEqual(
      story.withoutFaults,
      faultKinds.filter((kind) => kind !== 'crash'),
    )
    assert.deepEqual(
      story.withoutWorkloads,
      workloadKinds.filter((kind) => kind !== 'jobs'),
    )
  })

  test('is looked for with no more runs than allowed', async () => {
    const played: Story[] = []
    const start = { story: aStory(1, { hours: 4 }), violation: violation('limitsKept', 30 * 60_000) }
    await shrink(start, crashDuringJobs(played), 7)
    assert.equal(played.length, 7)
  })

  test('is the story itself when nothing can be left out', async () => {
    const story = aStory(1)
    const failure = { story, violation: violation('limitsKept', story.hours * 3_600_000) }
    assert.deepEqual(await shrink(failure, () => Promise.resolve(undefined), 100), failure)
  })
})
