import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PackingCache } from './packing-cache.ts'
import { Effort, pack } from './packing.ts'

const vector = (...amounts: readonly number[]) => Float64Array.from(amounts)
const items = [
  { amounts: vector(3, 2), count: 5 },
  { amounts: vector(1, 4), count: 7 },
]
const bins = [
  { room: vector(8, 8), pricePerHour: 1 },
  { room: vector(16, 32), pricePerHour: 2.5 },
]
const effort = () => new Effort(1_000_000, () => false)

test('what was packed before is not packed again, and what is other is', () => {
  const packings = new PackingCache()
  const first = packings.pack(items, { id: 1, bins }, effort())
  assert.deepEqual(first, pack(items, bins, effort()))
  assert.equal(packings.pack(items, { id: 1, bins }, effort()), first)
  const more = items.map((item) => ({ ...item, count: item.count + 1 }))
  assert.deepEqual(packings.pack(more, { id: 1, bins }, effort()), pack(more, bins, effort()))
  const dearer = bins.map((bin) => ({ ...bin, pricePerHour: 2 * bin.pricePerHour }))
  assert.equal(
    packings.pack(items, { id: 2, bins: dearer }, effort())?.pricePerHour,
    2 * (first?.pricePerHour ?? 0),
  )
})

test('what there was no time for is tried again', () => {
  const packings = new PackingCache()
  assert.equal(packings.pack(items, { id: 1, bins }, new Effort(1, () => true)), undefined)
  assert.deepEqual(packings.pack(items, { id: 1, bins }, effort()), pack(items, bins, effort()))
})
