/** Progress and end of a command: replacements become ready, then the claims of its nodes are deleted (disruption.md 15). */
import { isConditionTrue, type NodeClaim, type Pod } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { Clock, Span } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { keyOf, podsOnNode } from '../../state/pods/pods.ts'
import type { ClaimDeleter } from '../../nodeclaim/lifecycle/delete-claim.ts'
import type { Overtaken } from '../../provisioning/overtaken.ts'
import { type Candidate, endsByItself } from '../candidates.ts'
import { type Command, policyLabel, poolsOf } from './command.ts'
import type { CommandReport } from './command-report.ts'
import type { DisruptionMarks } from './marks.ts'
import { Waves } from './waves.ts'
import type { PodsOnNodes } from '../../state/pods/pods-to-move.ts'
import { podObstacles } from '../obstacles.ts'
import { type Caches, indexes } from '../../state/caches.ts'
import { policyOf, type Settings } from '../../settings.ts'
import type { EvictionQueue } from '../../node/termination/eviction-queue.ts'

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
  /** Whether the pods of its nodes were read from the API server, the last check before deletion. */
  isVerified: boolean
  readonly sinceMs: number
  readonly waves: Waves
  /** Its span, and that of its step; undefined if nothing is traced. */
  readonly span: Span | undefined
  step: Span | undefined
}

export class CommandEnd {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  launching(claim: NodeClaim, { reason }: Command): void {
    this.#deps.report.record(claim, 'DisruptionLaunching', `Launching NodeClaim: ${reason}`, reason)
  }

  waiting(claim: NodeClaim): void {
    const { report } = this.#deps
    report.record(claim, 'DisruptionWaitingReadiness', 'Waiting until the replacement can run pods', '')
  }

