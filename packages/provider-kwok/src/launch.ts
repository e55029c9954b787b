/** Chooses the offering of a claim, and builds the Node that simulates its instance (operations.md 12.4). */
import {
  admitsValue,
  comparePrices,
  formatResource,
  type InstanceType,
  labels,
  lowestPrice,
  type NewObject,
  type Node,
  type NodeClaim,
  normalizedLabel,
  type Offering,
  ownValue,
  parseResource,
  type PricePerHour,
  type Requirement,
  unregisteredTaint,
} from '@tenon/api'
import { integerBetween, type Random, randomString } from '@tenon/runtime'
import { singleValues } from '@tenon/provider'

/** Prefix of provider IDs, before the name of the node. */
export const providerIdPrefix = 'kwok://'
/** On a Node: the name of its claim, so that it is found after a restart. */
const claimAnnotation = 'karpenter.kwok.sh/node-claim'
/** On a Node: which kwok controller simulates it. */
export const partitionLabel = 'kwok-partition'

/** The claim of a simulated instance; instances of the Go version only have it in their hostname. */
export function claimNameOf({ metadata }: Node): string | undefined {
  return metadata.annotations?.[claimAnnotation] ?? metadata.labels?.[labels.hostname]
}

/** The type and offering of a launch. */
export interface Choice {
  readonly type: InstanceType
  readonly offering: Offering
}

/**
 * The cheapest available offering of the claim's types; one of unknown price if there is no other. Of equal prices the
 * first type wins, and its offering is random. Types without a suitable offering are skipped.
 */
export function cheapestChoice(
  claim: NodeClaim,
  types: readonly InstanceType[],
  random: Random,
): Choice | undefined {
  const { requirements } = claim.spec
  const byName = new Map(types.map((type) => [type.name, type]))
  let best: { readonly type: InstanceType; readonly offerings: readonly Offering[] } | undefined
  let price: PricePerHour
  for (const name of namesFor(claim, types)) {
    const type = byName.get(name)
    const fitting = (type?.offerings ?? []).filter(
      (offering) => offering.available && offeringAllows(requirements, offering),
    )
    if (type === undefined || fitting.length === 0) continue
    const least = lowestPrice(fitting.map(({ pricePerHour }) => pricePerHour))
    if (best !== undefined && comparePrices(least, price) >= 0) continue
    best = { type, offerings: fitting.filter(({ pricePerHour }) => pricePerHour === least) }
    price = least
  }
  if (best === undefined) return undefined
  const { type, offerings } = best
  const index = offerings.length === 1 ? 0 : integerBetween(random, 0, offerings.length - 1)
  const offering = offerings[index]
  return offering && { type, offering }
}

/** The types that a claim lists; every suitable type if its NodePool lists none. */
function namesFor({ metadata, spec }: NodeClaim, types: readonly InstanceType[]): readonly string[] {
  const { requirements } = spec
  const listed = valuesOf(requirements, labels.instanceType)
  if (listed.length > 0 || metadata.labels?.[labels.nodePool] === undefined) return listed
  return types.filter((type) => offeringAllows(requirements, type)).map(({ name }) => name)
}

/** Names in the claim that are not types. */
export function unknownTypes(claim: NodeClaim, types: readonly InstanceType[]): readonly string[] {
  const known = new Set(types.map(({ name }) => name))
  return valuesOf(claim.spec.requirements, labels.instanceType).filter((name) => !known.has(name))
}

/** Whether suitable offerings exist, but none is available. */
export function isSoldOut(claim: NodeClaim, types: readonly InstanceType[]): boolean {
  const { requirements } = claim.spec
  const names = namesFor(claim, types)
  return types.some(
    ({ name, offerings }) =>
      names.includes(name) && offerings.some((offering) => offeringAllows(requirements, offering)),
  )
}

/** The type and offering of a simulated Node, if they still exist. */
export function choiceOf({ metadata }: Node, types: readonly InstanceType[]): Choice | undefined {
  const type = types.find(({ name }) => name === metadata.labels?.[labels.instanceType])
  const offering = type?.offerings.find(({ requirements }) =>
    Object.entries(singleValues(requirements)).every(
      ([key, value]) => ownValue(metadata.labels, key) === value,
    ),
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

/** A unique name. */
export function nodeName(claim: NodeClaim, sequence: number, random: Random): string {
  const word = () => words[integerBetween(random, 0, words.length - 1)] ?? 'oak'
  const tail = randomString(random, 10, alphanumeric)
  return `kwok-${claim.metadata.name}-${word()}-${word()}-${sequence}-${tail}-${random.uint32()}`.toLowerCase()
}

/** What a Node needs in addition to claim and offering. */
export interface NodeParts {
  readonly name: string
  /** The kwok controller that simulates it. */
  readonly partition: string
  readonly annotations: Readonly<Record<string, string>>
  /** The share of its type's amount that the instance has, by resource; default 1. */
  readonly shares?: ReadonlyMap<string, number>
}

/** The Node as the kubelet of a real instance would register it. */
export function simulatedNode(
  claim: NodeClaim,
  { type, offering }: Choice,
  { name, partition, annotations, shares = new Map() }: NodeParts,
): NewObject<Node> {
  const requests = claim.spec.resources?.requests ?? {}
  const overhead = type.overhead.kubeReserved
  const allocatable = Object.fromEntries(
    Object.entries(type.capacity).map(([resource, amount]) => [
      resource,
      formatResource(
        resource,
        Math.max(0, Math.floor(amount * (shares.get(resource) ?? 1)) - (ownValue(overhead, resource) ?? 0)),
      ),
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
        ...(offering.pricePerHour !== undefined && {
          'eks-node-viewer/instance-price': offering.pricePerHour.toFixed(6),
        }),
        [partitionLabel]: partition,
        [labels.hostname]: claim.metadata.name,
        'kwok.x-k8s.io/node': 'fake',
      },
      annotations: {
        ...claim.metadata.annotations,
        ...annotations,
        'kwok.x-k8s.io/node': 'fake',
        [claimAnnotation]: claim.metadata.name,
      },
    },
    spec: { providerID: `${providerIdPrefix}${name}`, taints: [unregisteredTaint] },
    status: {
      capacity: nonZero(requests),
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

/** Values of every `In` requirement on a key, in order. */
function valuesOf(requirements: readonly Requirement[], key: string): readonly string[] {
  return (
    requirements.find((each) => each.operator === 'In' && normalizedLabel(each.key) === key)?.values ?? []
  )
}

/** Whether each label of an offering or instance type can have an allowed value. */
function offeringAllows(
  requirements: readonly Requirement[],
  offering: Pick<Offering, 'requirements'>,
): boolean {
  return requirements.every((requirement) => {
    const key = normalizedLabel(requirement.key)
    return offering.requirements.every(
      (offered) =>
        normalizedLabel(offered.key) !== key ||
        offered.operator !== 'In' ||
        (offered.values ?? []).some((value) => admitsValue(requirement, value)),
    )
  })
}
