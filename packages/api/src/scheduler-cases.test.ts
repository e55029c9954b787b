import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meetsNodeSelectorTerm } from './node-selector.ts'
import {
  nodeFieldCases,
  nodeTermCases,
  selectorCases,
  tolerationCases,
} from './scheduler-cases.test-support.ts'
import { matchesSelector } from './selector.ts'
import { tolerates } from './taints.ts'

const textOf = (value: unknown) => JSON.stringify(value)

test('RPB-41 tolerations, terms of node selectors and label selectors decide as kube-scheduler', () => {
  for (const each of tolerationCases)
    assert.equal(tolerates(each.toleration, each.taint), each.isTolerated, textOf(each))
  for (const each of [...nodeTermCases, ...nodeFieldCases])
    assert.equal(meetsNodeSelectorTerm(each.term, 'node-1', each.labels), each.isMet, textOf(each))
  for (const each of selectorCases)
    assert.equal(matchesSelector(each.selector, each.labels), each.isMet, textOf(each))
})
