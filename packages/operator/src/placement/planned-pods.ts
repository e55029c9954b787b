/** Plans as claims carry them, for the process after the one that made them. */
import type { Clock } from '@tenon/runtime'
import type { NewObject, NodeClaim, Pod } from '@tenon/api'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { plannedPodsAnnotation } from '../state/pods/pod-plans.ts'
import type { PlacementGate } from './gate.ts'

export interface ResumePlansParts {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'isManaged' | 'nominations' | 'plans' | 'podGroups' | 'pods'>
  readonly placementGate: Pick<PlacementGate, 'keepsPlans'>
  readonly clock: Clock
}

/** 48 bits, which tell the pods of a cluster apart. */
const uidPartLength = 13
/** Bounds the annotation to 14 kB. */
const maxPods = 1000

const uidPart = (uid: string) => uid.slice(0, uidPartLength)

/**
 * The claim to create, with a note of the pods it is for. Too many are not noted: the next process decides about them
 * anew, with the claim as a node on its way that has room for them, so that nothing is launched twice.
 */
export function withPlannedPods(claim: NewObject<NodeClaim>, pods: readonly Pod[]): NewObject<NodeClaim> {
  if (pods.length > maxPods) return claim
  const parts = pods.map(({ metadata }) => uidPart(metadata.uid ?? '')).toSorted()
  const annotations = { ...claim.metadata.annotations, [plannedPodsAnnotation]: parts.join(',') }
  return { ...claim, metadata: { ...claim.metadata, annotations } }
}

/**
 * Names of the claims that were launched for pods, by their UIDs.
 * @param claims that may have been launched for them; where several were, the last counts.
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

/** Takes up the plans of the process before this one, as far as claims note them. */
export function resumePlans({ caches, state, placementGate, clock }: ResumePlansParts): void {
  if (!placementGate.keepsPlans) return
  const claims = caches.nodeClaims
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
    // Nobody else nominates pods for the node that was launched for them.
    const node = pod.status?.nominatedNodeName ?? ''
    if (node !== '' && state.nominations.isOurs(pod))
      state.plans.write(uid, { node, atMs: clock.now(), isAccepted: true })
  }
}

const createdMs = ({ metadata }: NodeClaim): number => Date.parse(metadata.creationTimestamp ?? '') || 0
