import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConsolidationResult } from '@tenon/engine'
import type { ConsolidationState } from '../../state/nodes/consolidation-state.ts'
import type { StateNode } from '../../state/nodes/state-node.ts'
import { type SearchInput, nothingUnchanged } from './consolidation-memo.ts'
import { seen } from './consolidation-memo.test-support.ts'
import { SearchMemory } from './search-memory.ts'

const minute = 60_000

/** A memory of a cluster whose version, instances and time are set by hand. */
function remembering(kind: ConstructorParameters<typeof SearchMemory>[1]) {
  const now = { version: 1, instances: [] as readonly StateNode[], atMs: 0 }
  const consolidation: Pick<ConsolidationState, 'read'> = { read: () => now.version }
  const memory = new SearchMemory(
    {
      state: { consolidation: consolidation as ConsolidationState, stateNodes: () => now.instances },
      clock: { monotonic: () => now.atMs },
    },
    kind,
  )
  return { memory, now }
}

const budgets = (left: number): ReadonlyMap<string, number> => new Map([['default', left]])
const input: SearchInput = {
  candidates: [],
  budgets: budgets(1),
  catalogue: new Map(),
  nodes: [],
  othersWait: false,
  nowMs: 0,
}
const result = (changes: Partial<ConsolidationResult> = {}): ConsolidationResult => ({
  moves: [],
  findings: [],
  isTimedOut: false,
  isLimitedByBudget: false,
  examined: 0,
  unseenPools: [],
  ...changes,
})

test('after nothing was found there is nothing to look at until something changes', () => {
  const { memory, now } = remembering('global')
  assert.equal(
    memory.isQuiet(() => budgets(1)),
    false,
  )
  memory.nothingFound(result(), memory.now(), input, nothingUnchanged, false)
  assert.equal(
    memory.isQuiet(() => budgets(1)),
    true,
  )
  now.version++
  assert.equal(
    memory.isQuiet(() => budgets(1)),
    false,
  )
})

test('a change while candidates are being read is seen by the next pass', () => {
  const { memory, now } = remembering('global')
  const before = memory.now()
  now.version++
  memory.nothingFound(result(), before, input, nothingUnchanged, false)
  assert.equal(
    memory.isQuiet(() => budgets(1)),
    false,
  )
})

test('where budgets left something out a global search looks again once they leave more or less', () => {
  const { memory, now } = remembering('global')
  memory.nothingFound(result({ isLimitedByBudget: true }), memory.now(), input, nothingUnchanged, false)
  now.instances = []
  now.atMs += 10 * minute
  assert.equal(
    memory.isQuiet(() => budgets(1)),
    true,
  )
  assert.equal(
    memory.isQuiet(() => budgets(2)),
    false,
  )
})

test('others look again after a change of any instance and after a minute, too', () => {
  const limited = result({ isLimitedByBudget: true })
  for (const change of ['instances', 'time', 'budgets'] as const) {
    const { memory, now } = remembering('single')
    memory.nothingFound(limited, memory.now(), input, nothingUnchanged, false)
    assert.equal(
      memory.isQuiet(() => budgets(1)),
      true,
    )
    if (change === 'instances') now.instances = []
    if (change === 'time') now.atMs += minute
    assert.equal(
      memory.isQuiet(() => budgets(change === 'budgets' ? 0 : 1)),
      false,
      change,
    )
    if (change === 'budgets') continue
    // Seen to be the same, it is quiet for another minute.
    assert.equal(memory.isSameAsLimited(input, memory.now()), true)
    assert.equal(
      memory.isQuiet(() => budgets(1)),
      true,
    )
  }
})

test('the more candidates there are the later others look again because of the time, at the latest after 5 minutes', () => {
  for (const [count, quietMs] of [
    [10, minute],
    [600, 2 * minute],
    [10_000, 5 * minute],
  ] as const) {
    const { memory, now } = remembering('multi')
    const candidates = Array.from({ length: count }, (_, index) => seen(`node-${index}`, 'p'))
    const limited = result({ isLimitedByBudget: true })
    memory.nothingFound(limited, memory.now(), { ...input, candidates }, nothingUnchanged, false)
    const isQuiet = () => memory.isQuiet(() => budgets(1))
    now.atMs = quietMs - 1
    assert.equal(isQuiet(), true, `${count} candidates`)
    now.atMs = quietMs
    assert.equal(isQuiet(), false, `${count} candidates`)
  }
})

for (const kind of ['global', 'multi', 'single'] as const)
  test(`a search, ${kind}, is in vain where all is as it was and nothing has more room`, () => {
    const { memory, now } = remembering(kind)
    const then = { ...input, candidates: [seen('a', 'p')] }
    const isInVain = (changes: Partial<typeof then> = {}) => {
      const present = { ...then, ...changes }
      return memory.wouldFindNothing(present, memory.unchanged(present), memory.now())
    }
    assert.equal(isInVain(), false)
    memory.nothingFound(result(), memory.now(), then, memory.unchanged(then), false)
    now.version++
    const roomy = { name: 'node', labels: {}, taints: [], initialized: true, available: { cpu: 1 } }
    assert.equal(isInVain({ nodes: [roomy] }), false)
    assert.equal(isInVain({ candidates: [seen('a', 'q')] }), false)
    assert.equal(isInVain(), true)
    assert.equal(
      memory.isQuiet(() => budgets(1)),
      true,
    )
  })

test('a search for several nodes is not in vain where one of them is missing, one for single nodes is', () => {
  for (const [kind, expected] of [
    ['multi', false],
    ['single', true],
  ] as const) {
    const { memory, now } = remembering(kind)
    const [a, b] = [seen('a', 'p'), seen('b', 'q')]
    const then = { ...input, candidates: [a, b] }
    memory.nothingFound(result(), memory.now(), then, memory.unchanged(then), false)
    now.version++
    const present = { ...then, candidates: [a] }
    assert.equal(memory.wouldFindNothing(present, memory.unchanged(present), memory.now()), expected, kind)
  }
})

test('what was found while other pods waited counts until they have their places', () => {
  const { memory } = remembering('global')
  const calm = { ...input, candidates: [seen('a', 'p')] }
  const waiting = { ...calm, candidates: [...calm.candidates, seen('b', 'q')], othersWait: true }
  const settledIn = (present: typeof calm) => [...memory.unchanged(present).settled]
  const lookIn = (present: typeof calm) => {
    memory.nothingFound(result(), memory.now(), present, memory.unchanged(present), false)
  }
  lookIn(calm)
  assert.deepEqual(settledIn(waiting), ['a'])
  lookIn(waiting)
  assert.deepEqual(settledIn(waiting), ['a', 'b'])
  assert.deepEqual(settledIn({ ...waiting, othersWait: false }), ['a'])
  assert.deepEqual(settledIn(waiting), ['a'])
})

for (const kind of ['global', 'multi', 'single'] as const)
  test(`a search over many nodes, ${kind}, that found nothing is not repeated for a while, whatever has changed`, () => {
    for (const [count, pauseMs] of [
      [1, 25],
      [400, 10_000],
      [5000, 30_000],
    ] as const) {
      const { memory, now } = remembering(kind)
      const candidates = Array.from({ length: count }, (_, at) => seen(`node-${at}`, ''))
      memory.nothingFound(result(), memory.now(), { ...input, candidates }, nothingUnchanged, false)
      now.version++
      const isQuiet = () => memory.isQuiet(() => budgets(1))
      now.atMs = pauseMs - 1
      assert.equal(isQuiet(), true)
      now.atMs = pauseMs
      assert.equal(isQuiet(), false)
    }
  })
