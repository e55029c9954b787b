/** `disruption`, method Emptiness: removes nodes that hold no pod (disruption.md 8, 13). */
import type { Logger } from '@tenon/runtime'
import { savingsOrder } from '@tenon/engine/consolidation'
import { type Candidate, isEmpty } from '../candidates.ts'
import { consolidateAfterMs } from '../../state/nodepools/managed-pool.ts'
import type { StateNode } from '../../state/nodes/state-node.ts'
import type { BufferPods } from '../../state/pods/buffer-pods.ts'
import type { DisruptionMethod, Pass, PassOutcome } from './method.ts'
import { type ConsolidationPolicy, keptRoomText } from '../policy.ts'
import type { DisruptionReport } from '../report.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'buffers' | 'decidable' | 'isNominated' | 'nominations' | 'podsOnNodes'>
  readonly policy: ConsolidationPolicy
  readonly report: DisruptionReport
  readonly logger: Logger
}

/** Memo of empty nodes, with what it was made of. */
interface Found {
  readonly all: readonly StateNode[]
  /** Version of the pods on nodes. */
  readonly version: number
  readonly kept: ReturnType<BufferPods['kept']>
  readonly concerned: readonly StateNode[]
}

const reason = 'Empty'
const type = 'empty'

export class Emptiness implements DisruptionMethod {
  readonly reason = reason
  readonly type = type
  readonly disruptionClass = 'graceful'
  readonly #deps: Dependencies
  /** The last memo: from pass to pass most nodes hold pods. */
  #found: Found | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  among(all: readonly StateNode[]): readonly StateNode[] {
    const { buffers, podsOnNodes } = this.#deps.state
    const { version } = podsOnNodes
    const kept = buffers.kept()
    const found = this.#found
    if (found?.all === all && found.version === version && found.kept === kept) return found.concerned
    const concerned = all.filter((stateNode) => this.concerns(stateNode))
    this.#found = { all, version, kept, concerned }
    return concerned
  }

  concerns({ node, providerID }: StateNode): boolean {
    const { buffers, podsOnNodes } = this.#deps.state
    if (node === undefined) return false
    return podsOnNodes.of(node.metadata.name).isEmpty || buffers.keptOn(providerID).length > 0
  }

  accepts(candidate: Candidate): boolean {
    const { pool } = candidate
    if (pool.spec.replicas !== undefined) return false
    if (!Number.isFinite(consolidateAfterMs(pool))) {
      this.#deps.report.unconsolidatable(
        candidate,
        `consolidation is disabled (NodePool=${pool.metadata.name})`,
      )
      return false
    }
    const { buffers } = this.#deps.state
    const room = buffers.keptOn(candidate.providerID)
    if (room.length > 0) {
      this.#deps.report.unconsolidatable(candidate, keptRoomText(room))
      return false
    }
    // The node may be the one that has room for pending pods.
    if (buffers.isUndecided || buffers.isAwaited(candidate.claim.metadata.name)) return false
    return isEmpty(candidate) && this.#deps.policy.isAtRest(candidate)
  }

  async pass({ budgets, candidates, delay, find, begin }: Pass): Promise<PassOutcome> {
    const { state, report, logger } = this.#deps
    const proposed = new Set(this.#within(budgets(), candidates).map(({ providerID }) => providerID))
    if (proposed.size === 0) return 'nothing'
    await delay()
    if (!state.decidable()) return 'nothing'
    const left = (await find()).filter(({ providerID }) => proposed.has(providerID))
    const accepted = this.#within(budgets(), left)
    if (accepted.length < proposed.size) report.unvalidated(type, proposed.size - accepted.length)
    if (accepted.length === 0) {
      logger.debug('gave up removing empty nodes', { because: left.length === 0 ? 'churn' : 'budget' })
      return 'nothing'
    }
    const overtaken = await begin({
      reason,
      type,
      candidates: accepted,
      replacements: [],
      destinations: [],
    })
    return overtaken === undefined ? 'begun' : 'again'
  }

  /** Takes candidates as long as the budget of their NodePool allows. */
  #within(budgets: ReadonlyMap<string, number>, empty: readonly Candidate[]): readonly Candidate[] {
    const remaining = new Map(budgets)
    const inOrder = empty.toSorted((a, b) => savingsOrder(a, b) || (a.name < b.name ? -1 : 1))
    return inOrder.filter(({ pool, providerID }) => {
      if (this.#deps.state.isNominated(providerID)) return false
      const left = remaining.get(pool.metadata.name) ?? 0
      remaining.set(pool.metadata.name, left - 1)
      return left > 0
    })
  }
}
