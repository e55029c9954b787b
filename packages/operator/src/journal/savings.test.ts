import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EntrySelector, type JournalEntry } from './entry.ts'
import { savingsByDay } from './savings.ts'

const startMs = Date.parse('2026-11-20T00:00:00Z')
const hourMs = 3_600_000

/** What was noted at an hour after the start. */
function at(hour: number, kind: JournalEntry['kind'], more: Partial<JournalEntry>): JournalEntry {
  const time = new Date(startMs + hour * hourMs).toISOString()
  return {
    id: `${kind}-${hour}`,
    at: time,
    kind,
    reason: '',
    message: '',
    nodes: [],
    nodeClaims: [],
    ...more,
  }
}

const move = (hour: number, more: Partial<JournalEntry> = {}) =>
  at(hour, 'move', {
    nodeClaims: ['old'],
    replacements: ['new'],
    pricePerHour: { before: 4, after: 1 },
    currency: 'EUR',
    decision: 'd',
    ...more,
  })

const launched = at(1, 'launched', { nodeClaims: ['new'], pricePerHour: { after: 1 } })
const oldGone = at(2, 'removed', { nodeClaims: ['old'] })
const onlyDay = (entries: readonly JournalEntry[], nowHour: number, observed = false) => {
  const days = savingsByDay(entries, startMs + nowHour * hourMs, observed)
  assert.equal(days.length, 1)
  return days[0]
}

describe('savings', () => {
  test('begin once the old node is gone, less what the new one cost beside it', () => {
    assert.deepEqual(onlyDay([move(1), launched, oldGone], 6), {
      day: '2026-11-20',
      moves: 1,
      unpriced: 0,
      expectedPerHour: 3,
      expected: 15,
      // Four hours without the old one, five hours with the new one.
      saved: 4 * 4 - 5 * 1,
      currency: 'EUR',
    })
  })

  test('end when the new node goes', () => {
    const newGone = at(4, 'removed', { nodeClaims: ['new'] })
    assert.equal(onlyDay([move(1), launched, oldGone, newGone], 20)?.saved, 2 * 4 - 3 * 1)
  })

  test('count the price that the new node turned out to have', () => {
    const dearer = at(2, 'registered', { nodeClaims: ['new'], pricePerHour: { after: 2 } })
    assert.equal(onlyDay([move(1), launched, dearer, oldGone], 6)?.saved, 4 * 4 - 5 * 2)
  })

  test('of a removal last until the NodePool launches a node for pods', () => {
    const removal = move(0, { replacements: [], nodePool: 'a', pricePerHour: { before: 4, after: 0 } })
    const elsewhere = at(3, 'launch', { nodePool: 'b', reason: 'Provisioned' })
    assert.equal(onlyDay([removal, oldGone, elsewhere], 10)?.saved, 8 * 4)
    const again = at(5, 'launch', { nodePool: 'a', reason: 'Provisioned' })
    assert.equal(onlyDay([removal, oldGone, again], 10)?.saved, 3 * 4)
  })

  test('of a move that was given up are none, and an unknown price is counted and in no sum', () => {
    const end = at(2, 'refusal', { decision: 'd' })
    assert.equal(onlyDay([move(1), launched, end], 6)?.saved, 0)
    const unknown = onlyDay([move(1, { pricePerHour: { before: 4 } })], 6)
    assert.deepEqual([unknown?.unpriced, unknown?.saved, unknown?.expected], [1, 0, 0])
  })

  test('of an observed move last as long as its plan stands, and are kept apart', () => {
    const plan = move(1, { observed: true })
    const end = at(3, 'refusal', { decision: 'd', observed: true })
    assert.equal(onlyDay([plan, end], 10, true)?.saved, 6)
    assert.deepEqual(savingsByDay([plan], startMs + hourMs), [])
  })
})

test('a node is found by its name and by that of its claim, from before it was registered', () => {
  const entries = [
    at(0, 'launch', { nodeClaims: ['claim'] }),
    at(1, 'registered', { nodeClaims: ['claim'], nodes: ['node'] }),
    at(2, 'launch', { nodeClaims: ['other'] }),
    at(3, 'move', { nodeClaims: ['old'], nodes: ['node-old'], replacements: ['claim'] }),
  ]
  const selector = new EntrySelector({ node: 'node' }, entries)
  assert.deepEqual(
    entries.map((entry) => selector.accepts(entry)),
    [true, true, false, true],
  )
})
