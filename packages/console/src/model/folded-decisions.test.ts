import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '@tenon/operator'
import { FoldedDecisions } from './folded-decisions.ts'

const startMs = Date.parse('2026-11-20T22:00:00Z')
const minute = 60_000
const everything = { fromMs: startMs - 1, toMs: Number.POSITIVE_INFINITY }

let count = 0
function entry(minutes: number, kind: JournalEntry['kind'], more: Partial<JournalEntry> = {}): JournalEntry {
  const at = new Date(startMs + minutes * minute).toISOString()
  return {
    id: `e${count++}`,
    at,
    kind,
    reason: 'Provisioned',
    message: kind,
    nodeClaims: [],
    nodes: [],
    ...more,
  }
}

function folded(entries: readonly JournalEntry[]): FoldedDecisions {
  const decisions = new FoldedDecisions()
  for (const each of entries) decisions.add(each)
  return decisions
}

const web = { namespace: 'shop', workload: 'deployment/web', pods: 12 }

/** A pass for 12 pods of web that launches two nodes. */
function aPass(minutes: number, id: string): readonly JournalEntry[] {
  const claims = [`${id}-a`, `${id}-b`]
  return [
    entry(minutes, 'decision', {
      id,
      decision: id,
      pods: { count: 12, names: ['shop/web-1'], workloads: [web] },
      pricePerHour: { before: 0, after: 0.3 },
      currency: 'EUR',
    }),
    ...claims.map((name) =>
      entry(minutes, 'launch', { nodeClaims: [name], nodePool: 'general', decision: id }),
    ),
    ...claims.map((name) => entry(minutes + 1, 'launched', { nodeClaims: [name] })),
    ...claims.map((name) =>
      entry(minutes + 2, 'registered', { nodeClaims: [name], nodes: [`node-${name}`] }),
    ),
  ]
}

test('PGE-5 a launch and how far it has come are one row, named by its workload, with its price effect', () => {
  const { rows, all } = folded([
    ...aPass(0, 'd1'),
    entry(3, 'initialized', { nodeClaims: ['d1-a'], nodes: ['node-d1-a'] }),
  ]).list(everything, 10)
  assert.equal(all, 1)
  assert.deepEqual(rows[0], {
    id: 'd1',
    atMs: startMs,
    untilMs: startMs + 3 * minute,
    kind: 'launch',
    reason: 'Provisioned',
    title: 'web, 12 pods',
    outcome: '1 node ready, 1 node registered',
    nodePools: ['general'],
    workloads: [web],
    pods: 12,
    nodes: ['node-d1-a', 'node-d1-b'],
    effect: 0.3,
    currency: 'EUR',
  })
})

test('PGE-5 a replacement has its launch, its removals and their end in one row', () => {
  const move = {
    reason: 'Underutilized',
    decision: 'c1',
    nodeClaims: ['old'],
    nodes: ['node-old'],
    nodePool: 'general',
    replacements: ['new'],
    pods: { count: 3, names: [], workloads: [{ ...web, pods: 3 }] },
    pricePerHour: { before: 0.4, after: 0.1 },
    currency: 'EUR',
  }
  const { rows } = folded([
    entry(0, 'launch', { nodeClaims: ['new'], nodePool: 'general', decision: 'c1' }),
    entry(0, 'move', move),
    entry(1, 'launched', { nodeClaims: ['new'] }),
    entry(3, 'initialized', { nodeClaims: ['new'], nodes: ['node-new'] }),
    entry(4, 'removal', { nodeClaims: ['old'], reason: 'Underutilized' }),
    entry(6, 'removed', { nodeClaims: ['old'] }),
  ]).list(everything, 10)
  assert.equal(rows.length, 1)
  const [row] = rows
  assert.deepEqual(
    [row?.kind, row?.title, row?.outcome, row?.reason],
    ['replace', 'web, 3 pods', '1 node ready, 1 node gone', 'Underutilized'],
  )
  assert.ok(Math.abs((row?.effect ?? 0) + 0.3) < 1e-9)
})

test('PGE-5 given a range, the decisions are those of it, by pool, kind and workload', () => {
  const decisions = folded([
    ...aPass(0, 'd1'),
    ...aPass(60, 'd2'),
    entry(63, 'removal', {
      nodeClaims: ['x'],
      nodePool: 'spot',
      reason: 'Expired',
      pricePerHour: { before: 0.2, after: 0 },
    }),
    ...aPass(120, 'd3'),
  ])
  const ids = (query: object) => decisions.list({ ...everything, ...query }, 10).rows.map(({ id }) => id)
  const range = { fromMs: startMs + 30 * minute, toMs: startMs + 90 * minute }
  assert.deepEqual(ids({ ...range, kind: 'launch' }), ['d2'])
  assert.equal(ids(range).length, 2)
  assert.deepEqual(ids({ text: 'SHOP/deployment/web' }), ['d3', 'd2', 'd1'])
  assert.equal(ids({ nodePool: 'spot' }).length, 1)
  assert.deepEqual(ids({ text: 'nothing of the kind' }), [])
  assert.deepEqual(
    decisions.largest({ ...everything, currency: 'EUR' }, 2).map(({ id }) => id),
    ['d3', 'd2'],
  )
})

test('PGE-5 entries that are read again, out of order or without a time change nothing', () => {
  const entries = [...aPass(0, 'd1'), ...aPass(60, 'd2')]
  const decisions = folded([
    ...entries,
    ...entries.toReversed(),
    ...entries,
    entry(0, 'move', { at: 'never' }),
  ])
  assert.deepEqual(decisions.list(everything, 10), folded(entries).list(everything, 10))
})

test('PGE-5 a command that was given up has no effect on the price, and its nodes may go with another', () => {
  const move = (minutes: number, decision: string) =>
    entry(minutes, 'move', {
      decision,
      nodeClaims: ['old'],
      pricePerHour: { before: 0.4, after: 0 },
    })
  const { rows } = folded([
    move(0, 'c1'),
    entry(1, 'refusal', { reason: 'GivenUp', decision: 'c1' }),
    move(5, 'c2'),
    entry(6, 'removal', { nodeClaims: ['old'] }),
    entry(7, 'removed', { nodeClaims: ['old'] }),
  ]).list(everything, 10)
  assert.deepEqual(
    rows.map(({ effect, outcome }) => [effect, outcome]),
    [
      [-0.4, '1 node gone'],
      [undefined, 'given up'],
    ],
  )
})
