/** Plans that are stored on NodeClaims, so that the next process keeps them (planned-placement.md). */
import type { Clock } from '@tenon/runtime'
import type { NewObject, NodeClaim, Pod } from '@tenon/api'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { plannedPodsAnnotation, type PlanTarget, type PodPlans } from '../state/pods/pod-plans.ts'
import type { PlacementGate } from './gate.ts'
import type { StateNode } from '../state/nodes/state-node.ts'

/** 48 bits suffice to distinguish the pods of a cluster. */
const uidPartLength = 13
/** Limits the annotation to 14 kB. */
const maxPods = 1000

const uidPart = (uid: string) => uid.slice(0, uidPartLength)

/**
 * The claim to create, annotated with the pods it is for. Too many are left out: the next process decides about them
 * again, with the claim as a node on its way that has room for them, so nothing is launched twice.
 */
export function withPlannedPods(claim: NewObject<NodeClaim>, pods: readonly Pod[]): NewObject<NodeClaim> {
  if (pods.length > maxPods) return claim
  const parts = pods.map(({ metadata }) => uidPart(metadata.uid ?? '')).toSorted()
  const annotations = { ...claim.metadata.annotations, [plannedPodsAnnotation]: parts.join(',') }
  return { ...claim, metadata: { ...claim.metadata, annotations } }
}

/**
 * Names of the claims that were launched for pods, by UID of the pod.
 * @param claims that may have been launched for them; the latest wins.
 */
export function notedClaims(
  claims: readonly NodeClaim[],
  uids: Iterable<string>,
): ReadonlyMap<string, string> {
  const claimOf = new Map<string, string>()
  for (const { metadata } of claims.toSorted((a, b) => createdMs(a) - createdMs(b)))
    for (const part of (metadata.annotations?.[plannedPodsAnnotation] ?? '').split(','))
      claimOf.set(part, metadata.name)
  return new Map(
    [...uids].flatMap((uid) => {
      const name = claimOf.get(uidPart(uid))
      return name === undefined ? [] : [[uid, name] as const]
    }),
  )
}

/** Restores the plans of an earlier process from the annotations of claims. */
export function resumePlans(
  nodeClaims: Caches['nodeClaims'],
  state: Pick<ClusterState, 'isManaged' | 'nominations' | 'plans' | 'podGroups' | 'pods'>,
  clock: Pick<Clock, 'now'>,
): void {
  const claims = nodeClaims
    .list()
    .filter((claim) => state.isManaged(claim) && claim.metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => createdMs(a) - createdMs(b))
  const batch = new Set<string>()
  const claimOf = new Map<string, string>()
  for (const { metadata } of claims) {
    const noted = metadata.annotations?.[plannedPodsAnnotation] ?? ''
    if (noted === '') continue
    state.plans.launched(metadata.name, batch)
    for (const part of noted.split(',')) claimOf.set(part, metadata.name)
  }
  for (const pod of state.pods.allUnplaced()) {
    const uid = pod.metadata.uid ?? ''
    const name = claimOf.get(uidPart(uid))
    if (name === undefined || state.plans.get(uid) !== undefined) continue
    const steering = state.podGroups.of(pod) === undefined ? 'told' : 'free'
    state.plans.set(uid, { target: { kind: 'claim', name }, steering })
    // Only Tenon nominates pods for the node that was launched for them.
    const node = pod.status?.nominatedNodeName ?? ''
    if (node !== '' && state.nominations.isOurs(pod))
      state.plans.write(uid, { node, atMs: clock.now(), isAccepted: true })
  }
}

const createdMs = ({ metadata }: NodeClaim): number => Date.parse(metadata.creationTimestamp ?? '') || 0

/** Remembers where pods go without nominating them: a new decision could pack them otherwise, and launch more. */
export class KeptPlans {
  readonly #plans: Pick<PodPlans, 'set'>
  readonly #placementGate: Pick<PlacementGate, 'keepsPlans'>

  constructor(plans: Pick<PodPlans, 'set'>, placementGate: Pick<PlacementGate, 'keepsPlans'>) {
    this.#plans = plans
    this.#placementGate = placementGate
  }

  keep(pods: readonly Pod[], target: PlanTarget): void {
    if (!this.#placementGate.keepsPlans) return
    for (const { metadata, spec } of pods)
      this.#plans.set(metadata.uid ?? '', { target, steering: 'free', spec })
  }

  /** @param stateNodes of the decision, by name. */
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
