/** Which offering a claim gets, and the Node that simulates its machine (operations.md 12.4). */
import {
  formatResource,
  formatResources,
  type InstanceType,
  labels,
  type Node,
  type NodeClaim,
  type NewObject,
  type Offering,
  parseResource,
  unregisteredTaint,
} from '@tenon/api'
import { integerBetween, type Random, randomString } from '@tenon/runtime'
import { offeringAllows, singleValues, valuesOf } from './matching.ts'

/** How provider IDs of this provider begin; the name of the node follows. */
export const providerIdPrefix = 'kwok://'
/** On a Node: the name of its claim, so that a restart finds it again. */
const claimAnnotation = 'karpenter.kwok.sh/node-claim'

/** The claim a simulated machine was made for; machines of the Go version tell by their hostname only. */
export function claimNameOf({ metadata }: Node): string | undefined {
  return metadata.annotations?.[claimAnnotation] ?? metadata.labels?.[labels.hostname]
}

/** The type and offering a claim is launched with. */
export interface Choice {
  readonly type: InstanceType
  readonly offering: Offering
}

/** The cheapest available offering of the types the claim lists; the first type wins among equals. */
export function cheapestChoice(claim: NodeClaim, types: readonly InstanceType[]): Choice | undefined {
  let best: Choice | undefined
  for (const name of valuesOf(claim.spec.requirements, labels.instanceType)) {
    const type = types.find((each) => each.name === name)
    for (const offering of type?.offerings ?? []) {
      if (type === undefined || !offering.available || !offeringAllows(claim.spec.requirements, offering))
        continue
      if (best === undefined || offering.pricePerHour < best.offering.pricePerHour) best = { type, offering }
    }
  }
  return best
}

/** Whether what the claim asks for exists, but none of it is available. */
export function isSoldOut(claim: NodeClaim, types: readonly InstanceType[]): boolean {
  const { requirements } = claim.spec
  const names = valuesOf(requirements, labels.instanceType)
  return types.some(
    ({ name, offerings }) =>
      names.includes(name) && offerings.some((offering) => offeringAllows(requirements, offering)),
  )
}

/** The type and offering that a simulated Node says it is of, if they are still to be had. */
export function choiceOf({ metadata }: Node, types: readonly InstanceType[]): Choice | undefined {
  const type = types.find(({ name }) => name === metadata.labels?.[labels.instanceType])
  const offering = type?.offerings.find(({ requirements }) =>
    Object.entries(singleValues(requirements)).every(([key, value]) => metadata.labels?.[key] === value),
  )
  return type === undefined || offering === undefined ? undefined : { type, offering }
}

const alphanumeric = 'abcdefghijklmnopqrstuvwxyz0123456789'
const words = [
  'amber',
  'birch',
  'cedar',
  'delta',
  'ember',
  'fjord',
  'grove',
  'hazel',
  'inlet',
  'juniper',
  'kelp',
  'larch',
]

/** A name no other node has. */
export function nodeName(claim: NodeClaim, sequence: number, random: Random): string {
  const word = () => words[integerBetween(random, 0, words.length - 1)] ?? 'oak'
  const tail = randomString(random, 10, alphanumeric)
  return `kwok-${claim.metadata.name}-${word()}-${word()}-${sequence}-${tail}-${random.uint32()}`.toLowerCase()
}

/** The Node as the simulated machine's kubelet would register it. */
export function simulatedNode(claim: NodeClaim, { type, offering }: Choice, name: string): NewObject<Node> {
  const requests = claim.spec.resources?.requests ?? {}
  const overhead = type.overhead.kubeReserved
  const allocatable = Object.fromEntries(
    Object.entries(type.capacity).map(([resource, amount]) => [
      resource,
      formatResource(resource, amount - (overhead[resource] ?? 0)),
    ]),
  )
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        ...claim.metadata.labels,
        ...singleValues(claim.spec.requirements),
        ...singleValues(type.requirements),
        ...singleValues(offering.requirements),
        [labels.instanceType]: type.name,
        'eks-node-viewer/instance-price': offering.pricePerHour.toFixed(6),
        'kwok-partition': 'a',
        [labels.hostname]: claim.metadata.name,
        'kwok.x-k8s.io/node': 'fake',
      },
      annotations: {
        ...claim.metadata.annotations,
        'kwok.x-k8s.io/node': 'fake',
        [claimAnnotation]: claim.metadata.name,
      },
    },
    spec: { providerID: `${providerIdPrefix}${name}`, taints: [unregisteredTaint] },
    status: {
      capacity: nonZero({ ...formatResources(type.capacity), ...requests }),
      allocatable: nonZero({ ...requests, ...allocatable }),
      phase: 'Pending',
    },
  }
}

function nonZero(list: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(list).filter(([name, quantity]) => parseResource(name, quantity) !== 0),
  )
}
