/** Why each node is still there: its current state, and the verdicts of the last searches. */
import type { ConsolidationRemark, NodeRefusal } from '@tenon/engine'
import { type ClaimOf, refusalText, sentence } from './refusals.ts'

export type ObstacleCause = 'node' | 'annotation' | 'nodePool' | 'pod' | 'podDisruptionBudget'

/**
 * What decides about a node now. `command`: it goes. `failedCommand`: commands came to nothing, and it is not
 * tried again yet. `brake`: disruption is paused. `budget`: no more nodes of its NodePool may go now. `policy`: its NodePool does not want
 * it, or not yet. `pods`: they have no other place. `price`: nothing cheaper serves. `score`: the disruption
 * is not worth it. `possible`: it may go. `unknown`: nobody has looked yet.
 */
export type DecisionCause =
  | ObstacleCause
  | 'command'
  | 'failedCommand'
  | 'brake'
  | 'budget'
  | 'policy'
  | 'pods'
  | 'price'
  | 'score'
  | 'possible'
  | 'unknown'

/** One reason why a node stays. */
export interface NodeObstacle {
  readonly cause: DecisionCause
  readonly message: string
  /** When it ends by itself, RFC 3339; undefined if it does not, or if that is unknown. */
  readonly until?: string
}

export interface NodeDecision {
  /** Name of the Node; undefined until there is one. */
  readonly node?: string
  readonly nodeClaim: string
  readonly nodePool: string
  readonly cause: DecisionCause
  readonly message: string
  readonly until?: string
  /** Further reasons, in order. */
  readonly others?: readonly NodeObstacle[]
  /** When this was decided, RFC 3339. */
  readonly at: string
}

/** A verdict without its node; without a time it is of now. */
export interface Verdict extends NodeObstacle {
  readonly atMs?: number
}

/** The verdicts of searches on nodes; everything else is looked up on demand. */
export class DisruptionAnswers {
  /** Verdicts by name of the node. */
  readonly #verdicts = new Map<string, Verdict>()

  keep(node: string, verdict: Verdict & { readonly atMs: number }): void {
    this.#verdicts.set(node, verdict)
  }

  /**
   * Stores the verdicts of a search on single nodes.
   * @param claimOf name of the claim of an instance.
   */
  keepRemarks(remarks: readonly ConsolidationRemark[], claimOf: ClaimOf, atMs: number): void {
    for (const remark of remarks) {
      if (remark.kind === 'refused') {
        const message = sentence(refusalText(remark.refusal, claimOf))
        this.keep(remark.node, { cause: causeOf(remark.refusal), message, atMs })
      } else if (remark.kind === 'scored' && !remark.isApproved) {
        const message = 'Its savings are not worth the disruption (consolidationPolicy=Balanced)'
        for (const node of remark.nodes) this.keep(node, { cause: 'score', message, atMs })
      }
    }
  }

  verdictOn(node: string): Verdict | undefined {
    return this.#verdicts.get(node)
  }

  /** Forgets all other nodes. */
  retain(names: ReadonlySet<string>): void {
    for (const name of this.#verdicts.keys()) if (!names.has(name)) this.#verdicts.delete(name)
  }
}

function causeOf({ kind }: NodeRefusal): NodeDecision['cause'] {
  if (kind === 'undecided') return 'unknown'
  if (kind === 'busyNodes') return 'policy'
  if (kind === 'budget') return 'budget'
  return kind === 'stranded' || kind === 'severalNodes' ? 'pods' : 'price'
}
