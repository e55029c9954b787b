/** Begin of a command: taints and conditions on its nodes, and replacement claims (disruption.md 14). */
import type { NodeClaim } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import { type Random, uuid } from '@tenon/runtime'
import { pauseSentence } from '../../state/pause.ts'
import type { RolloutHold } from '../../state/nodepools/canary-rollouts.ts'
import type { Overtaken } from '../../provisioning/overtaken.ts'
import type { Candidate } from '../candidates.ts'
import { type Command, poolsOf, type Replacement } from './command.ts'
import type { CommandReport } from './command-report.ts'
import type { DisruptionMarks } from './marks.ts'
import type { Replacements } from './replacements.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'brake' | 'poolClaims' | 'rollouts'>
  readonly marks: DisruptionMarks
  readonly replacements: Replacements
  readonly report: CommandReport
  readonly random: Random
}

export class CommandStart {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  newId(): string {
    return uuid(this.#deps.random)
  }

  /** The pause of one of its NodePools that stops the command. */
  pausedBy(command: Command): Extract<Overtaken, { readonly kind: 'paused' }> | undefined {
    for (const nodePool of poolsOf(command)) {
      const what = command.reason === 'Unhealthy' ? 'repair' : 'voluntary'
      const pause = this.#deps.state.brake.holding(nodePool, what)
      if (pause !== undefined) return { kind: 'paused', nodePool, because: pauseSentence(pause) }
      const stop = command.reason === 'Drifted' ? this.#stopOf(nodePool) : undefined
      if (stop !== undefined) return { kind: 'paused', nodePool, because: stop.because }
    }
    return undefined
  }

  #stopOf(nodePool: string): RolloutHold | undefined {
    const pool = this.#deps.caches.nodePools.get({ name: nodePool })
    return pool === undefined ? undefined : this.#deps.state.rollouts.canaries.stopOf(pool)
  }

  /** Calls back when something may have been paused. */
  onPause(listener: () => void): void {
    const { brake, rollouts } = this.#deps.state
    brake.changes.add(listener)
    rollouts.canaries.changes.add(listener)
  }

  /** @returns the candidates that were marked: all of them if they go together or are replaced. */
  async mark({ candidates, replacements, reason, isWhole = false }: Command): Promise<readonly Candidate[]> {
    const { caches, marks, state } = this.#deps
    const outcomes = await Promise.allSettled(
      candidates.map(async ({ node, claim, pool }) => {
        await marks.taint(node, true)
        await marks.setReason(claim, reason)
        if (caches.nodePools.get({ name: pool.metadata.name })?.spec.replicas !== undefined)
          state.poolClaims.markPendingDisruption(claim.metadata.name)
      }),
    )
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    const marked = candidates.filter((_, index) => outcomes[index]?.status === 'fulfilled')
    const takesAll = isWhole || replacements.length > 0 || marked.length === 0
    if (failed !== undefined && takesAll) throw failed.reason
    return marked
  }

  /**
   * @param untried replacements whose creation was not tried yet; those that are tried are removed from it.
   * @returns the claims, or why one of them was not created.
   * @throws KubeError.
   */
  async create(
    { replacements, candidates }: Command,
    untried: Set<Replacement>,
    signal: AbortSignal,
  ): Promise<readonly NodeClaim[] | Overtaken> {
    const replaced = candidates.map(({ claim }) => claim)
    const outcomes = await Promise.allSettled(
      replacements.map((replacement) => {
        untried.delete(replacement)
        return replacement.create(replaced, signal)
      }),
    )
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    const results = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    const overtaken = results.find((result) => result.kind !== 'created')
    const isConflict = failed !== undefined && isKubeError(failed.reason, 'conflict')
    // That says nothing about whether its nodes come.
    const isHeld =
      failed === undefined && (overtaken?.kind === 'paused' || overtaken?.kind === 'quotaReached')
    if ((failed ?? overtaken) !== undefined && !signal.aborted && !isConflict && !isHeld)
      this.#deps.replacements.failed(replacements.map(({ nodePool }) => nodePool))
    if (failed !== undefined) throw failed.reason
    return overtaken ?? results.flatMap((result) => (result.kind === 'created' ? [result.claim] : []))
  }

  /** Undoes what was done so far, as well as that goes. */
  async retreat({ candidates }: Command): Promise<void> {
    const { marks, report, state } = this.#deps
    await Promise.all(
      candidates.map(async ({ node, claim }) => {
        state.poolClaims.unmark(claim.metadata.name)
        try {
          await marks.takeOff(node, claim)
        } catch (error) {
          report.marksStay(node, error)
        }
      }),
    )
  }

  /** @param successors claims in place of its nodes. */
  reportBegun(id: string, command: Command, successors: readonly NodeClaim[]): void {
    this.#deps.report.begun(id, command, successors)
  }

  reportOvertaken(command: Command, overtaken: Overtaken): void {
    this.#deps.report.overtaken(command, overtaken)
  }
}
