/**
 * Which MachineDeployments a claim may get a Machine from, in the order in which they are tried (cluster-api.md 7).
 */
import {
  admitsValue,
  comparePrices,
  type InstanceType,
  type NodeClaim,
  normalizedLabel,
  type Offering,
  ownValue,
  parseResources,
  type PricePerHour,
  type Requirement,
  type Resources,
} from '@tenon/api'
import { compareKeys } from '../hub/keys.ts'
import { replicasOf } from './growth.ts'
import { unforeseenTaints } from './node-taints.ts'
import { type Participant } from './participant.ts'
import { describedLabels } from './pool-rules.ts'

/** A suitable MachineDeployment. */
interface Candidate {
  readonly participant: Participant
  /** Whether labels that the claim has already match those of its nodes. */
  readonly agrees: boolean
  /** Price of its offering, as decisions see it. */
  readonly pricePerHour: PricePerHour
  /** How many replicas it may still add. */
  readonly room: number
}

/**
 * MachineDeployments that are suitable for the claim and can grow. Those whose labels match the claim's labels come
 * first, then by offering price, own price, room and name.
 * @param types of the claim's NodePool as decisions see them: types that are not offered or not available there are
 * left out.
 */
export function candidatesFor(
  claim: NodeClaim,
  participants: readonly Participant[],
  types: readonly InstanceType[],
): readonly Participant[] {
  const typesByName = new Map(types.map((type) => [type.name, type]))
  return participants
    .flatMap((participant) => candidateOf(claim, participant, typesByName.get(participant.typeName)))
    .toSorted(compareCandidates)
    .map(({ participant }) => participant)
}

function candidateOf(
  claim: NodeClaim,
  participant: Participant,
  type: InstanceType | undefined,
): readonly Candidate[] {
  if (type === undefined || participant.unavailability !== undefined) return []
  if (unforeseenTaints(participant.taints, claim.spec).length > 0) return []
  if (!claim.spec.requirements.every((requirement) => isMet(requirement, participant))) return []
  if (!holds(participant, type, parseResources(claim.spec.resources?.requests))) return []
  const offering = offeringOf(participant, type)
  if (offering?.available !== true) return []
  const { maxReplicas = Number.POSITIVE_INFINITY } = participant
  return [
    {
      participant,
      agrees: agrees(claim, participant),
      pricePerHour: offering.pricePerHour,
      room: maxReplicas - replicasOf(participant.deployment),
    },
  ]
}

function compareCandidates(a: Candidate, b: Candidate): number {
  const [one, other] = [a.participant, b.participant]
  if (a.agrees !== b.agrees) return Number(b.agrees) - Number(a.agrees)
  const byPrice =
    comparePrices(a.pricePerHour, b.pricePerHour) || comparePrices(one.pricePerHour, other.pricePerHour)
  if (byPrice !== 0) return byPrice
  // The difference of two infinite rooms is not a number.
  if (a.room !== b.room) return b.room > a.room ? 1 : -1
  return compareKeys(one.key, other.key)
}

/** Labels that only MachineDeployments set must match. All others are set from the claim. */
function isMet(requirement: Requirement, { labels: own }: Participant): boolean {
  const key = normalizedLabel(requirement.key)
  const value = ownValue(own, key)
  if (value !== undefined) return admitsValue(requirement, value)
  const isAbsenceFine = requirement.operator === 'DoesNotExist' || requirement.operator === 'NotIn'
  return isAbsenceFine || !describedLabels.includes(key)
}

/** If requirements allow several values, the core has chosen one, which becomes the label of the Node. */
function agrees({ metadata }: NodeClaim, { labels: own }: Participant): boolean {
  return Object.entries(metadata.labels ?? {}).every(
    ([key, value]) => (ownValue(own, normalizedLabel(key)) ?? value) === value,
  )
}

function holds({ capacity }: Participant, type: InstanceType, requests: Resources): boolean {
  return Object.entries(requests).every(([resource, amount]) => {
    // A NodeOverlay may add resources that the MachineDeployment does not list.
    const overlaid = type.overlaid?.capacity === true ? (ownValue(type.capacity, resource) ?? 0) : 0
    return amount <= Math.max(ownValue(capacity, resource) ?? 0, overlaid)
  })
}

/** The offering of a MachineDeployment: with equal labels and, if there are several, equal capacity. */
function offeringOf(
  { labels: own, capacity }: Participant,
  { offerings }: InstanceType,
): Offering | undefined {
  const alike = offerings.filter(({ requirements }) =>
    requirements.every(({ key, operator, values = [] }) => {
      const value = ownValue(own, key)
      return operator === 'DoesNotExist' ? value === undefined : value !== undefined && values.includes(value)
    }),
  )
  const exact = alike.filter(({ capacityOverride = {} }) =>
    Object.entries(capacityOverride).every(([resource, amount]) => ownValue(capacity, resource) === amount),
  )
  // The offering without overrides fits all; one with matching overrides is more specific.
  return exact.toSorted((a, b) => differences(b) - differences(a))[0] ?? alike[0]
}

function differences({ capacityOverride = {} }: Offering): number {
  return Object.keys(capacityOverride).length
}
