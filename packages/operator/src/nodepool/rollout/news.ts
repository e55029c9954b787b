/** Tells that a rollout is halted or goes on: event, metric, journal. */
import type { NewCondition, NodePool } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Journal } from '../../journal/journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { RolloutRecord } from '../../state/nodepools/rollout-settings.ts'
import { isUnhealthy } from './watch.ts'

interface Dependencies {
  readonly events: EventRecorder
  readonly journal: Pick<Journal, 'note'>
  readonly metrics: Pick<Metrics, 'rolloutsHalted'>
}

export class RolloutNews {
  readonly #deps: Dependencies
  /** Names of NodePools whose rollout was told to be halted. */
  readonly #halted = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param halted condition `RolloutHalted` as it is to be; undefined when the rollout goes on. */
  of(pool: NodePool, halted: NewCondition | undefined, { replacements }: RolloutRecord): void {
    const { events, journal, metrics } = this.#deps
    const { name: nodePool, uid = nodePool } = pool.metadata
    const isHalted = halted !== undefined
    metrics.rolloutsHalted.set({ nodepool: nodePool }, isHalted ? 1 : 0)
    if (isHalted === this.#halted.has(nodePool)) return
    const nodeClaims = replacements.filter(isUnhealthy).map(({ claim }) => claim)
    if (isHalted) {
      this.#halted.add(nodePool)
      const { message = '', reason = 'RolloutHalted' } = halted
      events.record({
        object: pool,
        type: 'Warning',
        reason: 'RolloutHalted',
        message,
        dedupe: [uid, message],
      })
      journal.note({ kind: 'rollout', reason, message, nodePool, nodeClaims })
      return
    }
    this.#halted.delete(nodePool)
    journal.note({
      kind: 'rollout',
      reason: 'Resumed',
      message: 'Drifted nodes are replaced again',
      nodePool,
    })
  }

  /** The NodePool is gone. */
  forget(nodePool: string): void {
    this.#halted.delete(nodePool)
    this.#deps.metrics.rolloutsHalted.remove({ nodepool: nodePool })
  }
}
