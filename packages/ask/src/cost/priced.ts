/** The instances of a snapshot with their prices and pods. */
import {
  apiVersionOf,
  capacityTypes,
  karpenterKinds,
  kinds,
  type InstanceType,
  type KubeObject,
  labels,
  type Offering,
  type Owner,
  ownerOf,
  ownValue,
  parseResources,
  type Pod,
  podRequests,
  type PricePerHour,
  type Resources,
  type ResourceType,
} from '@tenon/api'
import { nodeOffering } from '@tenon/operator/objects'
import type { Snapshot } from '../snapshot/snapshot.ts'

/** A pod and its requests. */
export interface PricedPod {
  readonly namespace: string
  readonly name: string
  readonly owner: Owner
  /** In canonical units. */
  readonly requests: Resources
  /** A placeholder pod of a CapacityBuffer. */
  readonly isRoom?: true
}

/** A Node, or a NodeClaim without a Node yet. */
export interface PricedInstance {
  /** Of the Node, or of the NodeClaim if there is no Node. */
  readonly name: string
  readonly nodePool?: string
  readonly type?: string
  readonly zone?: string
  readonly pricePerHour: PricePerHour
  /** The part of the price that its NodePool adds for each node; absent = none. */
  readonly surchargePerHour?: number
  /** In canonical units. */
  readonly allocatable: Resources
  readonly pods: readonly PricedPod[]
}

/**
 * All instances that are paid for: every Node, and every launched NodeClaim without a Node. The price is that
 * of the offering in the catalogue (ask.md 11).
 */
export function pricedInstances(snapshot: Snapshot): readonly PricedInstance[] {
  const nodes = ofKind(snapshot, kinds.node)
  const claims = ofKind(snapshot, karpenterKinds.nodeClaim)
  const podsOf = Map.groupBy(ofKind(snapshot, kinds.pod).filter(isCounted), ({ spec }) => spec.nodeName ?? '')
  const known = new Set(nodes.map(({ spec }) => spec?.providerID))
  const prices = new PriceList(snapshot)
  const roomOn = roomsOf(snapshot)
  return [
    ...nodes.map((node) => ({
      ...described(node, prices),
      allocatable: parseResources(node.status?.allocatable),
      pods: [...(podsOf.get(node.metadata.name) ?? []).map(pricedPod), ...roomOn(node.spec?.providerID)],
    })),
    ...claims
      .filter(({ status }) => (status?.providerID ?? '') !== '' && !known.has(status?.providerID))
      .map((claim) => ({
        ...described(claim, prices),
        allocatable: parseResources(claim.status?.allocatable),
        pods: roomOn(claim.status?.providerID),
      })),
  ]
}

export function ofKind<T extends KubeObject>(
  { objects }: Pick<Snapshot, 'objects'>,
  type: ResourceType<T>,
): readonly T[] {
  const apiVersion = apiVersionOf(type)
  return objects.filter(
    (object): object is T => object.kind === type.kind && object.apiVersion === apiVersion,
  )
}

/** The prices of a snapshot's catalogues. */
export class PriceList {
  readonly #catalogues: Snapshot['catalogues']

  constructor({ catalogues }: Pick<Snapshot, 'catalogues'>) {
    this.#catalogues = catalogues
  }

  /** Finds the price by labels. A Node without a NodePool is looked up in all catalogues. */
  of(object: KubeObject): PricePerHour {
    return this.offeringOf(object)?.pricePerHour
  }

  /** With a known price. */
  offeringOf({ metadata }: KubeObject): Offering | undefined {
    const own = metadata.labels ?? {}
    const [pool, typeName] = [ownValue(own, labels.nodePool), ownValue(own, labels.instanceType)]
    for (const { nodePools, instanceTypes } of this.#catalogues) {
      if (pool !== undefined && !nodePools.includes(pool)) continue
      const type = instanceTypes?.find(({ name }) => name === typeName)
      const offering = pool === undefined ? offeringOfOthers(type, own) : nodeOffering(type, own)
      if (offering?.pricePerHour !== undefined) return offering
    }
    return undefined
  }
}

/**
 * The offering of a node that no NodePool launched. It lacks Karpenter's labels: without one it is on demand, and
 * without a zone its price is known if it is the same in all of them.
 */
function offeringOfOthers(
  type: InstanceType | undefined,
  own: Readonly<Record<string, string>>,
): Offering | undefined {
  const capacityType = ownValue(own, labels.capacityType) ?? capacityTypes.onDemand
  const zone = ownValue(own, labels.zone)
  const valueOf = ({ requirements }: Offering, label: string) =>
    requirements.find(({ key }) => key === label)?.values?.[0]
  const alike = (type?.offerings ?? []).filter(
    (each) =>
      valueOf(each, labels.capacityType) === capacityType &&
      (zone === undefined || (valueOf(each, labels.zone) ?? zone) === zone),
  )
  return new Set(alike.map(({ pricePerHour }) => pricePerHour)).size === 1 ? alike[0] : undefined
}

function described(
  object: KubeObject,
  prices: PriceList,
): Pick<PricedInstance, 'name' | 'nodePool' | 'type' | 'zone' | 'pricePerHour' | 'surchargePerHour'> {
  const own = object.metadata.labels ?? {}
  const [nodePool, type, zone] = [labels.nodePool, labels.instanceType, labels.zone].map((key) =>
    ownValue(own, key),
  )
  const { pricePerHour, surchargePerHour } = prices.offeringOf(object) ?? { pricePerHour: undefined }
  return {
    name: object.metadata.name,
    ...(nodePool !== undefined && { nodePool }),
    ...(type !== undefined && { type }),
    ...(zone !== undefined && { zone }),
    pricePerHour,
    ...(surchargePerHour !== undefined && { surchargePerHour }),
  }
}

/** Whether a pod occupies resources: it has not terminated. */
function isCounted({ status }: Pod): boolean {
  return status?.phase !== 'Succeeded' && status?.phase !== 'Failed'
}

function pricedPod(pod: Pod): PricedPod {
  const { name, namespace = 'default' } = pod.metadata
  return { namespace, name, owner: ownerOf(pod), requests: podRequests(pod.spec, pod.status) }
}

/** The placeholder pods of CapacityBuffers on an instance, by its provider ID. */
function roomsOf({ memory }: Snapshot): (providerID: string | undefined) => readonly PricedPod[] {
  const buffers = new Map(
    memory.buffers.map(({ uid, namespace, name, template }) => {
      const owner = { kind: 'CapacityBuffer', name }
      return [uid, { namespace, owner, requests: podRequests(template.spec), isRoom: true } as const] as const
    }),
  )
  return (providerID = '') =>
    (ownValue(memory.bufferRooms, providerID) ?? []).flatMap((uid) => {
      const buffer = buffers.get(uid.slice(0, uid.lastIndexOf('-')))
      return buffer === undefined ? [] : [{ ...buffer, name: uid }]
    })
}
