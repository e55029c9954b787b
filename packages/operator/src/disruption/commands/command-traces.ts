/** What commands leave in the cluster state, for later decisions to see. */
import { isConditionTrue, type NodeClaim } from '@tenon/api'
import type { Candidate } from '../candidates.ts'
import { type Command, poolsOf } from './command.ts'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'mark' | 'nominate' | 'poolClaims' | 'rollouts' | 'seedOf' | 'unmark'>
  readonly settings: Pick<Settings, 'batchMaxMs'>
}

export class CommandTraces {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Calls back with the name of each claim that goes or is gone. */
  onLeaving(listener: (claim: string) => void): void {
    this.#deps.caches.nodeClaims.onChange(({ kind, object: { metadata } }) => {
      if (kind === 'deleted' || metadata.deletionTimestamp !== undefined) listener(metadata.name)
    })
  }

  /**
   * The nodes of a command are about to go.
   * @param successors claims in their place.
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

  /** The nodes stay. */
  released(staying: readonly Candidate[]): void {
    const { state } = this.#deps
    for (const { claim, providerID } of staying) {
      state.unmark(providerID)
      state.poolClaims.unmark(claim.metadata.name)
    }
  }

  /** A drifted node goes next, and pods that still have a node may go elsewhere. */
  #isDrifted(providerID: string): boolean {
    const claims = this.#deps.caches.nodeClaims.byIndex(indexes.byProviderId, providerID)
    return claims.some((claim) => isConditionTrue(claim, 'Drifted'))
  }

  /** A claim as it is by now; the state knows new ones before the caches show them. */
  known({ metadata }: NodeClaim): NodeClaim | undefined {
    const { caches, state } = this.#deps
    const current = caches.nodeClaims.get({ name: metadata.name }) ?? state.seedOf(metadata.name)
    return current?.metadata.uid === metadata.uid ? current : undefined
  }
}
