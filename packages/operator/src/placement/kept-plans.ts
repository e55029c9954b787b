/** Plans that hold without being told to the scheduler. */
import type { Pod } from '@tenon/api'
import type { PlanTarget, PodPlans } from '../state/pods/pod-plans.ts'
import type { StateNode } from '../state/nodes/state-node.ts'
import type { PlacementGate } from './gate.ts'

interface Dependencies {
  readonly state: { readonly plans: Pick<PodPlans, 'set'> }
  readonly placementGate: Pick<PlacementGate, 'keepsPlans'>
}

/** Keeps where pods are to go: what is decided meanwhile would pack them otherwise, and launch more. */
export class KeptPlans {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param target where the pods go. */
  keep(pods: readonly Pod[], target: PlanTarget): void {
    const { placementGate, state } = this.#deps
    if (!placementGate.keepsPlans) return
    for (const { metadata, spec } of pods)
      state.plans.set(metadata.uid ?? '', { target, steering: 'free', spec })
  }

  /** @param stateNodes the instances of the decision, by name. */
  keepPlacements(
    placements: readonly { readonly pod: Pod; readonly node: string }[],
    stateNodes: ReadonlyMap<string, StateNode>,
  ): void {
    for (const { pod, node } of placements) {
      const claim = stateNodes.get(node)?.claim
      this.keep(
        [pod],
        claim === undefined ? { kind: 'node', name: node } : { kind: 'claim', name: claim.metadata.name },
      )
    }
  }
}
