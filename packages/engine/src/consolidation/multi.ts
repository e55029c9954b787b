/** Multi-node consolidation: removes as many nodes as possible for one new node, or for none (disruption.md 9). */
import { verdictsOn } from './balanced.ts'
import { MoveFinder } from './move.ts'
import type { Consolidation, ConsolidationQuestion, Move, Finding } from './question.ts'
import { type Candidate, bySavings, type WhatIf } from './what-if.ts'
import type { SchedulingControl } from '../scheduling/pace.ts'

/** Size of the largest set that is tried. */
const mostCandidates = 101

export function searchMulti(
  whatIf: WhatIf,
  { budgets, totals, spotToSpot }: ConsolidationQuestion,
  control: SchedulingControl,
): Consolidation {
  const finder = new MoveFinder(whatIf, { spotToSpot, mostClaims: 1, guardSameTypes: true })
  const left = new Map(budgets)
  let isLimitedByBudget = false
  const kept = whatIf.candidates.toSorted(bySavings).filter(({ input }) => {
    const budget = left.get(input.nodePool) ?? 0
    left.set(input.nodePool, budget - 1)
    isLimitedByBudget ||= budget <= 0
    return budget > 0
  })
  const findings: Finding[] = []
  let best: { readonly move: Move; readonly scored: Finding } | undefined
  let lastRejected: Finding | undefined
  let isTimedOut = false
  let low = 2
  let high = Math.min(kept.length, mostCandidates)
  while (low <= high) {
    if (control.shouldStop()) {
      isTimedOut = true
      break
    }
    const size = prefixBetween(low, high)
    const probe = tryPrefix(kept.slice(0, size))
    if (probe === 'undecided') {
      isTimedOut = true
      break
    }
    if (probe === undefined) high = size - 1
    else {
      best = probe
      low = size + 1
    }
  }
  const scored = best?.scored ?? (isTimedOut ? undefined : lastRejected)
  if (scored !== undefined) findings.push(scored)
  return {
    moves: best === undefined ? [] : [best.move],
    findings,
    isTimedOut,
    isLimitedByBudget,
    examined: kept.length,
    unseenPools: [],
  }

  function tryPrefix(prefix: readonly Candidate[]): typeof best | 'undecided' {
    const outcome = whatIf.without(prefix, (simulation) => ({
      ending: 'undo',
      value: finder.judge(prefix, simulation),
    }))
    if (outcome.kind === 'refused') return outcome.refusal.kind === 'undecided' ? 'undecided' : undefined
    const { move } = outcome
    if (move.claims.length > 0)
      findings.push({ kind: 'possible', nodes: move.candidates, replacements: 1, savings: move.savings })
    const verdicts = verdictsOn(
      prefix.map(({ input }) => input),
      move.savings,
      totals,
    )
    const isApproved = verdicts.every((verdict) => verdict.isApproved)
    const scoredMove: Finding = { kind: 'scored', nodes: move.candidates, verdicts, isApproved }
    if (isApproved) return { move, scored: scoredMove }
    lastRejected = scoredMove
    return undefined
  }
}

/** The next size in the binary search, in nodes beyond the first. */
function prefixBetween(low: number, high: number): number {
  return ((low - 1 + high - 1) >> 1) + 1
}
