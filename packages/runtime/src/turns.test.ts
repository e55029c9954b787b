import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventLoopTurns, inSlices } from './turns.ts'

/** A clock on which every step of the work takes one millisecond, and a record of what ran when. */
function aThread() {
  const log: string[] = []
  let now = 0
  function* steps(count: number): Generator<undefined, string, undefined> {
    for (let step = 1; step <= count; step++) {
      now++
      log.push(`step ${step}`)
      yield
    }
    return 'done'
  }
  const turns = {
    next: async () => {
      await eventLoopTurns.next()
      log.push('others')
    },
  }
  return { log, steps, slicing: { clock: { monotonic: () => now }, turns, sliceMs: 2 } }
}

describe('long work in slices', () => {
  test('others run whenever a slice is used up', async () => {
    const { log, steps, slicing } = aThread()
    assert.equal(await inSlices(steps(5), slicing), 'done')
    assert.deepEqual(log, ['step 1', 'step 2', 'others', 'step 3', 'step 4', 'others', 'step 5'])
  })

  test('the rest is left when the work is stopped between two slices', async () => {
    const { log, steps, slicing } = aThread()
    const isLate = () => log.includes('others')
    assert.equal(await inSlices(steps(5), slicing, isLate), undefined)
    assert.deepEqual(log, ['step 1', 'step 2', 'others'])
  })

  test('an error of a step ends the work with it', async () => {
    const { slicing } = aThread()
    function* failing(): Generator<undefined, never, undefined> {
      yield
      throw new RangeError('no')
    }
    await assert.rejects(inSlices(failing(), slicing), RangeError)
  })

  test('of several that go on in slices, one does in each turn', async () => {
    const turnOf: Record<string, number> = {}
    let turn = 0
    let isOver = false
    const count = () => {
      turn++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    const work = async (name: string) => {
      for (const slice of [1, 2]) {
        await eventLoopTurns.next()
        turnOf[`${name}${slice}`] = turn
      }
    }
    await Promise.all([work('a'), work('b'), work('c')])
    isOver = true
    const turns = Object.values(turnOf)
    assert.deepEqual(Object.keys(turnOf), ['a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
    assert.equal(new Set(turns).size, turns.length, 'no two in one turn')
  })

  test('what waits for the event loop runs before the next turn', async () => {
    const seen: string[] = []
    setImmediate(() => seen.push('waiting'))
    await eventLoopTurns.next()
    assert.deepEqual(seen, ['waiting'])
  })
})
