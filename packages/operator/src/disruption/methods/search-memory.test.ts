import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConsolidationResult } from '@tenon/engine'
import type { ConsolidationState } from '../../cluster/nodes/consolidation-state.ts'
import type { StateNode } from '../../cluster/nodes/state-node.ts'
import { nothingUnchanged } from './looked-at.ts'
import { seen } from './looked-at.test-support.ts'
import { SearchMemory } from './search-memory.ts'

const minute = 60_000

/** A memory of a cluster whose version, instances and time are set by hand. */
function remembering(isGlobal: boolean) {
  const now = { version: 1, instances: [] as readonly StateNode[], atMs: 0 }
  const consolidation: Pick<ConsolidationState, 'read'> = { read: () => now.version }
  const memory = new SearchMemory(
    {
      state: { consolidation: consolidation as ConsolidationState, stateNodes: () => now.instances },
      clock: { monotonic: () => now.atMs },
    },
    isGlobal,
  )
  return { memory, now }
}

const budgets = (left: number): ReadonlyMap<string, number> => new Map([['default', left]])
const circumstances = { candidates: [], budgets: budgets(1), catalogue: new Map(), nodes: [], nowMs: 0 }
const result = (changes: Partial<ConsolidationResult> = {}): ConsolidationResult => ({
  moves: [],
  remarks: [],
  isTimedOut: false,
  isLimitedByBudget: false,
  examined: 0,
  unseenPools: [],
  ...changes,
})

test('after nothing was found there is nothing to look at until something changes', () => {
  const { memory, now } = remembering(true)
  assert.equal(
    memory.isQuiet(() => budgets(1)),
    false,
  )
  memory.nothingFound(result(), memory.now(), circumstances, nothingUnchanged, false)
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

test('what changes while candidates are being read is looked at in the next pass', () => {
  const { memory, now } = remembering(true)
  const before = memory.now()
  now.version++
  memory.nothingFound(result(), before, circumstances, nothingUnchanged, false)
  assert.equal(
    memory.isQuiet(() => budgets(1)),
    false,
  )
})

test('where budgets left something out a global search looks again once they leave more or less', () => {
  const { memory, now } = remembering(true)
  memory.nothingFound(
    result({ isLimitedByBudget: true }),
    memory.now(),
    circumstances,
    nothingUnchanged,
    false,
  )
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
    const { memory, now } = remembering(false)
    memory.nothingFound(limited, memory.now(), circumstances, nothingUnchanged, false)
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
    assert.equal(memory.isKnown(circumstances, memory.now()), true)
    assert.equal(
      memory.isQuiet(() => budgets(1)),
      true,
    )
  }
})

test('a global search is in vain where all is as it was and nothing has more room', () => {
  const { memory, now } = remembering(true)
  const unchanged = { unchanged: new Set<string>(), settled: new Set<string>(), roomier: new Set<string>() }
  assert.equal(memory.isInVain(circumstances, unchanged, memory.now()), false)
  memory.nothingFound(result(), memory.now(), circumstances, nothingUnchanged, false)
  now.version++
  const roomy = { ...unchanged, roomier: new Set(['node']) }
  assert.equal(memory.isInVain(circumstances, roomy, memory.now()), false)
  assert.equal(memory.isInVain(circumstances, nothingUnchanged, memory.now()), false)
  assert.equal(memory.isInVain(circumstances, unchanged, memory.now()), true)
  assert.equal(
    memory.isQuiet(() => budgets(1)),
    true,
  )
})

test('a search over many nodes that found nothing is not repeated for a while, whatever has changed', () => {
  for (const [count, pauseMs] of [
    [1, 25],
    [400, 10_000],
    [5000, 30_000],
  ] as const) {
    const { memory, now } = remembering(true)
    const candidates = Array.from({ length: count }, (_, at) => seen(`node-${at}`, ''))
    memory.nothingFound(result(), memory.now(), { ...circumstances, candidates }, nothingUnchanged, false)
    now.version++
    const isQuiet = () => memory.isQuiet(() => budgets(1))
    now.atMs = pauseMs - 1
    assert.equal(isQuiet(), true)
    now.atMs = pauseMs
    assert.equal(isQuiet(), false)
  }
})
