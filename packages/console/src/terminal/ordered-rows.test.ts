import assert from 'node:assert/strict'
import { test } from 'node:test'
import { array, assert as check, boolean, integer, property, record } from 'fast-check'
import { OrderedRows, type RowOrder } from './ordered-rows.ts'

interface Row {
  readonly id: string
  readonly size: number
}

const steps = array(record({ at: integer({ min: 0, max: 8 }), size: integer({ min: -1, max: 4 }) }), {
  maxLength: 60,
})

test('rows that change one by one are in the order of a fresh sorting', () => {
  check(
    property(steps, boolean(), (changes, isReversed) => {
      const order: RowOrder<Row> = { keeps: ({ size }) => size !== 2, keyOf: ({ size }) => size, isReversed }
      const held = new Map<string, Row>()
      const rows = new OrderedRows<Row>([], order)
      for (const { at, size } of changes) {
        const row = { id: `r${at}`, size }
        if (size < 0) {
          held.delete(row.id)
          rows.delete(row.id)
        } else {
          held.set(row.id, row)
          rows.set(row)
        }
        const sign = isReversed ? -1 : 1
        const fresh = [...held.values()]
          .filter((each) => each.size !== 2)
          .toSorted((a, b) => (a.size - b.size) * sign || a.id.localeCompare(b.id))
        assert.deepEqual(rows.rows(), fresh)
        assert.deepEqual(new OrderedRows(held.values(), order).rows(), fresh)
      }
    }),
  )
})
