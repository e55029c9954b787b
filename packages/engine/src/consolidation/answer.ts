/** Answers about the removal of nodes, with objects instead of indexes. */
import type { Pod } from '@tenon/api'
import type { FinishedClaim } from '../scheduling/claims/finished-claims.ts'
import { isRoom, newClaim } from '../scheduling/claims/finished-claims.ts'
import type { PodReason } from '../reasons/reasons.ts'
import type { SchedulingInput } from '../input/input.ts'
import type { Failure, NewClaim, Placement } from '../input/result.ts'
import type {
  Consolidation,
  DisruptionAnswer,
  DisruptionQuestion,
  Move,
  Refusal,
  Finding,
  Removal,
} from './question.ts'

/** Where pods go when some nodes are removed. */
export interface RemovalResult {
  readonly claims: readonly NewClaim[]
  /** The claims that hold pods of removed nodes; the other claims are for pods that are pending anyway. */
  readonly replacements: readonly NewClaim[]
  readonly placements: readonly Placement[]
  /** Pods that run now and would not fit anywhere. */
  readonly stranded: readonly Failure[]
  /** False when the simulation ended early, as its time was over. */
  readonly isComplete: boolean
}

/** Nodes to remove, and their replacements. */
export interface PlannedMove extends Pick<RemovalResult, 'claims' | 'placements'> {
  /** Names of the removed nodes. */
  readonly candidates: readonly string[]
  /** Estimated, per hour. */
  readonly savings: number
  /** The order in which the pods must move so that all fit; absent when any order does. */
  readonly waves?: readonly (readonly Pod[])[]
}

/** Why a node stays. */
export type NodeRefusal =
  | Exclude<Refusal, { kind: 'stranded' }>
  | { readonly kind: 'stranded'; readonly pods: readonly Failure[] }

export type ConsolidationFinding =
  | Exclude<Finding, { kind: 'refused' }>
  | { readonly kind: 'refused'; readonly node: string; readonly refusal: NodeRefusal }

/** The result of a search for consolidation. */
export interface ConsolidationResult extends Omit<Consolidation, 'moves' | 'findings'> {
  readonly moves: readonly PlannedMove[]
  readonly findings: readonly ConsolidationFinding[]
}

export type DisruptionResult =
  | ({ readonly kind: 'removal' } & RemovalResult)
  | ({ readonly kind: 'consolidation' } & ConsolidationResult)

/**
 * @param input what the problem was made from.
 * @param question what was answered.
 */
export function disruptionResult(
  input: SchedulingInput,
  question: DisruptionQuestion,
  answer: DisruptionAnswer,
): DisruptionResult {
  const { pods, nodes, origins } = input
  const claimsOf = (claims: readonly FinishedClaim[]): readonly NewClaim[] =>
    claims.flatMap((claim) => newClaim(input, claim) ?? [])
  const placementsOf = (pairs: Int32Array): readonly Placement[] =>
    Array.from({ length: pairs.length / 2 }, (_, i) => i).flatMap((i) => {
      const pod = pods[pairs[2 * i] as number]
      const node = nodes[pairs[2 * i + 1] as number]?.name
      // Placeholder pods do not move: the next scheduling pass places them anew.
      return pod === undefined || node === undefined || isRoom(pod, origins) ? [] : [{ pod, node }]
    })
  const failuresOf = (reasons: ReadonlyMap<number, PodReason>): readonly Failure[] =>
    [...reasons].flatMap(([index, reason]) => {
      const pod = pods[index]
      return pod === undefined ? [] : [{ pod, reason }]
    })
  const planned = ({ claims, placements }: Pick<Removal, 'claims' | 'placements'>) => ({
    claims: claimsOf(claims),
    placements: placementsOf(placements),
  })
  if (answer.kind === 'removal') {
    const { removal } = answer
    const { claims, placements } = planned(removal)
    return {
      kind: 'removal',
      claims,
      replacements: claims.filter(holdsAny(movingPods(question))),
      placements,
      stranded: failuresOf(removal.stranded),
      isComplete: removal.isComplete,
    }
  }
  const { moves, findings, ...rest } = answer
  return {
    ...rest,
    moves: moves.map(({ waves, ...move }: Move) => ({
      ...move,
      ...planned(move),
      ...(waves && { waves: waves.map((wave) => wave.flatMap((pod) => pods[pod] ?? [])) }),
    })),
    findings: findings.map((finding): ConsolidationFinding => {
      if (finding.kind !== 'refused') return finding
      const { node, refusal } = finding
      return {
        kind: 'refused',
        node,
        refusal: refusal.kind === 'stranded' ? { ...refusal, pods: failuresOf(refusal.pods) } : refusal,
      }
    }),
  }
}

/** UIDs of the pods on the nodes that a question is about. */
function movingPods(question: DisruptionQuestion): ReadonlySet<string> {
  const gone = question.kind === 'remove' ? new Set(question.gone) : undefined
  const nodes = question.candidates.filter(({ node }) => gone?.has(node) ?? true)
  return new Set(nodes.flatMap(({ pods }) => pods))
}

function holdsAny(uids: ReadonlySet<string>): (claim: NewClaim) => boolean {
  return ({ pods }) => pods.some(({ metadata }) => uids.has(metadata.uid ?? ''))
}
