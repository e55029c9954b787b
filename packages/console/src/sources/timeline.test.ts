import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TraceRecord } from '@tenon/ask'
import { array, assert as holds, integer, property } from 'fast-check'
import { ConsoleModel } from '../model/model.ts'
import { Timeline } from './timeline.ts'

const startMs = Date.UTC(2026, 0, 1)
const minuteMs = 60_000

function came(node: string, minute: number, pricePerHour?: number): TraceRecord {
  return {
    kind: 'nodeCame',
    atMs: startMs + minute * minuteMs,
    node,
    id: node,
    labels: { 'karpenter.sh/nodepool': 'web' },
    capacity: { cpu: '4' },
    allocatable: { cpu: '4' },
    ...(pricePerHour !== undefined && { pricePerHour }),
  }
}

function gone(node: string, minute: number): TraceRecord {
  return { kind: 'nodeGone', atMs: startMs + minute * minuteMs, node }
}

const records: readonly TraceRecord[] = [
  { kind: 'session', atMs: startMs, program: 'test', source: 'a cluster' },
  came('a', -5, 0.2),
  { kind: 'alive', atMs: startMs },
  came('b', 10, 0.3),
  { kind: 'gap', atMs: startMs + 25 * minuteMs, fromMs: startMs + 20 * minuteMs, because: 'cut' },
  gone('a', 30),
  came('c', 40),
  came('a', 50, 0.2),
  { kind: 'alive', atMs: startMs + 60 * minuteMs },
]

/** Without the slider: what has come and not gone by then. */
function namesAt(minute: number): readonly string[] {
  const there = new Set<string>()
  for (const record of records) {
    if (record.kind !== 'nodeCame' && record.kind !== 'nodeGone') continue
    if (record.atMs > startMs + minute * minuteMs) break
    if (record.kind === 'nodeCame') there.add(record.node)
    else there.delete(record.node)
  }
  return [...there].toSorted()
}

test('CON-19 wherever the slider was before, at each time there are the nodes of that time', () => {
  holds(
    property(array(integer({ min: -10, max: 70 }), { minLength: 1, maxLength: 20 }), (minutes) => {
      const model = new ConsoleModel()
      const timeline = new Timeline(records, (event) => model.apply(event))
      for (const minute of minutes) {
        timeline.seek(startMs + minute * minuteMs)
        const at = Math.min(60, Math.max(0, minute))
        assert.equal(timeline.atMs, startMs + at * minuteMs)
        const { nodes } = model.view(timeline.atMs)
        assert.deepEqual(nodes.map(({ name }) => name).toSorted(), namesAt(at))
      }
    }),
  )
})

test('CON-5 CON-19 prices are those that were recorded, and what a recording does not tell is said', () => {
  const model = new ConsoleModel()
  const timeline = new Timeline(records, (event) => model.apply(event))
  assert.deepEqual(model.view(startMs).header.price, { perHour: 0.2, perMonth: 0.2 * 730, unpriced: 0 })
  timeline.seek(startMs + 45 * minuteMs)
  const { absent, header } = model.view(timeline.atMs)
  assert.equal(header.price.perHour, 0.3)
  assert.equal(header.price.unpriced, 1)
  assert.deepEqual(absent.map(({ what }) => what).toSorted(), ['decisions', 'journal', 'nodeclaims', 'pods'])
  timeline.seek(startMs + 22 * minuteMs)
  assert.equal(timeline.gap, 'cut')
  timeline.seek(startMs + 25 * minuteMs)
  assert.equal(timeline.gap, undefined)
})
