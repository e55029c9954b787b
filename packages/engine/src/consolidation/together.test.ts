import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type Pod } from '@tenon/api'
import { problemOf } from '../scheduling/problem/problem.ts'
import type { PodGroupInput } from '../input/input.ts'
import {
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  soldAs,
  times,
  valuesOn,
} from '../testing/builders.test-support.ts'
import { disruptionResult } from './answer.ts'
import { asked, consolidate, moves, refusals, scores, type Story } from './consolidation.test-support.ts'
import { examine } from './examine.ts'

const small = aType('small', 4, 16)
const large = aType('large', 8, 32)

/** What a search among nodes that go together comes to, with groups among their pods. */
function together(
  story: Story,
  sets: readonly (readonly string[])[],
  podGroups: readonly PodGroupInput[] = [],
) {
  const { input, question } = asked('together', story)
  const full = { ...question, together: sets }
  const result = disruptionResult(
    input,
    full,
    examine(problemOf({ ...input, podGroups }), full, { shouldStop: story.shouldStop ?? (() => false) }),
  )
  assert.ok(result.kind === 'consolidation')
  return result
}

function groupOf(pods: readonly Pod[], topology?: PodGroupInput['topology']): PodGroupInput {
  return {
    id: 'podgroups.scheduling.k8s.io/default/train',
    members: pods.map(({ metadata }) => metadata.uid ?? ''),
    minCount: pods.length,
    bound: 0,
    priority: 0,
    createdAt: '2026-01-01T00:00:00Z',
    ...(topology && { topology }),
  }
}

describe('nodes that go together', () => {
  test('two half-used nodes give way to one of their type', () => {
    const story = {
      types: [small],
      instances: {
        a: { type: small, pods: times(2, () => aPod({ cpu: '500m' })) },
        b: { type: small, pods: times(2, () => aPod({ cpu: '500m' })) },
      },
    }
    const result = together(story, [['a', 'b']])
    assert.deepEqual(moves(result), [[['a', 'b'], ['small']]])
    assert.equal(scores(result)[0]?.isApproved, true)
  })

  test('no set is tried of which a node is no candidate, and nothing else is looked at', () => {
    const instance = { type: small, pods: [aPod({ cpu: '100m' })] }
    const story = { types: [small], instances: { a: instance, b: instance, c: { ...instance, stays: true } } }
    assert.deepEqual(moves(together(story, [['a', 'c']])), [])
    assert.deepEqual(moves(consolidate('together', story)), [])
  })

  test('a budget for fewer nodes than the set has keeps all of it, and is told', () => {
    const instance = () => ({ type: small, pods: [aPod({ cpu: '100m' })] })
    const story = { types: [small], budgets: { default: 1 }, instances: { a: instance(), b: instance() } }
    const result = together(story, [['a', 'b']])
    assert.deepEqual(moves(result), [])
    assert.equal(result.isLimitedByBudget, true)
    assert.deepEqual(refusals(result), { a: 'budget', b: 'budget' })
  })

  test('a group keeps to one domain, or stays where it is', () => {
    const pods = times(4, () => aPod({ cpu: '3' }))
    const zoned = { key: labels.zone }
    const types = [
      soldAs(small, anOffering('on-demand', 1, 'zone-1'), anOffering('on-demand', 0.5, 'zone-2')),
    ]
    const at = (index: number, price: number) => ({
      type: types[0]!,
      pods: [pods[index]!],
      pricePerHour: price,
    })
    const instances = { a: at(0, 1), b: at(1, 1), c: at(2, 1), d: at(3, 1) }
    const story = { types, instances }
    const sets = [['a', 'b', 'c', 'd']]
    const result = together(story, sets, [groupOf(pods, zoned)])
    const zones = new Set(result.moves[0]?.claims.flatMap((claim) => valuesOn(claim, labels.zone)))
    assert.deepEqual([...zones], ['zone-2'])
    assert.equal(result.moves[0]?.claims.length, 4)
    // There is room for three of four.
    const limited = aPoolInput(aPool('default', { limits: { nodes: '3' } }), types)
    assert.deepEqual(moves(together({ ...story, pools: [limited] }, sets, [groupOf(pods, zoned)])), [])
  })

  test('pods without a place are no part of the move', () => {
    const story = {
      types: [small, large],
      pending: [aPod({ cpu: '7' })],
      instances: {
        a: { type: small, pods: [aPod({ cpu: '1' })] },
        b: { type: small, pods: [aPod({ cpu: '1' })] },
      },
    }
    assert.deepEqual(moves(together(story, [['a', 'b']])), [[['a', 'b'], ['small']]])
  })

  test('an interrupted search says so', () => {
    const instance = () => ({ type: small, pods: [aPod({ cpu: '100m' })] })
    const story = { types: [small], instances: { a: instance(), b: instance() }, shouldStop: () => true }
    assert.equal(together(story, [['a', 'b']]).isTimedOut, true)
  })
})
