import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeRow } from '../../model/view.ts'
import { layoutMap, podBoxes } from './layout.ts'

const row: NodeRow = {
  id: 'node/n1',
  name: 'n1',
  node: 'n1',
  condition: 'Ready',
  cordoned: false,
  deleting: false,
  drifted: false,
  labels: {},
  resources: { cpu: { used: 7500, allocatable: 7700 } },
}

test('all pods of a full node have a place in its cell, and none lies on another', () => {
  const { cells } = layoutMap([row], 'pool', 1)
  const pods = Array.from({ length: 15 }, (_, at) => ({
    namespace: 'shop',
    name: `p${at}`,
    cpuMillis: 500,
    memoryBytes: 0,
  }))
  const boxes = podBoxes(cells, new Map([['n1', pods]]))
  assert.equal(boxes.length, pods.length)
  const [cell] = cells
  assert.ok(cell)
  // What is requested fills the cell from below, and the pods are what is requested.
  assert.ok((boxes[0]?.y ?? 0) > (boxes.at(-1)?.y ?? 0))
  for (const [at, { size, x, y }] of boxes.entries()) {
    assert.ok(x >= cell.x && x + size <= cell.x + cell.size && y >= cell.y && y + size <= cell.y + cell.size)
    for (const other of boxes.slice(at + 1))
      assert.ok(
        x + size <= other.x || other.x + other.size <= x || y + size <= other.y || other.y + other.size <= y,
      )
  }
})
