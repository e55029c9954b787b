import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Column } from './columns/column.ts'
import { placed, rowLine, titleLine } from './layout.ts'

test('a table with nothing in the column that grows is no wider than the screen', () => {
  const columns: readonly Column<string>[] = [
    { title: 'NAME', rank: 0, grows: true, cell: () => ({ text: '' }) },
    { title: 'STATE', rank: 1, cell: (row) => ({ text: row }) },
    { title: 'TEAM', rank: 2, cell: () => ({ text: 'team' }) },
  ]
  for (let width = 10; width < 60; width++) {
    const rows = ['x'.repeat(30)]
    const there = placed(columns, rows, { width, isWide: false, least: new Map() })
    const room = Math.max(width, there.length === 1 ? 30 : 0)
    assert.ok(titleLine(there).length <= room, `${width}: ${titleLine(there)}`)
    assert.ok(rowLine(rows[0] ?? '', there, (_, text) => text).length <= room, String(width))
  }
})
