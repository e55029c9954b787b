import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SchedulingInput } from '../input/input.ts'
import { differentShapes, worstCase, worstCases } from '../testing/worst-cases.test-support.ts'
import { schedule } from './schedule.ts'

/** CPU time of this thread: other processes do not count. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function timed(input: SchedulingInput): number {
  const start = cpuMs()
  schedule(input)
  return cpuMs() - start
}

describe('RPB-49 what one object can lengthen', () => {
  for (const name of Object.keys(worstCases)) {
    test(`${name}: the decision grows with the number of such pods, not with its square`, () => {
      const [small, large] = [worstCase(name, 5), worstCase(name, 20)]
      const few = Math.min(timed(small), timed(small), timed(small))
      let many = Number.POSITIVE_INFINITY
      // Four times as many pods and what sorting adds; with the square it would be sixteen times.
      const isBounded = () => many <= 9 * few + 20
      // One run may be slow for another reason.
      for (let run = 0; run < 3 && !isBounded(); run++) many = Math.min(many, timed(large))
      assert.ok(isBounded(), `${few} ms became ${many} ms`)
    })

    test(`${name}: the decision stops within 100 ms, whenever it is told to`, () => {
      const input = worstCase(name, 10)
      for (const asked of [1, 3, 10, 30, 100]) {
        let calls = 0
        let toldAt: number | undefined
        const result = schedule(input, {
          shouldStop: () => {
            if (++calls < asked) return false
            toldAt ??= cpuMs()
            return true
          },
        })
        if (toldAt === undefined) break
        const tookMs = cpuMs() - toldAt
        assert.ok(tookMs < 100, `stopped ${tookMs} ms after question ${asked}`)
        const { claims, placements, failures, undecided } = result
        const placed = claims.reduce((count, { pods }) => count + pods.length, placements.length)
        assert.equal(placed + failures.length + undecided.length, input.pods.length)
      }
    })
  }
})

describe('SCA-7 10,000 pods of 10,000 shapes', () => {
  test('a decision ends within its time box, and what it did not get to is named', () => {
    const input = differentShapes(10_000)
    const boxMs = 1000
    const start = cpuMs()
    const result = schedule(input, { shouldStop: () => cpuMs() - start > boxMs })
    const tookMs = cpuMs() - start
    const { claims, placements, failures, undecided } = result
    const placed = claims.reduce((count, { pods }) => count + pods.length, placements.length)
    assert.equal(placed + failures.length + undecided.length, input.pods.length)
    // Reading the pods comes before the first look at the time.
    assert.ok(tookMs < boxMs + 2000, `${tookMs} ms`)
  })

  test('the decision grows with the number of shapes, not with its square', () => {
    const [few, many] = [timed(differentShapes(1000)), timed(differentShapes(4000))]
    assert.ok(many <= 6 * few + 50, `${few} ms became ${many} ms`)
  })
})
