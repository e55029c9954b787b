/** A solution on its way back from the thread that decided. */
import type { PodReason, Solution } from '@tenon/engine'
import { type Assembly, type Part, partsOf, type PieceSize, Shared } from './parts.ts'

type Claim = Solution['claims'][number]

/** What claims of one kind have in common, by far the most of them. */
type Frame = Pick<Claim, 'labels' | 'requirements' | 'instanceTypes'>

/** A solution in which everything large that repeats is named by its index. */
interface SolutionRecord extends Omit<Solution, 'claims' | 'failures'> {
  readonly claims: readonly (Omit<Claim, keyof Frame> & { readonly [Key in keyof Frame]: number })[]
  readonly shared: readonly unknown[]
  readonly failures: ReadonlyMap<number, number>
  readonly reasons: readonly PodReason[]
}

export function solutionParts(solution: Solution, size: PieceSize): Generator<Part, void, undefined> {
  const shared = new Shared<unknown>()
  const reasons = new Shared<PodReason>()
  const record: SolutionRecord = {
    ...solution,
    claims: solution.claims.map((claim) => ({
      ...claim,
      labels: shared.indexOf(claim.labels),
      requirements: shared.indexOf(claim.requirements),
      instanceTypes: shared.indexOf(claim.instanceTypes),
    })),
    shared: shared.items,
    failures: new Map(Array.from(solution.failures, ([pod, reason]) => [pod, reasons.indexOf(reason)])),
    reasons: reasons.items,
  }
  return partsOf(record, size)
}

/** The solution, from all of its parts. */
export function solutionFrom(assembly: Assembly): Solution {
  const { shared, reasons, ...record } = assembly.record() as SolutionRecord
  const common = (index: number) => shared[index] as never
  return {
    ...record,
    claims: record.claims.map(({ labels, requirements, instanceTypes, ...claim }) => ({
      ...claim,
      labels: common(labels),
      requirements: common(requirements),
      instanceTypes: common(instanceTypes),
    })),
    failures: new Map(Array.from(record.failures, ([pod, reason]) => [pod, reasons[reason] as PodReason])),
  }
}
