/** Consolidates sets of nodes with members of one pod group, which can only be removed as a whole (gangs.md 7.5). */
import type { NodeRefusal } from './answer.ts'
import { verdictsOn } from './balanced.ts'
import { MoveFinder, priceOf } from './move.ts'
import type { Consolidation, ConsolidationQuestion, Move, Finding } from './question.ts'
import type { Candidate, WhatIf } from './what-if.ts'
import type { SchedulingControl } from '../scheduling/pace.ts'

/** Tries the sets one by one, those with the highest price per disruption cost first. */
export function searchTogether(
  whatIf: WhatIf,
  question: ConsolidationQuestion,
  control: SchedulingControl,
): Consolidation {
  const { spotToSpot, totals } = question
  const findings: Finding[] = []
  let isLimitedByBudget = false
  let examined = 0
  let isTimedOut = false
  const found = whatIf.trial(() => {
    // Nodes for pending pods are launched anyway, so they are not part of a move.
    whatIf.without([], () => ({ ending: 'keep', value: undefined }))
    for (const set of setsOf(whatIf, question)) {
      isTimedOut = control.shouldStop()
      if (isTimedOut) return undefined
      const overdrawn = overdrawnBudget(
        set.map(({ input }) => input.nodePool),
        question.budgets,
      )
      if (overdrawn !== undefined) {
        isLimitedByBudget = true
        for (const { input } of set) findings.push({ kind: 'refused', node: input.node, refusal: overdrawn })
        continue
      }
      examined += set.length
      const move = moveOf(set)
      if (move === 'undecided') {
        isTimedOut = true
        return undefined
      }
      if (move !== undefined) return move
    }
    return undefined
  })
  return {
    moves: found === undefined ? [] : [found],
    findings,
    isTimedOut,
    isLimitedByBudget,
    examined,
    unseenPools: [],
  }

  function moveOf(set: readonly Candidate[]): Move | 'undecided' | undefined {
    // Cheaper nodes may be smaller and more numerous. The same types are allowed: keeping an old node instead of launching
    // its type again would leave the group with fewer members than it needs.
    const mostClaims = Math.max(
      1,
      set.reduce((sum, { pods }) => sum + pods.length, 0),
    )
    const finder = new MoveFinder(whatIf, { spotToSpot, mostClaims, guardSameTypes: false })
    const outcome = whatIf.without(set, (simulation) => ({
      ending: 'undo',
      value: finder.judge(set, simulation),
    }))
    if (outcome.kind === 'refused') {
      const { refusal } = outcome
      if (refusal.kind === 'undecided') return 'undecided'
      for (const { input } of set) findings.push({ kind: 'refused', node: input.node, refusal })
      return undefined
    }
    const { move } = outcome
    const { candidates: nodes, claims, savings } = move
    findings.push({ kind: 'possible', nodes, replacements: claims.length, savings })
    const inputs = set.map(({ input }) => input)
    const verdicts = verdictsOn(inputs, savings, totals)
    const isApproved = verdicts.every((verdict) => verdict.isApproved)
    findings.push({ kind: 'scored', nodes, verdicts, isApproved })
    return isApproved ? move : undefined
  }
}

/** The sets whose nodes are all candidates. */
function setsOf(whatIf: WhatIf, { together = [] }: ConsolidationQuestion): readonly (readonly Candidate[])[] {
  const known = new Map(whatIf.candidates.map((candidate) => [candidate.input.node, candidate]))
  const sets = together.flatMap((names) => {
    const set = names.toSorted().flatMap((name) => known.get(name) ?? [])
    return set.length === names.length && set.length > 0 ? [set] : []
  })
  const ratioOf = (set: readonly Candidate[]) =>
    priceOf(set) / set.reduce((sum, { input }) => sum + input.disruptionCost, 0)
  const nameOf = ([first]: readonly Candidate[]) => first?.input.node ?? ''
  return sets.toSorted((a, b) => ratioOf(b) - ratioOf(a) || (nameOf(a) < nameOf(b) ? -1 : 1))
}

/**
 * The refusal for the first NodePool whose budget allows fewer nodes than the set has; undefined when budgets allow all.
 * @param nodePools the NodePool of each node.
 * @param budgets how many more nodes may be disrupted, by NodePool; 0 for pools that are not listed.
 */
export function overdrawnBudget(
  nodePools: readonly string[],
  budgets: ReadonlyMap<string, number>,
): Extract<NodeRefusal, { readonly kind: 'budget' }> | undefined {
  for (const [nodePool, nodes] of Map.groupBy(nodePools, (name) => name)) {
    const allowed = budgets.get(nodePool) ?? 0
    if (nodes.length > allowed) return { kind: 'budget', nodePool, nodes: nodes.length, allowed }
  }
  return undefined
}
