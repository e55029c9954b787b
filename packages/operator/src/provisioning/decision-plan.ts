/** Stores which pods a decision planned for which nodes. */
import { isRequestPod, type NewObject, type NodeClaim, type Pod } from '@tenon/api'
import { demandsOf, type NewClaim, type SchedulingResult } from '@tenon/engine'
import { inSlices, type Slicing } from '@tenon/runtime'
import type { GatheredInput } from './input/scheduling-input.ts'
import { isDrifted } from '../state/nodes/state-node.ts'
import type { PlanTarget } from '../state/pods/pod-plans.ts'
import { withPlannedPods } from '../placement/planned-pods.ts'
import { nominationOrder } from '../placement/nomination-order.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { PlacementGate } from '../placement/gate.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: Pick<ClusterState, 'plans' | 'podGroups' | 'requests'>
  readonly placementGate: PlacementGate
  readonly slicing: Slicing
}

/** Protects the nodes that pods are placed on from disruption. @param nominationMs for how long. */
export function nominateNodes(
  state: Pick<ClusterState, 'nominate' | 'recentlyFilledNodes'>,
  { stateNodes, origins }: Pick<GatheredInput, 'stateNodes' | 'origins'>,
  { placements }: SchedulingResult,
  nominationMs: number,
): void {
  const awaited = new Set(
    placements.filter(({ pod }) => origins?.has(pod.metadata.uid ?? '') !== true).map(({ node }) => node),
  )
  for (const name of new Set(placements.map(({ node }) => node))) {
    const target = stateNodes.get(name)
    if (target === undefined) continue
    // Pods that still have a node may go anywhere; a drifted node need not wait for them.
    if (awaited.has(name) || !isDrifted(target)) state.nominate(target.providerID, nominationMs)
    if (target.claim !== undefined) state.recentlyFilledNodes.fill(target.claim.metadata.name)
  }
}

/** The plan of one decision, while it is carried out. */
export class DecisionPlan {
  readonly #deps: Dependencies
  /** Order of nominations, by pod; undefined if it does not matter where pods go. */
  readonly #turns: ReadonlyMap<string, number> | undefined
  /** Names of the claims launched so far. */
  readonly #batch = new Set<string>()

  private constructor(deps: Dependencies, turns: ReadonlyMap<string, number> | undefined) {
    this.#deps = deps
    this.#turns = turns
  }

  /** Keeps the placements of the decision; its claims are kept as they are launched. */
  static async of(
    deps: Dependencies,
    { stateNodes, policy }: Pick<GatheredInput, 'stateNodes' | 'policy'>,
    result: SchedulingResult,
  ): Promise<DecisionPlan> {
    const { placementGate, slicing } = deps
    // A plan that holds wherever pods land, as one for very many pods does, needs no nominations.
    const isTight = !placementGate.isOn || policy.improvement === 'planned'
    const matters = placementGate.keepsPlans && isTight && (await inSlices(needsSteering(result), slicing))
    // While the gate is off nothing is nominated; what each node is for is stored all the same.
    const order = async (): Promise<ReadonlyMap<string, number>> =>
      placementGate.isOn ? await inSlices(nominationOrder(result), slicing) : new Map()
    const plan = new DecisionPlan(deps, matters ? await order() : undefined)
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
  noted(
    claim: NewObject<NodeClaim>,
    { pods, podGroups, roomPods = [] }: Pick<NewClaim, 'podGroups' | 'pods' | 'roomPods'>,
  ): NewObject<NodeClaim> {
    // After a restart a group must know which of its members have a node on its way.
    return this.#turns === undefined && podGroups === undefined
      ? claim
      : withPlannedPods(claim, [...pods, ...roomPods.filter(isRequestPod)])
  }

  launched(
    { metadata: { name } }: NodeClaim,
    { pods, roomPods = [] }: Pick<NewClaim, 'pods' | 'roomPods'>,
  ): void {
    if (!this.#deps.placementGate.keepsPlans) return
    this.#deps.state.plans.launched(name, this.#batch)
    for (const pod of pods) this.#keep(pod, { kind: 'claim', name })
    for (const {
      metadata: { uid = '' },
      spec,
    } of roomPods)
      if (this.#deps.state.requests.has(uid))
        this.#deps.state.plans.set(uid, { target: { kind: 'claim', name }, steering: 'free', spec })
  }

  #keep(pod: Pod, target: PlanTarget): void {
    const { state, caches, placementGate } = this.#deps
    if (!placementGate.keepsPlans) return
    const { uid = '', name, namespace } = pod.metadata
    // Changes of the pod during the decision are known here already.
    const current = caches.pods.get(namespace === undefined ? { name } : { name, namespace })
    if (current?.metadata.uid !== uid || nodeNameOf(current) !== nodeNameOf(pod)) return
    // The scheduler clears nominations of members while their group is refused (gangs.md 7.4).
    const turns = state.podGroups.of(current) === undefined ? this.#turns : undefined
    const turn = turns?.get(uid)
    state.plans.set(uid, {
      target,
      steering: turns === undefined ? 'free' : turn === undefined ? 'filler' : 'told',
      spec: current.spec,
      ...(turn !== undefined && { turn }),
    })
  }
}

const nodeNameOf = ({ spec }: Pod) => spec.nodeName ?? ''

/**
 * Whether kube-scheduler could spoil the plan, found out in steps. It cannot if there is only one node, or if all pods
 * are alike: then any pod may take the room of any other.
 */
function* needsSteering({
  placements,
  claims,
}: Pick<SchedulingResult, 'placements' | 'claims'>): Generator<undefined, boolean, undefined> {
  const nodes = new Set(placements.map(({ node }) => node))
  if (nodes.size + claims.length < 2) return false
  let first: string | undefined
  for (const pods of [placements.map(({ pod }) => pod), ...claims.map((claim) => claim.pods)]) {
    for (const pod of pods) {
      const demands = demandsOf(pod)
      first ??= demands
      if (demands !== first) return true
      yield
    }
  }
  return false
}
