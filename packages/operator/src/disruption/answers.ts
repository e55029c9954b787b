/** Why each node is still there: its current state, and the verdicts of the last searches. */
import type { ConsolidationFinding, NodeRefusal } from '@tenon/engine'
import { type ClaimOf, refusalText, sentence } from './refusals.ts'

export type ObstacleCause = 'node' | 'annotation' | 'nodePool' | 'pod' | 'podDisruptionBudget'

/**
 * What decides about a node now. `command`: it is being disrupted. `failedCommand`: a command failed, and it is in back-off.
 * `brake`: disruption is paused. `budget`: no more nodes of its NodePool may be disrupted now. `policy`: its NodePool does
 * not allow it, or not yet. `repair`: it is unhealthy, and that has its own end. `pods`: they fit nowhere else. `price`: nothing cheaper would do. `score`: the savings are not
 * worth the disruption. `possible`: it may be disrupted. `unknown`: it has not been evaluated yet.
 */
export type DecisionCause =
  | ObstacleCause
  | 'command'
  | 'failedCommand'
  | 'brake'
  | 'budget'
  | 'policy'
  | 'repair'
  | 'pods'
  | 'price'
  | 'score'
  | 'possible'
  | 'unknown'

/** Why a node stays until somebody changes a PDB or its workload (wanted.md 3). */
export type StuckReason = 'never_allows' | 'several_budgets'

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
  /** Set if only PDBs hold the node that can never allow an eviction, whatever budgets of its NodePool say. */
  readonly stuck?: StuckReason
  /** When this was decided, RFC 3339. */
  readonly at: string
}

/** A verdict on a node; without a time it is the current one. */
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
  keepFindings(findings: readonly ConsolidationFinding[], claimOf: ClaimOf, atMs: number): void {
    for (const finding of findings) {
      if (finding.kind === 'refused') {
        const message = sentence(refusalText(finding.refusal, claimOf))
        this.keep(finding.node, { cause: causeOf(finding.refusal), message, atMs })
      } else if (finding.kind === 'scored' && !finding.isApproved) {
        const message = 'Its savings are not worth the disruption (consolidationPolicy=Balanced)'
        for (const node of finding.nodes) this.keep(node, { cause: 'score', message, atMs })
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
