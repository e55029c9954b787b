import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '@tenon/operator'
import { priceHistory } from './price-history.ts'

const entry = (at: string, kind: JournalEntry['kind'], claim: string, after?: number): JournalEntry => ({
  id: `${at}/${claim}`,
  at: `2026-11-27T${at}:00Z`,
  kind,
  reason: 'Test',
  message: '',
  nodes: [],
  nodeClaims: [claim],
  ...(after !== undefined && { pricePerHour: { after } }),
})
const nowMs = Date.parse('2026-11-27T12:00:00Z')

test('the price goes back over launches and removals to what was there before', () => {
  const { steps, unpriced } = priceHistory(
    [
      entry('08:00', 'launched', 'a', 0.1),
      entry('09:00', 'launched', 'b', 0.4),
      entry('10:00', 'removed', 'a'),
      entry('11:00', 'removed', 'older'),
    ],
    nowMs,
    1.4,
  )
  assert.deepEqual(
    steps.map(({ pricePerHour }) => pricePerHour),
    [1, 1.1, 1.5, 1.4, 1.4, 1.4],
  )
  assert.equal(unpriced, 1)
})
