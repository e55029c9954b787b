import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pageChange, pageView } from './page-view.ts'
import type { ClaimRow, ConsoleView, NodeRow } from './view.ts'

const claim: ClaimRow = {
  id: 'claim/web-1',
  name: 'web-1',
  ready: 'Unknown',
  waitsFor: 'Registered',
  deleting: false,
  drifted: false,
  labels: { team: 'a' },
}
const { waitsFor: _, ...arrived } = { ...claim, id: 'claim/web-2', ready: 'True' }
const node: NodeRow = {
  id: 'node/n1',
  name: 'n1',
  condition: 'Ready',
  cordoned: false,
  deleting: false,
  drifted: false,
  resources: {},
  labels: { team: 'a' },
}

test('the page is told no labels, and NodeClaims only while they are on their way', () => {
  const view: ConsoleView = {
    header: { nodes: 1, pendingNodes: 1, resources: {}, price: { unpriced: 1 } },
    nodes: [node],
    claims: [claim, arrived],
    pools: [],
    groups: [],
    pendingPods: [],
    decisions: [],
    offerings: [],
    problems: [],
    absent: [],
  }
  const { claims, header, nodes } = pageView(view)
  assert.equal(header, view.header)
  assert.deepEqual(
    nodes.map((row) => ['labels' in row, row.name]),
    [[false, 'n1']],
  )
  assert.deepEqual(
    claims.map((row) => ['labels' in row, row.name]),
    [[false, 'web-1']],
  )
})

test('a NodeClaim that has arrived is removed from the page', () => {
  const change = pageChange({ table: 'claims', set: [claim, arrived], removed: ['claim/web-3'] })
  assert.ok('table' in change)
  assert.deepEqual(
    change.set.map(({ id }) => id),
    ['claim/web-1'],
  )
  assert.deepEqual(change.removed, ['claim/web-3', 'claim/web-2'])
})
