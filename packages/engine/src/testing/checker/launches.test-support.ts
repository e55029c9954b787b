/** Every node that a claim, a pool and an instance type can turn into. */
import {
  capacityTypes,
  type InstanceType,
  labels as names,
  lowestPrice,
  nodeClassLabel,
  type NodePool,
  normalizedLabel,
  type Offering,
  type PricePerHour,
  type Resources,
} from '@tenon/api'
import type { DaemonInput } from '../../input/input.ts'
import type { NewClaim } from '../../input/result.ts'
import { plus } from './demands.test-support.ts'
import {
  anyTermHolds,
  asExpressions,
  canHold,
  type Expression,
  holds,
  keysOf,
  type Labels,
  nodeTerms,
  on,
  untoleratedTaints,
} from './labels.test-support.ts'

/** One offering with which a type can be launched for a claim. */
export interface Launch {
  readonly offering: Offering
  /** Labels of the node; several when the claim leaves some label to the provider. */
  readonly labels: readonly Labels[]
  readonly allocatable: Resources
}

/** Labels that every claim of a pool carries. */
export function poolLabels({ metadata, spec }: NodePool): Labels {
  const { nodeClassRef } = spec.template.spec
  return {
    ...spec.template.metadata?.labels,
    [names.nodePool]: metadata.name,
    [nodeClassLabel(nodeClassRef)]: nodeClassRef.name,
  }
}

/** What a pool demands of its nodes' labels. */
export function poolExpressions(pool: NodePool): readonly Expression[] {
  return [...pool.spec.template.spec.requirements, ...asExpressions(poolLabels(pool))]
}

/** What a type leaves for pods when bought with this offering. */
export function allocatableWith(type: InstanceType, offering: Offering): Resources {
  const { kubeReserved, systemReserved, evictionThreshold } = type.overhead
  const capacity = { ...type.capacity, ...offering.capacityOverride }
  const reserved = plus(plus(kubeReserved, systemReserved), evictionThreshold)
  const overhead = { ...reserved, ...offering.overheadOverride }
  const left: Record<string, number> = {}
  for (const name of Object.keys(capacity)) left[name] = (capacity[name] ?? 0) - (overhead[name] ?? 0)
  for (const name of Object.keys(capacity))
    if (name.startsWith('hugepages-'))
      left['memory'] = Math.max(0, (left['memory'] ?? 0) - (capacity[name] ?? 0))
  return left
}

/** Whether nothing that `more` says of a label contradicts what `bounds` say of it. */
export function agree(bounds: readonly Expression[], more: readonly Expression[]): boolean {
  return [...keysOf(more)].every((key) => canHold([...on(key, bounds), ...on(key, more)]))
}

/** Available offerings of a type that a claim with these requirements may be launched with. */
function offeringsFor(requirements: readonly Expression[], type: InstanceType): readonly Offering[] {
  if (!agree(requirements, type.requirements)) return []
  return type.offerings.filter((offering) => offering.available && agree(requirements, offering.requirements))
}

/**
 * Whether the claim may be launched so. Reservations that it does not hold are others' where they are in use.
 * @param inUse whether decisions share out reservations.
 */
export function isHeld(claim: NewClaim, { requirements }: Offering, inUse: boolean): boolean {
  const isReserved = requirements.some(({ values }) => values?.includes(capacityTypes.reserved) === true)
  return !inUse || !isReserved || claim.reservationIds.length > 0
}

/** The lowest known price at which a claim can be launched as this type. */
export function cheapest(claim: NewClaim, type: InstanceType, inUse: boolean): PricePerHour {
  const offerings = offeringsFor(claim.requirements, type).filter((each) => isHeld(claim, each, inUse))
  return lowestPrice(offerings.map((offering) => offering.pricePerHour))
}

/** Every way to launch a claim as this type. */
export function launchesOf(claim: NewClaim, type: InstanceType): readonly Launch[] {
  return offeringsFor(claim.requirements, type).map((offering) => ({
    offering,
    labels: possibleLabels(claim, type, offering),
    allocatable: allocatableWith(type, offering),
  }))
}

function possibleLabels(claim: NewClaim, type: InstanceType, offering: Offering): readonly Labels[] {
  // What the offering says of a label is narrower than what its type says of all offerings.
  const own = keysOf(offering.requirements)
  const ofType = type.requirements.filter((each) => !own.has(normalizedLabel(each.key)))
  const all: readonly Expression[] = [...offering.requirements, ...ofType, ...claim.requirements]
  let nodes: Labels[] = [claim.labels]
  for (const key of keysOf(all)) {
    const expressions = on(key, all)
    const listed = expressions.find((expression) => expression.operator === 'In')
    // A label nobody lists values for is not put on the node, unless the claim names it.
    if (key in claim.labels || listed === undefined) continue
    const values = (listed.values ?? []).filter((value) => expressions.every((each) => holds(each, value)))
    nodes = nodes.flatMap((node) => values.map((value) => ({ ...node, [key]: value })))
  }
  return nodes
}

/** Values a label can have on the claim's node, over all types it names. */
export function possibleValues(
  claim: NewClaim,
  types: readonly InstanceType[],
  key: string,
): readonly string[] {
  const label = normalizedLabel(key)
  const values = types
    .flatMap((type) => launchesOf(claim, type))
    .flatMap((launch) => launch.labels.flatMap((node) => node[label] ?? []))
  return [...new Set(values)].toSorted()
}

/** Daemons that will run on a new node with these labels. */
export function daemonsOn(
  daemons: readonly DaemonInput[],
  pool: NodePool,
  labels: Labels,
): readonly DaemonInput[] {
  const ready = { ...labels, [names.registered]: 'true', [names.initialized]: 'true' }
  return daemons.filter(
    ({ spec }) =>
      untoleratedTaints(pool.spec.template.spec.taints ?? [], spec, false).length === 0 &&
      anyTermHolds(nodeTerms(spec), ready),
  )
}

/** Daemons that may run on some node of this pool and type: at least those that will. */
export function daemonsThatMayRun(
  daemons: readonly DaemonInput[],
  pool: NodePool,
  type: InstanceType,
): readonly DaemonInput[] {
  const template = [
    ...poolExpressions(pool),
    ...asExpressions({ [names.registered]: 'true', [names.initialized]: 'true' }),
  ]
  return daemons.filter(
    ({ spec }) =>
      untoleratedTaints(pool.spec.template.spec.taints ?? [], spec, false).length === 0 &&
      nodeTerms(spec).some((term) => agree(template, term) && agree(type.requirements, term)),
  )
}
