import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Node } from '@tenon/api'
import { massFailures } from './mass-failure.ts'

const minute = 60_000
const now = 100 * minute

/** Nodes of zones, each with the minute in which it turned unhealthy, or none. */
function failuresOf(zones: Readonly<Record<string, readonly (number | undefined)[]>>) {
  const turned = new Map<Node, number | undefined>()
  for (const [zone, minutes] of Object.entries(zones))
    for (const [at, each] of minutes.entries())
      turned.set(
        {
          apiVersion: 'v1',
          kind: 'Node',
          metadata: { name: `${zone}-${at}`, labels: { [labels.zone]: zone } },
        },
        each === undefined ? undefined : each * minute,
      )
  return massFailures(turned.keys(), (node) => turned.get(node), now)
}

const well = (count: number) => Array.from({ length: count }, () => undefined)

test('WNT-15 more than half of a zone within ten minutes is a failure of the zone', () => {
  const half = { a: [80, 85, 90, ...well(3)], b: well(10) }
  assert.deepEqual(failuresOf(half), [])
  assert.deepEqual(failuresOf({ ...half, a: [80, 85, 90, ...well(2)] }), [
    { zone: 'a', nodes: 3, of: 5, untilMs: 120 * minute },
  ])
  assert.deepEqual(failuresOf({ ...half, a: [80, 85, 91, ...well(2)] }), [], 'within eleven minutes')
})

test('WNT-15 more than a third of the cluster is a failure of all', () => {
  const spread = { a: [70, ...well(2)], b: [71, ...well(2)], c: [72, ...well(2)] }
  assert.deepEqual(failuresOf(spread), [])
  assert.deepEqual(failuresOf({ ...spread, d: [73, undefined] }), [
    { nodes: 4, of: 11, untilMs: 103 * minute },
  ])
})

test('one or two nodes are no mass, and starting or leaving ones do not count', () => {
  assert.deepEqual(failuresOf({ a: [90], b: [90], c: [undefined] }), [])
  const starting: Node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'new', labels: { [labels.nodePool]: 'default', [labels.zone]: 'a' } },
  }
  const leaving: Node = {
    ...starting,
    metadata: { name: 'old', deletionTimestamp: '2026-01-01T00:00:00Z', labels: { [labels.zone]: 'a' } },
  }
  const many = Array.from({ length: 10 }, () => [starting, leaving]).flat()
  assert.deepEqual(
    massFailures(many, () => now, now),
    [],
  )
})
