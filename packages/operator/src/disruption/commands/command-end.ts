/** How a command goes on and ends: replacements come up, and the claims of its nodes go (disruption.md 15). */
import type { NodeClaim } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { podsOnNode } from '../../state/pods/fresh-pods.ts'
import type { ClaimDeleter } from '../../nodeclaim/lifecycle/delete-claim.ts'
import type { Overtaken } from '../../provisioning/claims/overtaken.ts'
import type { Candidate } from '../candidates.ts'
import { type Command, policyLabel } from './command.ts'
import type { CommandReport } from './command-report.ts'
import type { CommandTraces } from './command-traces.ts'
import { whyNodeStays } from './fresh-look.ts'
import type { PodMoves } from './pod-moves.ts'
import type { DisruptionMarks } from './marks.ts'
import type { Waves } from './waves.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: Pick<KubeClient, 'list'>
  readonly state: Pick<ClusterState, 'buffers' | 'nominations' | 'podsOnNodes'>
  readonly clock: Pick<Clock, 'now'>
  readonly traces: CommandTraces
  readonly moves: Pick<PodMoves, 'moved'>
  readonly marks: DisruptionMarks
  readonly deleter: ClaimDeleter
  readonly report: CommandReport
}

/** A command that has begun. */
export interface UnderWay {
  command: Command
  readonly successors: readonly NodeClaim[]
  /** Names of successors that have an instance. */
  readonly launched: Set<string>
  readonly initialized: Set<string>
  readonly deleted: Set<string>
  /** Whether its nodes were looked at freshly, which is the last thing before they go. */
  isLookedAt: boolean
  readonly sinceMs: number
  readonly waves: Waves
}

export class CommandEnd {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** A replacement is being launched. */
  launching(claim: NodeClaim, { reason }: Command): void {
    this.#deps.report.tell(claim, 'DisruptionLaunching', `Launching NodeClaim: ${reason}`, reason)
  }

  /** A replacement cannot take pods yet. */
  waiting(claim: NodeClaim): void {
    const { report } = this.#deps
    report.tell(claim, 'DisruptionWaitingReadiness', 'Waiting until the replacement can run pods', '')
  }

  /** Why a node stays by what the caches show, or (`fresh`) the API server says; undefined when it goes. */
  async whyStays(
    command: Command,
    candidate: Candidate,
    from: 'cache' | 'fresh',
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { client, clock, state } = this.#deps
    if (command.reason === 'Empty') {
      // Its room may have been taken while the taint was on its way.
      if (state.buffers.keptOn(candidate.providerID).length > 0)
        return 'its room is kept for a CapacityBuffer'
      if (state.nominations.holdOn(candidate.node.metadata.name) !== undefined)
        return 'a pod that is not bound yet is nominated to it'
    }
    const look = { podsOnNodes: state.podsOnNodes, clock }
    if (from === 'cache') return whyNodeStays(look, command, candidate)
    try {
      const pods = await podsOnNode(client, candidate.node.metadata.name, signal)
      return whyNodeStays(look, command, candidate, pods)
    } catch (error) {
      if (!isKubeError(error)) throw error
      return `its pods cannot be listed: ${error.message}`
    }
  }

  /** A node of a command stays. */
  blocked(candidate: Candidate, because: string): void {
    const message = `Disruption is taken back: ${because}`
    for (const object of [candidate.node, candidate.claim])
      this.#deps.report.tell(object, 'DisruptionBlocked', message, because)
  }

  /** Deletes the claims of the nodes that go, unless others have. */
  async finish({ command, deleted, waves }: UnderWay): Promise<boolean> {
    const { deleter, moves, report, traces } = this.#deps
    const { reason, candidates } = command
    // Replacements may have taken long.
    moves.moved(command)
    const outcomes = await Promise.all(
      candidates.map(async ({ claim, node, pool }) => {
        const { name } = claim.metadata
        if (deleted.has(name)) return true
        const current = traces.known(claim)
        if (current !== undefined && current.metadata.deletionTimestamp === undefined) {
          const policy = reason === 'Drifted' ? '' : policyLabel(pool.spec.disruption?.consolidationPolicy)
          try {
            const account = { policy, movedPods: waves.movedFrom(node.metadata.name) }
            if (await deleter.delete(claim, reason.toLowerCase(), undefined, account))
              for (const object of [node, claim])
                report.tell(object, 'DisruptionTerminating', `Disrupting ${object.kind}: ${reason}`, reason)
          } catch (error) {
            report.deletionFailed(name, error)
            return false
          }
        }
        deleted.add(name)
        return true
      }),
    )
    return outcomes.every(Boolean)
  }

  /** Takes the marks of a node off that stays. */
  takeOff({ node, claim }: Candidate): Promise<void> {
    return this.#deps.marks.takeOff(node, claim)
  }

  succeeded(id: string): void {
    this.#deps.report.succeeded(id)
  }

  tookBack(id: string, command: Command, paused: Overtaken): void {
    this.#deps.report.tookBack(id, command, paused)
  }

  gaveUp(id: string, command: Command, outcome: { readonly late: number; readonly because: string }): void {
    this.#deps.report.gaveUp(id, command, outcome)
  }
}
