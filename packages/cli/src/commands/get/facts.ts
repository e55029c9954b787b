/** What `tenon get` knows beside the objects: prices, and why nodes are kept. */
import { karpenterKinds, type KubeObject, kinds, labels, type Pod, type PricePerHour } from '@tenon/api'
import { costReport, ofKind, pricedInstances, PriceList, type Snapshot } from '@tenon/ask'
import type { ClaimPrices, NodeDecision } from '@tenon/operator'

/** Facts of one moment. */
export interface Facts {
  /** Unix milliseconds. */
  readonly nowMs: number
  /** Unit of the prices; absent when it is not known. */
  readonly currency?: string
  /** Price per hour of a Node or NodeClaim. */
  priceOf(object: KubeObject): PricePerHour
  /** Why a Node or NodeClaim is still there; undefined when nobody has told. */
  decisionOn(object: KubeObject): NodeDecision | undefined
  /** The room that a CapacityBuffer keeps; undefined when nobody has told. */
  roomOf(object: KubeObject): Room | undefined
  /** The pods bound to a Node; undefined when they could not be read. */
  podsOn(node: string): readonly Pod[] | undefined
}

/** Pods that there is room for, and what it costs an hour as far as that is known. */
interface Room {
  readonly kept: number
  readonly pricePerHour?: PricePerHour
}

/** The facts of a snapshot. */
export function snapshotFacts(snapshot: Snapshot): Facts {
  const prices = new PriceList(snapshot)
  const { priceUnit } = snapshot.cloud
  return {
    nowMs: snapshot.takenAtMs,
    ...(priceUnit !== undefined && { currency: priceUnit }),
    priceOf: (object) => prices.of(object),
    decisionOn: decisionsBy(snapshot.nodeDecisions),
    roomOf: roomsIn(snapshot),
    podsOn: podsBy(ofKind(snapshot, kinds.pod)),
  }
}

/** What a live cluster and its controller told. */
export interface Told {
  readonly nowMs: number
  /** Absent when no controller is reached. */
  readonly prices?: ClaimPrices
  readonly decisions: readonly NodeDecision[]
  /** Absent when they could not be listed, or nobody needs them. */
  readonly pods?: readonly Pod[]
  /** NodeClaims, by whose provider IDs Nodes have prices. */
  readonly claims: readonly KubeObject[]
}

/** The facts of a live cluster. */
export function liveFacts({ nowMs, prices, decisions, pods, claims }: Told): Facts {
  const byClaim = new Map(prices?.nodeClaims.map(({ name, pricePerHour }) => [name, pricePerHour]))
  const claimOf = new Map(claims.map((claim) => [providerIdOf(claim), claim.metadata.name]))
  return {
    nowMs,
    ...(prices?.currency !== undefined && { currency: prices.currency }),
    priceOf: (object) =>
      byClaim.get(
        object.kind === karpenterKinds.nodeClaim.kind
          ? object.metadata.name
          : (claimOf.get(providerIdOf(object)) ?? ''),
      ),
    decisionOn: decisionsBy(decisions),
    roomOf: ({ metadata }) =>
      prices?.capacityBuffers?.find(
        ({ namespace, name }) => namespace === metadata.namespace && name === metadata.name,
      ),
    podsOn: pods === undefined ? () => undefined : podsBy(pods),
  }
}

function roomsIn(snapshot: Snapshot): Facts['roomOf'] {
  const { groups } = costReport(pricedInstances(snapshot), 'owner')
  const byName = new Map(groups.map((group) => [group.name, group]))
  return ({ metadata }) => {
    const group = byName.get(`${metadata.namespace ?? ''}/capacitybuffer/${metadata.name}`)
    if (group === undefined) return { kept: 0, pricePerHour: 0 }
    const { pods: kept, requestedPerHour, unpriced } = group
    return { kept, ...(unpriced === 0 && { pricePerHour: requestedPerHour }) }
  }
}

function decisionsBy(decisions: readonly NodeDecision[]): Facts['decisionOn'] {
  const byClaim = new Map(decisions.map((each) => [each.nodeClaim, each]))
  const byNode = new Map(decisions.map((each) => [each.node, each]))
  return ({ kind, metadata }) =>
    (kind === karpenterKinds.nodeClaim.kind ? byClaim : byNode).get(metadata.name)
}

function podsBy(pods: readonly Pod[]): Facts['podsOn'] {
  const byNode = Map.groupBy(pods, ({ spec }) => spec.nodeName ?? '')
  return (node) => byNode.get(node) ?? []
}

/** A Node has it in its spec, a NodeClaim in its status. */
function providerIdOf(object: KubeObject): string | undefined {
  const { spec, status } = object as {
    readonly spec?: { readonly providerID?: string }
    readonly status?: { readonly providerID?: string }
  }
  return spec?.providerID ?? status?.providerID
}

/** The NodePool that an object names in its labels; empty without one. */
export function poolOf({ metadata }: KubeObject): string {
  return metadata.labels?.[labels.nodePool] ?? ''
}
