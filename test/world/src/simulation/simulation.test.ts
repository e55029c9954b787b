import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { playAll, type Verdict } from './run/crew.ts'
import { type Moment, simulate } from './simulation.ts'
import { aStory, type Story } from './story.ts'

const short = (seed: number): Story => aStory(seed, { hours: 0.2, nodes: 4 })

let played: ReturnType<typeof simulate> | undefined
/** The same play for all tests. */
const once = (): ReturnType<typeof simulate> => (played ??= simulate(short(3)))

async function hashInAnotherProcess(story: Story): Promise<string> {
  let hash = ''
  const ended = (_: Story, verdict: Verdict) => {
    hash = verdict.hash
    return true
  }
  await playAll([story], { ended, progress: () => undefined }, 1)
  return hash
}

describe('a story played again', () => {
  test('has the same events in this process and in another one, and other seeds have others', async () => {
    const [first, other] = [await once(), await simulate(short(4))]
    assert.equal(first.violation, undefined)
    assert.equal(await hashInAnotherProcess(short(3)), first.hash)
    assert.notEqual(other.hash, first.hash)
  })

  test('at Clever Cloud', async () => {
    const story: Story = { ...short(3), provider: 'clever-cloud' }
    const first = await simulate(story)
    assert.equal(first.violation, undefined)
    assert.ok(first.launches > 0 && first.mostNodes > 0)
    assert.equal((await simulate(story)).hash, first.hash)
    assert.notEqual((await once()).hash, first.hash)
  })

  test('at Cluster API', async () => {
    const story: Story = { ...short(3), provider: 'cluster-api' }
    const first = await simulate(story)
    assert.equal(first.violation, undefined)
    assert.ok(first.launches > 0 && first.mostNodes > 0)
    assert.equal((await simulate(story)).hash, first.hash)
  })

  test('counts its nodes and pods, and shows the same to who watches', async () => {
    const unseen = await once()
    const moments: Moment[] = []
    const seen = await simulate(short(3), undefined, (now) => moments.push(now))
    assert.equal(seen.hash, unseen.hash)
    assert.ok(unseen.mostNodes > 0 && unseen.mostPods > 0 && unseen.meanNodes > 0)
    assert.equal(unseen.mostNodes, Math.max(...moments.map(({ nodes }) => nodes)))
    assert.equal(unseen.mostPods, Math.max(...moments.map(({ pods }) => pods)))
  })
})
