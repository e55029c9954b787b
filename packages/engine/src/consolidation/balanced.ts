/** The consolidation policy Balanced: whether a move is worth its disruption (disruption.md 12). */
import type { CandidateInput, PoolTotals, Verdict } from './question.ts'

/** The least ratio of a move's savings fraction to its disruption fraction. */
export const balancedThreshold = 0.5

/** The verdict of each NodePool with a node in the move. */
export function verdictsOn(
  candidates: readonly CandidateInput[],
  savings: number,
  totals: ReadonlyMap<string, PoolTotals>,
): readonly Verdict[] {
  const pools = Map.groupBy(candidates, ({ nodePool }) => nodePool)
  const price = sumOf(candidates, knownPrice)
  return [...pools].map(([nodePool, members]) => {
    const share = pools.size === 1 || price === 0 ? 1 : sumOf(members, knownPrice) / price
    const disruption = sumOf(members, ({ disruptionCost }) => disruptionCost)
    const fractions = fractionsOf(savings * share, disruption, totals.get(nodePool))
    const score = scoreOf(fractions)
    const policy = members[0]?.policy ?? 'WhenEmptyOrUnderutilized'
    return {
      nodePool,
      policy,
      score,
      ...fractions,
      isApproved: policy !== 'Balanced' || score >= balancedThreshold,
    }
  })
}

/**
 * Whether the policy would approve the removal of the node without a replacement. If not, it approves no move
 * of the node. A node of unknown price counts as saving nothing.
 */
export function mayBeApproved(candidate: CandidateInput, totals: ReadonlyMap<string, PoolTotals>): boolean {
  const total = totals.get(candidate.nodePool)
  if (candidate.policy !== 'Balanced' || total === undefined || total.cost <= 0) return true
  return scoreOf(fractionsOf(knownPrice(candidate), candidate.disruptionCost, total)) >= balancedThreshold
}

type Fractions = Pick<Verdict, 'savingsFraction' | 'disruptionFraction'>

function fractionsOf(savings: number, disruption: number, total: PoolTotals | undefined): Fractions {
  if (total === undefined || total.cost <= 0 || total.disruption <= 0)
    return { savingsFraction: 0, disruptionFraction: 0 }
  return { savingsFraction: savings / total.cost, disruptionFraction: disruption / total.disruption }
}

function scoreOf({ savingsFraction, disruptionFraction }: Fractions): number {
  if (savingsFraction <= 0) return 0
  return disruptionFraction === 0 ? Number.POSITIVE_INFINITY : savingsFraction / disruptionFraction
}

/** What its removal saves at least. */
const knownPrice = ({ pricePerHour }: CandidateInput): number => pricePerHour ?? 0

function sumOf<T>(items: readonly T[], amount: (item: T) => number): number {
  return items.reduce((sum, item) => sum + amount(item), 0)
}
