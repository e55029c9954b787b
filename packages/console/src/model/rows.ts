/** Builds rows of nodes, NodeClaims, pending pods and offerings from their objects. */
import {
  conditionOf,
  isConditionTrue,
  labels as labelKeys,
  type Node,
  type NodeClaim,
  type Offering,
  type Pod,
} from '@tenon/api'
import type { NodeDecision } from '@tenon/operator'
import { amountsOf, isLeaving, nextStep, placeOf, present, sharesOf, whyOf } from './facts.ts'
import type { NodeLoad, PodFacts } from './pods.ts'
import type { Amounts, ClaimRow, NodeRow, OfferingRow, PendingPodRow, PendingReason } from './view.ts'
import type { SnapshotCatalogue } from '@tenon/ask'
import { rfc3339 } from '@tenon/runtime'
import type { ExplainedReason } from './event.ts'

/** What is known about an instance besides its objects. */
export interface Known {
  readonly pricePerHour: number | undefined
  readonly decision: NodeDecision | undefined
  /** Undefined if pods cannot be listed. */
  readonly load: NodeLoad | undefined
  readonly usage: Amounts | undefined
}

export function claimId(name: string): string {
  return `claim/${name}`
}

export function nodeId(name: string): string {
  return `node/${name}`
}

/** Whether it costs something. A NodeClaim without an instance does not, whatever its conditions say. */
export function isInstance({ node, providerId }: Pick<NodeRow, 'node' | 'providerId'>): boolean {
  return node !== undefined || providerId !== undefined
}

/** @param claim undefined for a node without a NodeClaim. */
export function nodeRow(node: Node, claim: NodeClaim | undefined, known: Known): NodeRow {
  const { load, usage } = known
  const { name, creationTimestamp, labels = {} } = node.metadata
  const podsMax = amountsOf(node.status?.allocatable)['pods']
  return {
    id: claim === undefined ? nodeId(name) : claimId(claim.metadata.name),
    name,
    node: name,
    ...present('nodeClaim', claim?.metadata.name),
    ...present('providerId', node.spec?.providerID),
    ...placeOf(node),
    resources: sharesOf(load && { ...load.requests, pods: load.pods }, node.status?.allocatable),
    ...(usage !== undefined && { usage }),
    ...(load !== undefined && { pods: load.pods }),
    ...present('podsMax', podsMax),
    ...present('pricePerHour', known.pricePerHour),
    ...readiness(node),
    ...present('createdAt', creationTimestamp),
    cordoned: node.spec?.unschedulable === true,
    deleting: isLeaving(node) || (claim !== undefined && isLeaving(claim)),
    drifted: claim !== undefined && isConditionTrue(claim, 'Drifted'),
    ...whyOf(known.decision),
    labels,
  }
}

/** The row of a claim without a node. */
export function pendingRow(claim: NodeClaim, known: Known): NodeRow {
  const { name, creationTimestamp, labels = {} } = claim.metadata
  const { waitsFor = 'Registered', waitsSince, waitsMessage } = nextStep(claim) ?? {}
  const podsMax = amountsOf(claim.status?.allocatable)['pods']
  return {
    id: claimId(name),
    name,
    nodeClaim: name,
    ...present('providerId', claim.status?.providerID),
    ...placeOf(claim),
    resources: sharesOf(undefined, claim.status?.allocatable),
    ...present('podsMax', podsMax),
    ...present('pricePerHour', known.pricePerHour),
    condition: waitsFor,
    ...present('conditionSince', waitsSince),
    ...present('conditionMessage', waitsMessage),
    ...present('createdAt', creationTimestamp),
    cordoned: false,
    deleting: isLeaving(claim),
    drifted: isConditionTrue(claim, 'Drifted'),
    ...whyOf(known.decision),
    labels,
  }
}

export function claimRow(claim: NodeClaim, node: Node | undefined, known: Known): ClaimRow {
  const { name, creationTimestamp, labels = {} } = claim.metadata
  return {
    id: claimId(name),
    name,
    ...placeOf(claim),
    ...present('nodeClass', claim.spec.nodeClassRef.name),
    ...present('node', node?.metadata.name ?? claim.status?.nodeName),
    ...present('providerId', claim.status?.providerID),
    ...present('imageId', claim.status?.imageID),
    ...nextStep(claim),
    ready: conditionOf(claim, 'Ready')?.status ?? 'Unknown',
    ...present('pricePerHour', known.pricePerHour),
    ...present('createdAt', creationTimestamp),
    deleting: isLeaving(claim),
    drifted: isConditionTrue(claim, 'Drifted'),
    ...whyOf(known.decision),
    labels,
  }
}

function readiness({ status }: Node): Pick<NodeRow, 'condition' | 'conditionSince' | 'conditionMessage'> {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  if (ready === undefined) return { condition: 'Unknown' }
  const condition = ready.status === 'True' ? 'Ready' : ready.status === 'False' ? 'NotReady' : 'Unknown'
  return {
    condition,
    ...present('conditionSince', ready.lastTransitionTime),
    ...(condition !== 'Ready' && present('conditionMessage', ready.message)),
  }
}

export function offeringRows(catalogues: readonly SnapshotCatalogue[]): readonly OfferingRow[] {
  return catalogues.flatMap(({ nodePools, instanceTypes }, at) =>
    (instanceTypes ?? []).flatMap(({ name, offerings }) =>
      offerings.map((offering) => offeringRow(offering, name, { nodePools, at })),
    ),
  )
}

function offeringRow(
  { requirements, pricePerHour, available, unavailability }: Offering,
  instanceType: string,
  { nodePools, at }: { readonly nodePools: readonly string[]; readonly at: number },
): OfferingRow {
  const of = (key: string) => requirements.find((each) => each.key === key)?.values?.[0] ?? ''
  const [zone, capacityType] = [of(labelKeys.zone), of(labelKeys.capacityType)]
  return {
    id: `${at}/${instanceType}/${zone}/${capacityType}`,
    nodePools,
    instanceType,
    zone,
    capacityType,
    ...present('pricePerHour', pricePerHour),
    available,
    ...present('because', unavailability?.because),
    ...present('until', unavailability?.untilMs === undefined ? undefined : rfc3339(unavailability.untilMs)),
  }
}

export function pendingRowOf(
  { namespace, name, owner, requests }: PodFacts,
  pod: Pod,
  explained: ExplainedReason | undefined,
): PendingPodRow {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const isRefused = scheduled?.status === 'False'
  return {
    id: `${namespace}/${name}`,
    namespace,
    name,
    ...(owner.kind !== 'Pod' && { owner: `${owner.kind.toLowerCase()}/${owner.name}` }),
    requests,
    ...reasonOf(explained, isRefused ? scheduled : undefined),
    ...present('plannedFor', explained?.plannedFor ?? pod.status?.nominatedNodeName),
    ...present('createdAt', pod.metadata.creationTimestamp),
    ...present('pendingSince', isRefused ? scheduled.lastTransitionTime : undefined),
    deleting: isLeaving(pod),
    labels: pod.metadata.labels ?? {},
  }
}

function reasonOf(
  explained: ExplainedReason | undefined,
  refused: { readonly reason?: string; readonly message?: string } | undefined,
): { readonly reason?: PendingReason } {
  if (explained !== undefined)
    return { reason: { from: 'tenon', code: explained.code, message: explained.summary } }
  if (refused === undefined) return {}
  const { reason = 'Unschedulable', message = '' } = refused
  return { reason: { from: 'scheduler', code: reason, message } }
}