  /** Why a node must stay, by the caches or (`fresh`) by the API server; undefined if it may go. */
  async whyStays(
    command: Command,
    candidate: Candidate,
    from: 'cache' | 'fresh',
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { client, clock, state } = this.#deps
    if (command.terms !== undefined) return await command.terms.whyStays(candidate, from, signal)
    if (command.reason === 'Empty') {
      // A pod may have been bound while the taint was being written.
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

  blocked(candidate: Candidate, because: string): void {
    const message = `Disruption is taken back: ${because}`
    for (const object of [candidate.node, candidate.claim])
      this.#deps.report.record(object, 'DisruptionBlocked', message, because)
  }

  /** Deletes the claims of the nodes. @returns whether all are deleted. */
  async finish({ command, deleted, waves }: UnderWay): Promise<boolean> {
    const { deleter, moves, report, traces } = this.#deps
    const { reason, candidates } = command
    // Replacements may have taken minutes.
    moves.moved(command)
    const outcomes = await Promise.all(
      candidates.map(async (candidate) => {
        const { claim, node, pool } = candidate
        const { name } = claim.metadata
        if (deleted.has(name)) return true
        const current = traces.known(claim)
        if (current !== undefined && current.metadata.deletionTimestamp === undefined) {
          const isByPolicy = reason === 'Empty' || reason === 'Underutilized'
          const policy = isByPolicy ? policyLabel(pool.spec.disruption?.consolidationPolicy) : ''
          try {
            const account = { policy, movedPods: waves.movedFrom(node.metadata.name) }
            if (await deleter.delete(claim, reason.toLowerCase(), undefined, account)) {
              command.terms?.deleted(candidate)
              for (const object of [node, claim])
                report.record(object, 'DisruptionTerminating', `Disrupting ${object.kind}: ${reason}`, reason)
            }
            // The API server does not know the claim, the cache does: its node may well stay.
            else if (!traces.isDeletionKnown(claim)) traces.released([candidate])
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

  /** Removes the taint of a node that stays. */
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

/**
 * Why a node of a command must stay: a pod is protected, or came after the decision, which has no place for it. A
 * PodDisruptionBudget that holds a pod of the decision does not count: the drain waits for it.
 * @param pods the pods on the node; default: those that the cache shows.
 */
function whyNodeStays(
  { podsOnNodes, clock }: { readonly podsOnNodes: PodsOnNodes; readonly clock: Pick<Clock, 'now'> },
  { reason }: Pick<Command, 'reason'>,
  { claim, node, pods: decided }: Candidate,
  pods?: readonly Pod[],
): string | undefined {
  const { name } = node.metadata
  const found = pods === undefined ? podsOnNodes.of(name) : podsOnNodes.read(pods)
  const now = clock.now()
  const known = new Set(decided.map(({ metadata }) => metadata.uid))
  const newcomers = found.pods.filter(({ metadata }) => !known.has(metadata.uid))
  if (!endsByItself(claim, reason === 'Drifted' ? 'eventual' : 'graceful')) {
    const held = podsOnNodes.blocking(newcomers)
    const { value: obstacle } = podObstacles(found, held, podsOnNodes, now).next()
    if (obstacle !== undefined) return obstacle.text
  }
  const [newcomer] = newcomers
  // New pods of a drifted node are placed while it drains; other decisions depend on the pods that they knew.
  if (newcomer === undefined || reason === 'Drifted') return undefined
  return `pod ${keyOf(newcomer.metadata)} was bound to the node after the decision`
}

interface CommandTracesParts {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<
    ClusterState,
    'isDeletionNoted' | 'mark' | 'nominate' | 'poolClaims' | 'rollouts' | 'seedOf' | 'unmark'
  >
  readonly settings: Pick<Settings, 'batchMaxMs'>
}

export class CommandTraces {
  readonly #deps: CommandTracesParts

  constructor(deps: CommandTracesParts) {
    this.#deps = deps
  }

  /** Calls back with the name of each claim that is being deleted or is gone. */
  onLeaving(listener: (claim: string) => void): void {
    this.#deps.caches.nodeClaims.onChange(({ kind, object: { metadata } }) => {
      if (kind === 'deleted' || metadata.deletionTimestamp !== undefined) listener(metadata.name)
    })
  }

  /**
   * Marks the nodes of a command in the state.
   * @param successors their replacements.
   */
  begun(command: Command, successors: readonly NodeClaim[]): void {
    const { settings, state } = this.#deps
    if (command.reason === 'Drifted')
      for (const pool of poolsOf(command))
        state.rollouts.replace(
          pool,
          successors,
          command.candidates.flatMap(({ pods }) => pods),
        )
    for (const { providerID } of command.candidates) state.mark(providerID)
    const nominationMs = Math.max(2 * settings.batchMaxMs, 10_000)
    for (const { providerID } of command.destinations)
      if (!this.#isDrifted(providerID)) state.nominate(providerID, nominationMs)
  }

  released(staying: readonly Candidate[]): void {
    const { state } = this.#deps
    for (const { claim, providerID } of staying) {
      state.unmark(providerID)
      state.poolClaims.unmark(claim.metadata.name)
    }
  }

  /** Drifted nodes are not nominated: their pods may go elsewhere. */
  #isDrifted(providerID: string): boolean {
    const claims = this.#deps.caches.nodeClaims.byIndex(indexes.byProviderId, providerID)
    return claims.some((claim) => isConditionTrue(claim, 'Drifted'))
  }

  /** Whether a claim is gone, is being deleted, or an API server has accepted that. */
  isDeletionKnown(claim: NodeClaim): boolean {
    const current = this.known(claim)
    return (
      current === undefined ||
      current.metadata.deletionTimestamp !== undefined ||
      this.#deps.state.isDeletionNoted(claim)
    )
  }

  /** The current claim; the state has new ones before the cache. */
  known({ metadata }: NodeClaim): NodeClaim | undefined {
    const { caches, state } = this.#deps
    const current = caches.nodeClaims.get({ name: metadata.name }) ?? state.seedOf(metadata.name)
    return current?.metadata.uid === metadata.uid ? current : undefined
  }
}

interface PodMovesParts {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<ClusterState, 'movedPods' | 'podsOnNodes' | 'recentlyFilledNodes'>
  readonly evictions: Pick<EvictionQueue, 'add'>
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  readonly settings: Pick<Settings, 'compatibility'>
}

export class PodMoves {
  readonly #deps: PodMovesParts

  constructor(deps: PodMovesParts) {
    this.#deps = deps
  }

  /** The waves of these nodes, without pods of nodes that could not be tainted, and those that a rollout replaces. */
  of(going: readonly Pick<Candidate, 'node'>[], waves: readonly (readonly Pod[])[] = []): Waves {
    const names = new Set(going.map(({ node }) => node.metadata.name))
    const { podsOnNodes } = this.#deps.state
    const isMoved = (pod: Pod) => names.has(pod.spec.nodeName ?? '') && !podsOnNodes.surges(pod)
    const moving = waves.map((wave) => wave.filter(isMoved))
    return new Waves(this.#deps, moving)
  }

  /**
   * Notes the nodes that receive the pods, so that these are not moved again soon.
   * @param successors the replacements of the command.
   */
  begun(command: Command, successors: readonly NodeClaim[]): void {
    const { recentlyFilledNodes } = this.#deps.state
    for (const claim of [...command.destinations.map((each) => each.claim), ...successors])
      if (claim !== undefined) recentlyFilledNodes.fill(claim.metadata.name)
    this.moved(command)
  }

  /** Remembers the workloads whose pods are moved. */
  moved({ reason, candidates }: Command): void {
    const { state, settings } = this.#deps
    if (!policyOf(settings).remembersPods) return
    const pods = candidates.flatMap((candidate) => candidate.pods)
    state.movedPods.move(pods, reason === 'Underutilized')
  }
}
