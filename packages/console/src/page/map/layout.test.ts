import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Arbitrary,
  array,
  assert as check,
  constantFrom,
  integer,
  property,
  record,
  tuple,
  uniqueArray,
} from 'fast-check'
import type { PageNodeRow } from '../../model/page-view.ts'
import { groupings, layoutMap, type MapLayout, podBoxes } from './layout.ts'

const row: PageNodeRow = {
  id: 'node/n1',
  name: 'n1',
  node: 'n1',
  condition: 'Ready',
  cordoned: false,
  deleting: false,
  drifted: false,
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

for (const ratio of [0.5, 1, 2, 3.5])
  test(`a map of nodes of one pool fills a frame of ${ratio} to 1`, () => {
    const rows = Array.from({ length: 1000 }, (_, at) => ({ ...row, id: `n${at}` }))
    const { width, height } = layoutMap(rows, 'pool', ratio)
    const scale = Math.min(ratio / width, 1 / height)
    assert.ok((scale * scale * width * height) / ratio > 0.85, `${width} by ${height}`)
  })

/** Nodes of a few sizes and zones, whose pods come and go. */
const someRows: Arbitrary<readonly PageNodeRow[]> = uniqueArray(
  record({
    id: constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    zone: constantFrom('z1', 'z2'),
    used: integer({ min: 0, max: 9000 }),
    allocatable: constantFrom(2000, 8000),
  }),
  { selector: ({ id }) => id },
).map((nodes) =>
  nodes.map(({ allocatable, id, used, zone }) => ({
    ...row,
    id,
    zone,
    resources: { cpu: { used, allocatable } },
  })),
)

test('a map that goes on from the one before is the map of the rows alone', () => {
  check(
    property(
      array(tuple(someRows, constantFrom(...groupings)), { minLength: 2, maxLength: 6 }),
      (moments) => {
        let last: MapLayout | undefined
        for (const [rows, by] of moments) {
          last = layoutMap(rows, by, 1, last)
          assert.deepEqual(last, layoutMap(rows, by, 1))
        }
      },
    ),
  )
})

test('of a map on which only pods have come and gone, the other cells are the same objects', () => {
  const rows = ['a', 'b', 'c'].map((id) => ({ ...row, id }))
  const first = layoutMap(rows, 'zone', 1)
  const changed = rows.map((each) =>
    each.id === 'b' ? { ...each, resources: { cpu: { used: 100, allocatable: 7700 } } } : each,
  )
  const second = layoutMap(changed, 'zone', 1, first)
  assert.deepEqual(
    second.cells.map((cell, at) => cell === first.cells[at]),
    [true, false, true],
  )
  assert.equal(second.groups, first.groups)
})
