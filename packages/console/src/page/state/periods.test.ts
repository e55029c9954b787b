import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginOf, edgesOf, steps } from './periods.ts'

test('periods follow the calendar where the user is, over changes of the clock', () => {
  const zone = process.env['TZ']
  for (const own of ['Europe/Zurich', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe', 'UTC']) {
    process.env['TZ'] = own
    for (let day = 0; day < 400; day++) {
      const nowMs = Date.parse('2026-01-01T00:10:00Z') + day * 24 * 3_600_000 + (day % 24) * 3_599_000
      for (const { name, shown } of steps) {
        const edges = edgesOf(name, shown, nowMs)
        assert.equal(edges.length, shown + 1)
        assert.ok(edges.every((edge, at) => at === 0 || edge > (edges[at - 1] ?? 0)))
        assert.ok((edges.at(-2) ?? 0) <= nowMs && nowMs < (edges.at(-1) ?? 0), `${own} ${name} ${nowMs}`)
      }
      const midnight = new Date(beginOf('day', nowMs))
      assert.deepEqual([midnight.getHours(), midnight.getMinutes()], [0, 0])
      assert.equal(new Date(beginOf('week', nowMs)).getDay(), 1)
      assert.equal(new Date(beginOf('month', nowMs)).getDate(), 1)
    }
  }
  process.env['TZ'] = zone ?? ''
})
