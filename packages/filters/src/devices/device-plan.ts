/** What the ResourceClaims of one pod require of its node. */
import { type Pod, type ResourceClaim, meetsNodeSelectorTerm } from '@tenon/api'
import type { NodeEntry } from '../cluster/node-entry.ts'
import type { PodFacts } from '../pods/pod-facts.ts'
import type { Rejection } from '../rejection.ts'
import { consumerOf } from './claim-consumer.ts'
import { type ClaimRequests, requestsOf } from './claim-requests.ts'
import { allocate, type ClaimAllocation } from './device-allocator.ts'
import type { DeviceIndex } from './device-index.ts'
import { type ExtendedClaim, extendedClaimOn, servedResources } from './extended-claim.ts'

/** Maximum pods in `reservedFor` of one claim. */
const mostConsumers = 256

/** A claim with its allocation on the pod's node. */
export interface AllocatedClaim {
  readonly claim: ResourceClaim
  /** Undefined if it is allocated already. */
  readonly allocation: ClaimAllocation | undefined
  /** Set for the claim of the pod's extended resources, which is still to be created. */
  readonly mappings?: ExtendedClaim['mappings']
}

/** The claims of a pod and what they require. */
export interface DevicePlan {
  /** Set if the pod can run on no node. */
  readonly rejection?: Rejection
  readonly allocated: readonly ResourceClaim[]
  /** Extended resources that devices serve on nodes without them. */
  readonly extended: readonly string[]
  readonly waiting: readonly { readonly claim: ResourceClaim; readonly requests: ClaimRequests }[]
}

const noDevices: DevicePlan = { allocated: [], waiting: [], extended: [] }

/** Looks up a pod's claims; without an index devices are not simulated. */
export function devicePlan(facts: PodFacts, index: DeviceIndex | undefined): DevicePlan {
  const references = facts.pod.spec.resourceClaims ?? []
  const served = index === undefined ? [] : servedResources(facts, index)
  if (references.length + served.length === 0) return noDevices
  if (index === undefined)
    return refused('cannot allocate all claims (spec.resourceClaims): devices are not simulated')
  const allocated: ResourceClaim[] = []
  const waiting: DevicePlan['waiting'][number][] = []
  const made = served.length === 0 ? undefined : extendedClaimOf(facts, index)
  if (made !== undefined && made.status?.allocation === undefined)
    return refused(`resourceclaim "${made.metadata.name}" for extended resources is left over`)
  if (made !== undefined) allocated.push(made)
  for (const reference of references) {
    const claim = claimOf(facts, reference, index)
    if (claim === undefined) continue
    if (typeof claim === 'string') return refused(claim)
    if (claim.status?.allocation !== undefined) {
      allocated.push(claim)
      continue
    }
    const requests = requestsOf(claim, index)
    if (typeof requests === 'string') return refused(requests)
    waiting.push({ claim, requests })
  }
  return { allocated, waiting, extended: made === undefined ? served : [] }
}

/** The claim that was created for the extended resources of a pod, before it was bound. */
function extendedClaimOf({ namespace, pod }: PodFacts, index: DeviceIndex): ResourceClaim | undefined {
  const name = pod.status?.extendedResourceClaimStatus?.resourceClaimName
  return name === undefined ? undefined : index.claim(namespace, name)
}

/** Whether a claim was created for the pod, and for whom it is reserved. */
interface ClaimUsers {
  readonly isOwn: boolean
  readonly isReserved: boolean
  readonly count: number
}

/** Pods of a group may share the claim of the group. */
function usersOf(claim: ResourceClaim, pod: Pod): ClaimUsers {
  const owner = claim.metadata.ownerReferences?.find(({ controller }) => controller === true)
  const { uid } = consumerOf(claim, pod)
  const users = claim.status?.reservedFor ?? []
  return {
    isOwn: owner?.uid === uid,
    isReserved: users.some((user) => user.uid === uid || user.uid === pod.metadata.uid),
    count: users.length,
  }
}

/**
 * The claim that a pod refers to, or why it cannot be used; undefined if the pod's status says that none is needed.
 */
function claimOf(
  { namespace, name: podName, pod }: PodFacts,
  reference: NonNullable<Pod['spec']['resourceClaims']>[number],
  index: DeviceIndex,
): ResourceClaim | string | undefined {
  const made = pod.status?.resourceClaimStatuses?.find(({ name }) => name === reference.name)
  const name = reference.resourceClaimName ?? made?.resourceClaimName
  if (name === undefined)
    return made === undefined ? `pod "${namespace}/${podName}": ResourceClaim not created yet` : undefined
  const claim = index.claim(namespace, name)
  if (claim === undefined) return `resourceclaim "${name}" not found`
  const users = usersOf(claim, pod)
  if (reference.resourceClaimName === undefined && !users.isOwn)
    return `ResourceClaim "${name}" was not created for Pod ${namespace}/${podName}`
  if (claim.metadata.deletionTimestamp !== undefined) return `resourceclaim "${name}" is being deleted`
  return users.isReserved || users.count < mostConsumers
    ? claim
    : `resourceclaim "${name}" has ${mostConsumers} consumers already`
}

/** A claim without devices. */
interface SoughtClaim extends Pick<AllocatedClaim, 'claim' | 'mappings'> {
  readonly requests: ClaimRequests
}

/** Why the node cannot provide the claims, or their allocations there. */
export function devicesOn(
  facts: PodFacts,
  plan: DevicePlan,
  entry: NodeEntry,
  index: DeviceIndex,
): readonly AllocatedClaim[] | Rejection {
  for (const { status } of plan.allocated) {
    const terms = status?.allocation?.nodeSelector?.nodeSelectorTerms
    if (terms !== undefined && !terms.some((term) => meetsNodeSelectorTerm(term, entry.name, entry.labels)))
      return rejection('resourceclaim not available on the node')
  }
  const ready = plan.allocated.map((claim) => ({ claim, allocation: undefined }))
  const extended = extendedClaimOn(facts, plan.extended, entry, index)
  const waiting = plan.waiting.map(({ claim, requests }): SoughtClaim => ({ claim, requests }))
  if (extended !== undefined) {
    const requests = requestsOf(extended.claim, index)
    if (typeof requests === 'string') return rejection(requests)
    waiting.push({ ...extended, requests })
  }
  if (waiting.length === 0) return ready
  const given = allocate(
    waiting.map(({ requests }) => requests),
    entry,
    index,
  )
  if (given === undefined) return rejection('cannot allocate all claims')
  const found = waiting.map(
    ({ claim, mappings }, at): AllocatedClaim => ({
      claim,
      allocation: given[at],
      ...(mappings && { mappings }),
    }),
  )
  return [...ready, ...found]
}

/** Preemption does not help, as devices stay allocated until the preempted pods are gone. */
function rejection(reason: string): Rejection {
  return { filter: 'DynamicResources', reasons: [reason], helpedByPreemption: false }
}

function refused(reason: string): DevicePlan {
  return { ...noDevices, rejection: rejection(reason) }
}
