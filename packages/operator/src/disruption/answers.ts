/** Why each node is still there, for whoever asks: what is known, and what searches said last. */
import type { ConsolidationRemark, NodeRefusal } from '@tenon/engine'
import { type ClaimOf, refusalText, sentence } from './refusals.ts'

/** What keeps a node from being touched at all. */
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

/** One thing that keeps a node where it is. */
export interface NodeObstacle {
  readonly cause: DecisionCause
  readonly message: string
  /** When it ends by itself, RFC 3339; absent when it does not, or nobody knows. */
  readonly until?: string
}

/** The answer for one node. */
export interface NodeDecision {
  /** Name of the Node; absent until there is one. */
  readonly node?: string
  readonly nodeClaim: string
  readonly nodePool: string
  readonly cause: DecisionCause
  readonly message: string
  readonly until?: string
  /** What else is in its way, in the order in which it would count. */
  readonly others?: readonly NodeObstacle[]
  /** When this was found out, RFC 3339. */
  readonly at: string
}

/** An answer without the node it is about; found out just now when there is no time. */
export interface Verdict extends NodeObstacle {
  readonly atMs?: number
}

/** Keeps what searches said of nodes; everything else is looked up when somebody asks. */
export class DisruptionAnswers {
  /** By name of the node. */
  readonly #verdicts = new Map<string, Verdict>()

  keep(node: string, verdict: Verdict & { readonly atMs: number }): void {
    this.#verdicts.set(node, verdict)
  }

  /**
   * Keeps what a search for consolidation said of single nodes.
   * @param claimOf names the claims of instances.
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

  /** Forgets nodes that are not among these. */
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
