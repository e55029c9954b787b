import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import type { JournalNote } from './entry.ts'
import { Journal } from './journal.ts'

const startMs = Date.parse('2026-11-20T08:00:00Z')
const hourMs = 3_600_000
const dayMs = 24 * hourMs

function aJournal(currency?: string) {
  const clock = new VirtualClock(startMs, 1)
  return { clock, journal: new Journal(clock, () => currency) }
}

const aMove = (more: Partial<JournalNote> = {}): JournalNote => ({
  kind: 'move',
  reason: 'Underutilized',
  message: 'replace: [node-1] -> [1 replacement]',
  nodePool: 'general',
  nodeClaims: ['general-1'],
  nodes: ['node-1'],
  ...more,
})

/** All that a move leaves behind, with names as long as clouds make them. */
function notesOfMove(n: number): readonly JournalNote[] {
  const long = (name: string) => `${name}-${String(n).padStart(8, '0')}-${'x'.repeat(40)}`
  const claim = { nodePool: long('pool'), nodeClaims: [long('claim')], nodes: [long('node')] }
  const pods = { count: 30, names: Array.from({ length: 5 }, (_, i) => long(`namespace/pod-${i}`)) }
  const common = { ...claim, reason: 'Underutilized', message: 'm'.repeat(300), decision: long('decision') }
  const prices = { pricePerHour: { before: 0.123456, after: 0.098765 } }
  const kinds = [
    'decision',
    'move',
    'launch',
    'launched',
    'registered',
    'initialized',
    'removal',
    'removed',
  ] as const
  return kinds.map((kind) => ({ ...common, ...prices, pods, kind, replacements: [long('claim')] }))
}

describe('the journal', () => {
  test('tells what was noted, oldest first, with time, id and currency', async () => {
    const { clock, journal } = aJournal('EUR')
    journal.note(aMove({ pricePerHour: { before: 0.2, after: 0.1 } }))
    await clock.advance(hourMs)
    journal.note(aMove({ kind: 'refusal', message: 'it timed out' }))
    journal.note(aMove({ kind: 'removal', message: 'deleted' }))
    const entries = [...journal.entries()]
    assert.deepEqual(
      entries.map(({ kind, at, currency }) => [kind, at, currency]),
      [
        ['move', '2026-11-20T08:00:00.000000Z', 'EUR'],
        ['refusal', '2026-11-20T09:00:00.000000Z', undefined],
        ['removal', '2026-11-20T09:00:00.000000Z', undefined],
      ],
    )
    assert.equal(new Set(entries.map(({ id }) => id)).size, 3)
    assert.deepEqual(
      [...journal.entries(startMs + 1)].map(({ kind }) => kind),
      ['refusal', 'removal'],
    )
  })

  test('leaves an unknown price out', () => {
    const { journal } = aJournal('EUR')
    journal.note(aMove({ pricePerHour: { before: 0.2 } }))
    const [line] = [...journal.lines()]
    assert.deepEqual(JSON.parse(line ?? '').pricePerHour, { before: 0.2 })
  })

  test('holds the last 24 h of a cluster with 1 000 moves a day, amid failures, in 16 MiB', async () => {
    const { clock, journal } = aJournal('EUR')
    const moves = 3000
    for (let n = 0; n < moves; n++) {
      for (const note of notesOfMove(n)) journal.note(note)
      // A cloud without capacity fails all day.
      for (let i = 0; i < 20; i++)
        journal.note({ kind: 'failure', reason: 'InsufficientCapacity', message: `no capacity ${n} ${i}` })
      await clock.advance(dayMs / 1000)
      assert.ok(journal.bytes <= 16 * 1024 * 1024)
    }
    const kept = [...journal.entries(clock.now() - dayMs)].filter(({ kind }) => kind === 'move')
    assert.equal(kept.length, 1000)
    // The bound is reached: older ones are gone.
    assert.ok([...journal.entries()].filter(({ kind }) => kind === 'move').length < moves)
  })

  test('notes a failure again only after a while', async () => {
    const { clock, journal } = aJournal()
    const failure: JournalNote = {
      kind: 'failure',
      reason: 'NoCapacity',
      message: 'no capacity',
      nodePool: 'a',
    }
    for (let i = 0; i < 11; i++) {
      journal.note({ ...failure, nodeClaims: [`a-${i}`] })
      await clock.advance(60_000)
    }
    assert.equal([...journal.entries()].length, 2)
  })

  test('bounds what one entry lists', () => {
    const { journal } = aJournal()
    const many = Array.from({ length: 5000 }, (_, i) => `node-${i}`)
    journal.note(aMove({ nodes: many, nodeClaims: many, message: 'm'.repeat(10_000) }))
    const [entry] = [...journal.entries()]
    assert.equal(entry?.nodes.length, 1000)
    assert.equal(entry?.message.length, 2001)
  })
})
