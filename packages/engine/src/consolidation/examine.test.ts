import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problemOf } from '../scheduling/problem/problem.ts'
import { aPod, aType } from '../testing/builders.test-support.ts'
import type { NewClaim } from '../input/result.ts'
import { disruptionResult } from './answer.ts'
import { asked } from './consolidation.test-support.ts'
import { Examiner, examine } from './examine.ts'
import type { DisruptionQuestion } from './question.ts'

const never = { shouldStop: () => false }

function aGround() {
  const type = aType('small', 4, 8)
  const pod = () => aPod({ cpu: '2' })
  const { input, question } = asked('single', {
    instances: {
      a: { type, pods: [pod()] },
      b: { type, pods: [pod(), pod()] },
      c: { type, pods: [pod()] },
    },
  })
  const without = (...gone: readonly string[]): DisruptionQuestion => ({
    kind: 'remove',
    candidates: question.candidates,
    gone,
  })
  return { problem: problemOf(input), without }
}

test('an examiner answers each question as if it were the only one', () => {
  const { problem, without } = aGround()
  const examiner = new Examiner()
  for (const question of [without('a'), without('b'), without('a', 'b', 'c'), without('a')])
    assert.deepEqual(examiner.examine(problem, question, never), examine(problem, question, never))
})

test('another problem, or other candidates, are not answered from what was known before', () => {
  const first = aGround()
  const second = aGround()
  const examiner = new Examiner()
  examiner.examine(first.problem, first.without('a'), never)
  assert.deepEqual(
    examiner.examine(second.problem, second.without('b'), never),
    examine(second.problem, second.without('b'), never),
  )
})

test('of the claims without a node only those with pods of that node replace it', () => {
  const type = aType('small', 4, 8)
  const [moving, pending] = [aPod({ cpu: '3' }), aPod({ cpu: '3' })]
  const { input, question } = asked('single', {
    instances: { a: { type, pods: [moving] }, b: { type, pods: [aPod({ cpu: '3' })] } },
    pending: [pending],
  })
  const asksFor = { kind: 'remove' as const, candidates: question.candidates, gone: ['a'] }
  const result = disruptionResult(input, asksFor, examine(problemOf(input), asksFor, never))
  assert.ok(result.kind === 'removal')
  const uidsOf = (claims: readonly NewClaim[]) =>
    claims.flatMap(({ pods }) => pods.map(({ metadata: { uid = '' } }) => uid)).toSorted()
  assert.deepEqual(uidsOf(result.claims), [moving.metadata.uid, pending.metadata.uid])
  assert.deepEqual(uidsOf(result.replacements), [moving.metadata.uid])
})
