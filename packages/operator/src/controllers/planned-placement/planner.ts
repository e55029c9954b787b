/** Keeps what a decision planned. */
import type { NewObject, NodeClaim, Pod } from '@tenon/api'
import type { SchedulingResult } from '@tenon/engine'
import { inSlices } from '@tenon/runtime'
import type { OperatorContext } from '../../context.ts'
import type { GatheredInput } from '../../decide/scheduling-input.ts'
import { sliceMs } from '../../decide/slice.ts'
import type { PlanTarget } from '../../state/pod-plans.ts'
import { withPlannedPods } from './planned-pods.ts'
import { steeredPods } from './steered-pods.ts'
import { needsSteering } from './steering.ts'

/** The plan of one decision, while it is carried out. */
export class DecisionPlan {
  readonly #context: OperatorContext
  /** Whether it makes a difference which pod goes to which node. */
  readonly #matters: boolean
  /** When it is a pod's turn to be told about to the scheduler, by UID; of others it is not told. */
  readonly #turns: ReadonlyMap<string, number>
  /** Names of the claims launched so far. */
  readonly #batch = new Set<string>()

  private constructor(context: OperatorContext, matters: boolean, turns: ReadonlyMap<string, number>) {
    this.#context = context
    this.#matters = matters
    this.#turns = turns
  }

  /** Keeps the placements of the decision; its claims are kept as they are launched. */
  static async of(
    context: OperatorContext,
    { stateNodes, policy }: Pick<GatheredInput, 'stateNodes' | 'policy'>,
    result: SchedulingResult,
  ): Promise<DecisionPlan> {
    const { clock, turns, placementGate, settings } = context
    const slicing = { clock, turns, sliceMs }
    const matters = placementGate.keepsPlans && (await inSlices(needsSteering(result), slicing))
    const isTooLarge = placementGate.isOn && policy.improvement === 'free'
    const steps = steeredPods(result, matters && !isTooLarge ? settings.maxNominations : 0)
    const plan = new DecisionPlan(context, matters, await inSlices(steps, slicing))
    for (const { pod, node } of result.placements) {
      const target = stateNodes.get(node)
      if (target === undefined) continue
      const { claim } = target
      plan.#keep(
        pod,
        claim === undefined ? { kind: 'node', name: node } : { kind: 'claim', name: claim.metadata.name },
      )
    }
    return plan
  }

  /** The claim to create for these pods, with a note of them. */
  noted(claim: NewObject<NodeClaim>, pods: readonly Pod[]): NewObject<NodeClaim> {
    return this.#matters ? withPlannedPods(claim, pods) : claim
  }

  launched({ metadata: { name } }: NodeClaim, pods: readonly Pod[]): void {
    if (!this.#context.placementGate.keepsPlans) return
    this.#context.state.plans.launched(name, this.#batch)
    for (const pod of pods) this.#keep(pod, { kind: 'claim', name })
  }

  #keep(pod: Pod, target: PlanTarget): void {
    const { state, caches, placementGate } = this.#context
    if (!placementGate.keepsPlans) return
    const { uid = '', name, namespace } = pod.metadata
    // What happened to the pod while it was decided about is known here already.
    const current = caches.pods.get(namespace === undefined ? { name } : { name, namespace })
    if (current?.metadata.uid !== uid || nodeNameOf(current) !== nodeNameOf(pod)) return
    const turn = nodeNameOf(pod) === '' ? this.#turns.get(uid) : undefined
    state.plans.set(uid, {
      target,
      isSteered: turn !== undefined,
      spec: current.spec,
      ...(turn !== undefined && { turn }),
    })
  }
}

const nodeNameOf = ({ spec }: Pod) => spec.nodeName ?? ''
