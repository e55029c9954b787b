import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InstanceType } from '@tenon/api'
import { type SearchInput, isSameSearch, ConsolidationMemo } from './consolidation-memo.ts'
import { poolOf, seen } from './consolidation-memo.test-support.ts'

const minute = 60_000

/** A type that costs so much per offering; undefined where it is sold out. */
function sold(...prices: readonly (number | undefined)[]): SearchInput['catalogue'] {
  const offerings = prices.map((price = 9) => ({
    requirements: [],
    pricePerHour: price,
    available: price !== 9,
  }))
  const type: InstanceType = {
    name: 'large',
    requirements: [],
    offerings,
    capacity: {},
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
  return new Map([['default', { pool: seen('', '').pool, types: new Map([['large', type]]) }]])
}

const a = [seen('a', 'p')]
const at = (nowMs: number, changes: Partial<SearchInput> & { readonly left?: number } = {}) => ({
  candidates: a,
  budgets: new Map([['default', changes.left ?? 3]]),
  catalogue: sold(1),
  nodes: [],
  othersWait: false,
  nowMs,
  ...changes,
})

/** Asks what is unchanged, and finds nothing. */
function lookInVain(memo: ConsolidationMemo, input: SearchInput, isLimited = false) {
  const told = memo.unchanged(input)
  memo.note(input, told, isLimited)
  return { unchanged: [...told.unchanged], settled: [...told.settled] }
}

const allNew = { unchanged: [], settled: [] }
const allKnown = { unchanged: ['a'], settled: ['a'] }

test('unchanged candidates are left out of the next search', () => {
  const memo = new ConsolidationMemo()
  const then = [seen('a', 'p'), seen('b', 'qr'), seen('c', ''), seen('d', 's'), seen('e', 't')]
  assert.deepEqual(lookInVain(memo, at(0, { candidates: then })), allNew)
  const now = [seen('a', 'p'), seen('b', 'rq'), seen('c', 'x'), seen('d', 's', 2), seen('e', 't', 1, 2)]
  assert.deepEqual(lookInVain(memo, at(minute, { candidates: [...now, seen('new', '')] })), allKnown)
})

test('ASK-29 a node is searched again once its pods will request much more or less', () => {
  const memo = new ConsolidationMemo()
  const asking = (cpu: number) => [seen('a', 'p', 1, 1, cpu)]
  lookInVain(memo, at(0, { candidates: asking(1000) }))
  assert.deepEqual(lookInVain(memo, at(1, { candidates: asking(1100) })), allKnown)
  assert.deepEqual(lookInVain(memo, at(2, { candidates: asking(1500) })), allNew)
  assert.deepEqual(lookInVain(memo, at(3, { candidates: asking(1500) })), allKnown)
  assert.deepEqual(lookInVain(memo, at(4, { candidates: asking(500) })), allNew)
})

/** A node with so much room. */
const roomOf = (cpu: number): NonNullable<SearchInput['nodes']>[number] => ({
  name: 'node',
  labels: {},
  taints: [],
  initialized: true,
  available: { cpu },
})

/** Minutes at which candidates were searched alone, and all together; each search finds nothing. */
function timesOf(changesAt: (step: number) => Partial<SearchInput>) {
  const memo = new ConsolidationMemo()
  const looks: number[] = []
  const exchanges: number[] = []
  for (let step = 0; step <= 360; step++) {
    const nowMs = step * 20_000
    const { unchanged, settled } = lookInVain(memo, at(nowMs, changesAt(step)))
    if (unchanged.length === 0) looks.push(nowMs / minute)
    if (settled.length === 0) exchanges.push(nowMs / minute)
  }
  return { looks, exchanges }
}

const everyMinutes = (minutes: number) =>
  Array.from({ length: 120 / minutes + 1 }, (_, each) => minutes * each)

test('each is searched again after ten minutes, and all together after an hour', () => {
  for (const each of [1, -1])
    for (const othersWait of [true, false]) {
      const { looks, exchanges } = timesOf((step) => ({ nodes: [roomOf(1000 + each * step)], othersWait }))
      assert.deepEqual(looks, everyMinutes(10))
      assert.deepEqual(exchanges, everyMinutes(60))
    }
})

test('among many each is searched again later, after half an hour at the latest', () => {
  for (const [count, minutes] of [
    [500, 15],
    [3000, 30],
  ] as const) {
    const candidates = Array.from({ length: count }, (_, index) => seen(`node-${index}`, ''))
    const { looks, exchanges } = timesOf(() => ({ candidates }))
    assert.deepEqual(looks, everyMinutes(minutes))
    assert.deepEqual(exchanges, everyMinutes(60))
  }
})

test('a copy knows the same, as if the full search had been now', () => {
  const memo = new ConsolidationMemo()
  lookInVain(memo, at(0, { nodes: [roomOf(1000)] }))
  const forked = memo.forked(5 * minute)
  const told = forked.unchanged(at(14 * minute, { nodes: [roomOf(2000)] }))
  assert.deepEqual([[...told.unchanged], [...(told.roomier ?? [])]], [['a'], ['node']])
  lookInVain(forked, at(14 * minute, { candidates: [seen('b', 'p')] }))
  assert.deepEqual(lookInVain(memo, at(9 * minute)), allKnown)
  assert.deepEqual(lookInVain(memo, at(10 * minute)).unchanged, [])
})

test('a search would find nothing as long as nothing has changed and no node has more room', () => {
  const memo = new ConsolidationMemo()
  const b = seen('b', 'q')
  const isInVain = (nowMs: number, cpu: number, changes: Partial<SearchInput> = {}) => {
    const input = at(nowMs, { nodes: [roomOf(cpu)], ...changes })
    const told = memo.unchanged(input)
    const answer = memo.wouldFindNothing(input, told)
    if (!answer) memo.note(input, told, false)
    return answer
  }
  assert.equal(isInVain(0, 1000), false)
  assert.equal(isInVain(1, 1000), true)
  assert.equal(isInVain(2, 500), true)
  assert.equal(isInVain(3, 1500), false, 'more room')
  assert.equal(isInVain(4, 1500), true)
  assert.equal(isInVain(5, 1500, { nodes: [roomOf(1500), { ...roomOf(1), name: 'new' }] }), false)
  assert.equal(isInVain(6, 1500, { candidates: [...a, b] }), false)
  assert.equal(isInVain(7, 1500, { candidates: [b] }), true)
  assert.equal(isInVain(10 * minute, 1500, { candidates: [b] }), false, 'it is time')
  const limited = [...sold(1)].map(
    ([name, listed]) => [name, { ...listed, pool: poolOf(1, { cpu: '10' }) }] as const,
  )
  assert.equal(isInVain(10 * minute + 1, 1500, { candidates: [b], catalogue: new Map(limited) }), false)
})

test('larger budgets count where smaller ones have kept something from being found, and only for their NodePool', () => {
  const free = new ConsolidationMemo()
  lookInVain(free, at(0))
  assert.deepEqual(lookInVain(free, at(1, { left: 5 })), allKnown)

  const limited = new ConsolidationMemo()
  lookInVain(limited, at(0), true)
  assert.deepEqual(lookInVain(limited, at(1, { left: 2 }), true), allKnown)
  assert.deepEqual(lookInVain(limited, at(2, { left: 3 }), true), allKnown)
  assert.deepEqual(lookInVain(limited, at(3, { left: 4 }), true), allNew)
  const others = new Map([
    ['default', 4],
    ['other', 1],
  ])
  assert.deepEqual(lookInVain(limited, at(4, { budgets: others }), true), allKnown)
})

test('all are searched again once an offering is cheaper, but not when it comes back at its old price', () => {
  const memo = new ConsolidationMemo()
  lookInVain(memo, at(0, { catalogue: sold(2, 1) }))
  assert.deepEqual(lookInVain(memo, at(1, { catalogue: sold(2, undefined) })), allKnown)
  assert.deepEqual(lookInVain(memo, at(2, { catalogue: sold(2, 1) })), allKnown)
  assert.deepEqual(lookInVain(memo, at(3, { catalogue: sold(1.5, 1) })), allNew)
  assert.deepEqual(lookInVain(memo, at(4, { catalogue: sold(1.5, 1) })), allKnown)
})

test('a limited search is the same as long as candidates, budgets and prices are', () => {
  const then = at(0, { candidates: [seen('a', 'p'), seen('b', 'q')] })
  const isAgain = (changes: Parameters<typeof at>[1]) =>
    isSameSearch({ ...then, ...at(0, { candidates: then.candidates, ...changes }) }, then)
  assert.equal(isAgain({ candidates: [seen('b', 'q'), seen('a', 'p')] }), true)
  assert.equal(isAgain({ catalogue: sold(2) }), true)
  assert.equal(isAgain({ catalogue: sold(0.5) }), false)
  assert.equal(isAgain({ left: 4 }), false)
  assert.equal(isAgain({ left: 2 }), false)
  assert.equal(isAgain({ candidates: [seen('a', 'p')] }), false)
  assert.equal(isAgain({ candidates: [seen('a', 'p'), seen('b', 'q'), seen('c', '')] }), false)
  assert.equal(isAgain({ candidates: [seen('a', 'p'), seen('b', 'r')] }), false)
  assert.equal(isAgain({ candidates: [seen('a', 'p'), seen('b', 'q', 1, 2)] }), false)
  const dearer = { ...seen('b', 'q'), disruptionCost: 9 }
  assert.equal(isAgain({ candidates: [seen('a', 'p'), dearer] }), false)
})

test('what a move was found in has no better one', () => {
  const now = [...a, seen('new', '')]
  assert.deepEqual(
    [...ConsolidationMemo.ofFailedSearch(at(0)).unchanged(at(0, { candidates: now })).settled],
    ['a'],
  )
})

test('nodes with more room than at the last full search are named, whatever was searched in between', () => {
  const memo = new ConsolidationMemo()
  const place = (cpu: number, more: Partial<NonNullable<SearchInput['nodes']>[number]> = {}) => ({
    name: 'n',
    labels: { zone: 'one' },
    taints: [],
    initialized: true,
    available: { cpu },
    ...more,
  })
  const other = { ...place(9), name: 'other' }
  const roomier = (nowMs: number, n: ReturnType<typeof place>, nodes = [n, other]) => {
    const input = at(nowMs, { nodes })
    const told = memo.unchanged(input)
    memo.note(input, told, false)
    return told.roomier && [...told.roomier]
  }
  assert.equal(roomier(0, place(4)), undefined)
  assert.deepEqual(roomier(1, place(4)), [])
  assert.deepEqual(roomier(2, place(2)), [])
  // Candidates searched while it had less room found none there.
  assert.deepEqual(roomier(3, place(4)), ['n'])
  assert.deepEqual(roomier(10 * minute, place(4)), ['n'])
  assert.deepEqual(roomier(10 * minute + 1, place(4)), [])
  assert.deepEqual(roomier(10 * minute + 2, place(1, { labels: { zone: 'two' } })), ['n'])
  assert.deepEqual(roomier(10 * minute + 3, place(1, { refusesCandidatePods: true })), ['n'])
  assert.deepEqual(roomier(10 * minute + 4, place(1), [place(1), other, { ...place(1), name: 'new' }]), [
    'n',
    'new',
  ])
  const later = [place(1), other, { ...place(1), name: 'new' }]
  assert.deepEqual(roomier(10 * minute + 5, place(1), later), ['n', 'new'], 'until the next full search')
  assert.deepEqual(roomier(20 * minute, place(1), later), ['n', 'new'])
  assert.deepEqual(roomier(20 * minute + 1, place(1), later), [])
})

test('what others that waited have kept from being found may be there wherever there is room', () => {
  const roomierAfter = (othersWait: boolean) =>
    ConsolidationMemo.ofFailedSearch(at(0, { othersWait })).unchanged(at(0)).roomier
  assert.deepEqual(roomierAfter(false), new Set())
  assert.equal(roomierAfter(true), undefined)
})

test('with limits, what is out of reach may come within it: any node counts as one with more room', () => {
  const memo = new ConsolidationMemo()
  const limited = [...sold(1)].map(
    ([name, listed]) => [name, { ...listed, pool: poolOf(1, { cpu: '10' }) }] as const,
  )
  const input = at(0, { catalogue: new Map(limited) })
  memo.note(input, memo.unchanged(input), false)
  const { settled, roomier } = memo.unchanged({ ...input, nowMs: 1 })
  assert.deepEqual([[...settled], roomier], [['a'], undefined])
})
