/** Moves the pods of commands, and keeps in the cluster state that they were moved. */
import type { NodeClaim, Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Candidate } from '../candidates.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { EvictionQueue } from '../../node/termination/eviction-queue.ts'
import type { Settings } from '../../settings.ts'
import type { Command } from './command.ts'
import { Waves } from './waves.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<ClusterState, 'movedPods' | 'recentlyFilledNodes'>
  readonly evictions: Pick<EvictionQueue, 'add'>
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  readonly settings: Pick<Settings, 'compatibility'>
}

export class PodMoves {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** The pods of these nodes, wave by wave; a node that could not be marked stays, and so do its pods. */
  of(going: readonly Pick<Candidate, 'node'>[], waves: readonly (readonly Pod[])[] = []): Waves {
    const names = new Set(going.map(({ node }) => node.metadata.name))
    const moving = waves.map((wave) => wave.filter(({ spec }) => names.has(spec.nodeName ?? '')))
    return new Waves(this.#deps, moving)
  }

  /**
   * Pods that are moved are moved once: where they come to they are left alone for a while.
   * @param successors claims in place of the nodes of the command.
   */
  begun(command: Command, successors: readonly NodeClaim[]): void {
    const { recentlyFilledNodes } = this.#deps.state
    for (const claim of [...command.destinations.map((each) => each.claim), ...successors])
      if (claim !== undefined) recentlyFilledNodes.fill(claim.metadata.name)
    this.moved(command)
  }

  /** Remembers whose pods are moved, where that is to have consequences. */
  moved({ reason, candidates }: Command): void {
    const { state, settings } = this.#deps
    if (settings.compatibility === 'karpenter') return
    const pods = candidates.flatMap((candidate) => candidate.pods)
    state.movedPods.move(pods, reason === 'Underutilized')
  }
}
