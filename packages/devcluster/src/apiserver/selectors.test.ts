import assert from 'node:assert/strict'
import { test } from 'node:test'
import { selectorText } from '@tenon/api'
import { nodeTermCases, selectorCases } from '@tenon/api/scheduler-cases'
import { parseLabelSelector } from './selectors.ts'

test('RPB-41 selectors of queries decide as those of objects, numbers included', () => {
  for (const { selector, labels, isMet } of selectorCases) {
    if (selector === undefined) continue
    assert.equal(parseLabelSelector(selectorText(selector))(labels), isMet, selectorText(selector))
  }
  for (const { term, labels, isMet } of nodeTermCases) {
    const [one] = term.matchExpressions ?? []
    if (one?.operator !== 'Gt' && one?.operator !== 'Lt') continue
    const text = `${one.key}${one.operator === 'Gt' ? '>' : '<'}${one.values?.join('') ?? ''}`
    assert.equal(parseLabelSelector(text)(labels), isMet, `${text} of ${JSON.stringify(labels)}`)
  }
})
