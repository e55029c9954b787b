/** What `tenon get` shows besides the objects: prices, and why nodes are kept. */
import {
  karpenterKinds,
  type KubeObject,
  kinds,
  labels,
  type NodeClaim,
  type Pod,
  type PricePerHour,
} from '@tenon/api'
import type { Snapshot } from '@tenon/ask'
import { costReport, ofKind, pricedInstances, PriceList } from '@tenon/ask/cost'
import { isKubeError } from '@tenon/kube'
import type { NodeDecision } from '@tenon/operator'
import type { Io } from '../../io.ts'
import type { ClusterConnection } from '../../kubectl/connection.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { type NamedKind, nodeKind } from '../../kubectl/kinds.ts'
import { reachOrNote } from '../../source/controller.ts'
import { pageOf } from '../../source/controller-pages.ts'

export interface Facts {
  /** Unix milliseconds. */
  readonly nowMs: number
  /** Absent if unknown. */
  readonly currency?: string
  /** All NodeClaims of the cluster. */
  readonly claims: readonly NodeClaim[]
  /** Price per hour of a Node or NodeClaim. */
  priceOf(object: KubeObject): PricePerHour
  /** Why a Node or NodeClaim still exists; undefined if unknown. */
  decisionOn(object: KubeObject): NodeDecision | undefined
  /** The capacity that a CapacityBuffer keeps; undefined if unknown. */
  roomOf(object: KubeObject): Room | undefined
  /** The pods bound to a Node; undefined if they could not be listed. */
  podsOn(node: string): readonly Pod[] | undefined
}

/** The number of pods that fit, and the price per hour as far as known. */
interface Room {
  readonly kept: number
  readonly pricePerHour?: PricePerHour
}

export function snapshotFacts(snapshot: Snapshot): Facts {
  const prices = new PriceList(snapshot)
  const { priceUnit } = snapshot.cloud
  return {
    nowMs: snapshot.takenAtMs,
    ...(priceUnit !== undefined && { currency: priceUnit }),
    claims: ofKind(snapshot, karpenterKinds.nodeClaim),
    priceOf: (object) => prices.of(object),
    decisionOn: decisionsBy(snapshot.nodeDecisions),
    roomOf: roomsIn(snapshot),
    podsOn: podsBy(ofKind(snapshot, kinds.pod)),
  }
}

/** Reads the facts of a live cluster that tables of these kinds need. */
export async function liveFacts(
  io: Io,
  flags: SourceFlags,
  connection: ClusterConnection,
  asked: ReadonlySet<NamedKind>,
): Promise<Facts> {
  const reach = await reachOrNote(io, flags, connection, 'prices and reasons')
  const pods = asked.has(nodeKind) ? await podsOf(io, connection) : undefined
  const prices = reach && (await pageOf(reach, '/debug/prices', io.interrupted))
  const decided = reach && (await pageOf(reach, '/debug/decisions', io.interrupted))
  const nowMs = connection.clock.now()
  const claims = await claimsOf(connection, io.interrupted)
  const byClaim = new Map(prices?.nodeClaims.map(({ name, pricePerHour }) => [name, pricePerHour]))
  const claimOf = new Map(claims.map((claim) => [providerIdOf(claim), claim.metadata.name]))
  return {
    nowMs,
    ...(prices?.currency !== undefined && { currency: prices.currency }),
    claims,
    priceOf: (object) =>
      byClaim.get(
        object.kind === karpenterKinds.nodeClaim.kind
          ? object.metadata.name
          : (claimOf.get(providerIdOf(object)) ?? ''),
      ),
    decisionOn: decisionsBy(decided?.decisions ?? []),
    roomOf: ({ metadata }) =>
      prices?.capacityBuffers?.find(
        ({ namespace, name }) => namespace === metadata.namespace && name === metadata.name,
      ),
    podsOn: pods === undefined ? () => undefined : podsBy(pods),
  }
}

/** The fields of a pod that are needed for its requests, and whether it counts. */
const podFields = {
  members: {
    metadata: true,
    spec: true,
    status: { members: { phase: true, conditions: true }, others: false },
  },
  others: false,
}

/** Without the right to list pods, nodes are still shown. */
async function podsOf(
  { err, interrupted }: Io,
  { client }: ClusterConnection,
): Promise<readonly Pod[] | undefined> {
  try {
    return await client.list(kinds.pod, {
      fields: podFields,
      fieldSelector: 'spec.nodeName!=',
      signal: interrupted,
    })
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    err(`note: without requests: the right is missing: list pods (${error.serverMessage ?? error.message})\n`)
    return undefined
  }
}

/** Without the definition or the right to list them, there are no NodeClaims to show. */
async function claimsOf({ client }: ClusterConnection, signal: AbortSignal): Promise<readonly NodeClaim[]> {
  try {
    return await client.list(karpenterKinds.nodeClaim, { signal })
  } catch (error) {
    if (isKubeError(error, 'notFound', 'other', 'forbidden')) return []
    throw error
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

/** The NodePool in an object's labels; empty if none. */
export function poolOf({ metadata }: KubeObject): string {
  return metadata.labels?.[labels.nodePool] ?? ''
}
