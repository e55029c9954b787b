/** Builds the rows of nodes and NodeClaims from their objects. */
import { conditionOf, isConditionTrue, type Node, type NodeClaim } from '@tenon/api'
import type { NodeDecision } from '@tenon/operator'
import { amountsOf, isLeaving, nextStep, placeOf, present, sharesOf, whyOf } from './facts.ts'
import type { NodeLoad } from './pods.ts'
import type { Amounts, ClaimRow, NodeRow } from './view.ts'

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
