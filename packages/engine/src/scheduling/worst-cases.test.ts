import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SchedulingInput } from '../input/input.ts'
import type { SchedulingResult } from '../input/result.ts'
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

/** Fails when the larger decision takes too long in each of five runs: a busy host slows some. */
function assertGrowth(small: SchedulingInput, large: SchedulingInput, most: (few: number) => number): void {
  const few = Math.min(timed(small), timed(small), timed(small))
  const many: number[] = []
  while (many.length < 5) {
    many.push(timed(large))
    if (Math.min(...many) <= most(few)) return
  }
  assert.fail(`${few} ms became ${Math.min(...many)} ms`)
}

/** @returns what a decision still takes once it is told to stop at a question; 0 if it ends before. In ms of CPU time. */
function stopsAfter(input: SchedulingInput, question: number): number {
  let questions = 0
  let toldAt: number | undefined
  const result = schedule(input, {
    shouldStop: () => {
      if (++questions < question) return false
      toldAt ??= cpuMs()
      return true
    },
  })
  const tookMs = toldAt === undefined ? 0 : cpuMs() - toldAt
  assertComplete(input, result)
  return tookMs
}

/** Each pod is placed, refused, or named as undecided. */
function assertComplete(input: SchedulingInput, result: SchedulingResult): void {
  const { claims, placements, failures, undecided } = result
  const placed = claims.reduce((count, { pods }) => count + pods.length, placements.length)
  assert.equal(placed + failures.length + undecided.length, input.pods.length)
}

describe('RPB-49 what one object can lengthen', () => {
  for (const name of Object.keys(worstCases)) {
    test(`${name}: the decision grows with the number of such pods, not with its square`, () => {
      // Four times as many pods and what sorting adds; with the square it would be sixteen times.
      assertGrowth(worstCase(name, 5), worstCase(name, 20), (few) => 9 * few + 20)
    })

    test(`${name}: the decision stops within 100 ms, whenever it is told to`, () => {
      const input = worstCase(name, 10)
      for (const asked of [1, 3, 10, 30, 100]) {
        const runsMs: number[] = []
        while (runsMs.length < 3 && runsMs.every((ms) => ms >= 100)) runsMs.push(stopsAfter(input, asked))
        assert.ok(Math.min(...runsMs) < 100, `stopped ${runsMs.join(', ')} ms after question ${asked}`)
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
    assertComplete(input, result)
    // Reading the pods comes before the first look at the time.
    assert.ok(tookMs < boxMs + 2000, `${tookMs} ms`)
  })

  test('the decision grows with the number of shapes, not with its square', () => {
    assertGrowth(differentShapes(1000), differentShapes(4000), (few) => 9 * few + 50)
  })
})
