import assert from 'node:assert/strict'
import { test } from 'node:test'
import { array, assert as check, constantFrom, integer, property, record } from 'fast-check'
import { aBudget, aPod } from '../scale-down.test-support.ts'
import { DisruptionBudgets } from './disruption-budgets.ts'

test('a budget without a selector selects nothing, an empty selector selects the namespace', () => {
  const { spec: _, ...bare } = aBudget('none', {}, 0)
  const budgets = new DisruptionBudgets([{ ...bare, spec: {} }, aBudget('all', {}, 0, 'other')])
  assert.equal(budgets.covers(aPod('p')), false)
  assert.equal(budgets.covers(aPod('q', { namespace: 'other' })), true)
})

test('what is left of every budget is as a plain count has it', () => {
  const label = constantFrom('a', 'b', 'c')
  const pods = array(record({ app: label, tier: label }), { minLength: 1, maxLength: 6 })
  const budgets = array(
    record({ key: constantFrom('app', 'tier'), value: label, allowed: integer({ min: 0, max: 4 }) }),
  )
  check(
    property(budgets, array(pods, { maxLength: 5 }), (given, batches) => {
      const tracker = new DisruptionBudgets(
        given.map(({ key, value, allowed }, index) => aBudget(`b${index}`, { [key]: value }, allowed)),
      )
      const left = given.map(({ allowed }) => allowed)
      for (const [number, batch] of batches.entries()) {
        const hits = given.map(
          ({ key, value }) =>
            batch.filter((labels) => (key === 'app' ? labels.app : labels.tier) === value).length,
        )
        const objects = batch.map((labels, index) => aPod(`p${number}-${index}`, { labels }))
        assert.equal(
          tracker.isExceededBy(objects),
          hits.some((count, index) => count > 0 && count > (left[index] ?? 0)),
        )
        for (const [index, count] of hits.entries()) left[index] = Math.max(0, (left[index] ?? 0) - count)
        tracker.take(objects)
        for (const [index, labels] of batch.entries()) {
          const expected = given.some(
            ({ key, value }, at) => (key === 'app' ? labels.app : labels.tier) === value && left[at] === 0,
          )
          assert.equal(tracker.isExhausted(objects[index] ?? aPod('never')), expected)
        }
      }
    }),
  )
})
