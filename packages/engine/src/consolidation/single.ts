/** Single-node consolidation: removes one node, or replaces it by a cheaper one (disruption.md 12). */
import { mayBeApproved, verdictsOn } from './balanced.ts'
import { affectedCandidates } from './affected-candidates.ts'
import { MoveFinder } from './move.ts'
import type { Consolidation, ConsolidationQuestion, Finding } from './question.ts'
import { type Candidate, bySavings, type WhatIf } from './what-if.ts'
import type { SchedulingControl } from '../scheduling/pace.ts'

export function searchSingle(
  whatIf: WhatIf,
  question: ConsolidationQuestion,
  control: SchedulingControl,
): Consolidation {
  const { budgets, totals, spotToSpot, unseenPools, unchanged, roomier } = question
  const concerned = new Set(affectedCandidates(whatIf, question))
  const isSettled = (candidate: Candidate) =>
    roomier !== undefined && unchanged?.has(candidate.input.node) === true && !concerned.has(candidate)
  const finder = new MoveFinder(whatIf, { spotToSpot, mostClaims: 1, guardSameTypes: false })
  const findings: Finding[] = []
  const queue = interleaved(whatIf.candidates.toSorted(bySavings), unseenPools)
  const unseen = new Set(queue.map(({ input }) => input.nodePool))
  let isLimitedByBudget = false
  let examined = 0
  const ending = (rest: Pick<Consolidation, 'moves' | 'isTimedOut' | 'unseenPools'>): Consolidation => ({
    findings,
    isLimitedByBudget,
    examined,
    ...rest,
  })
  for (const candidate of queue) {
    if (control.shouldStop()) return ending({ moves: [], isTimedOut: true, unseenPools: [...unseen] })
    const { input } = candidate
    unseen.delete(input.nodePool)
    if ((budgets.get(input.nodePool) ?? 0) <= 0) {
      isLimitedByBudget = true
      continue
    }
    if (isSettled(candidate)) continue
    examined++
    if (!mayBeApproved(input, totals)) continue
    const outcome = whatIf.without([candidate], (simulation) => ({
      ending: 'undo',
      value: finder.judge([candidate], simulation),
    }))
    if (outcome.kind === 'refused') {
      if (outcome.refusal.kind === 'undecided')
        return ending({ moves: [], isTimedOut: true, unseenPools: [...unseen] })
      findings.push({ kind: 'refused', node: input.node, refusal: outcome.refusal })
      continue
    }
    const { move } = outcome
    if (move.claims.length > 0)
      findings.push({ kind: 'possible', nodes: [input.node], replacements: 1, savings: move.savings })
    const verdicts = verdictsOn([input], move.savings, totals)
    const isApproved = verdicts.every((verdict) => verdict.isApproved)
    findings.push({ kind: 'scored', nodes: [input.node], verdicts, isApproved })
    if (isApproved) return ending({ moves: [move], isTimedOut: false, unseenPools: [...unseenPools] })
  }
  return ending({ moves: [], isTimedOut: false, unseenPools: [] })
}

/** Reports for each of these nodes whether it could be removed or replaced by itself. */
export function survey(
  whatIf: WhatIf,
  { spotToSpot }: ConsolidationQuestion,
  control: SchedulingControl,
  candidates: readonly Candidate[] = whatIf.candidates,
): Consolidation {
  const finder = new MoveFinder(whatIf, { spotToSpot, mostClaims: 1, guardSameTypes: false })
  const findings: Finding[] = []
  for (const candidate of candidates.toSorted(bySavings)) {
    if (control.shouldStop()) break
    const { node } = candidate.input
    const outcome = whatIf.without([candidate], (simulation) => ({
      ending: 'undo',
      value: finder.judge([candidate], simulation),
    }))
    if (outcome.kind === 'refused') findings.push({ kind: 'refused', node, refusal: outcome.refusal })
    else {
      const { claims, savings } = outcome.move
      findings.push({ kind: 'possible', nodes: [node], replacements: claims.length, savings })
    }
  }
  const isTimedOut = findings.length < candidates.length
  return {
    moves: [],
    findings,
    isTimedOut,
    isLimitedByBudget: false,
    examined: findings.length,
    unseenPools: [],
  }
}

/** The first candidate of each NodePool, then the second of each; NodePools that the last search did not reach come first. */
function interleaved(sorted: readonly Candidate[], unseenPools: readonly string[]): readonly Candidate[] {
  const pools = [...Map.groupBy(sorted, ({ input }) => input.nodePool)].toSorted(([a], [b]) => {
    const rank = (name: string) => (unseenPools.includes(name) ? 0 : 1)
    return rank(a) - rank(b) || (a < b ? -1 : 1)
  })
  const longest = Math.max(0, ...pools.map(([, members]) => members.length))
  return Array.from({ length: longest }, (_, round) =>
    pools.flatMap(([, members]) => members[round] ?? []),
  ).flat()
}
