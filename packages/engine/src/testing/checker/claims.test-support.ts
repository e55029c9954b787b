/** Whether new claims can be launched as any type they name, and hold their pods then. */
import {
  comparePrices,
  type InstanceType,
  labels as names,
  lowestPrice,
  parseResources,
  type Resources,
} from '@tenon/api'
import type { PoolInput, SchedulingInput } from '../../input/input.ts'
import type { NewClaim, SchedulingResult } from '../../input/result.ts'
import {
  clash,
  clashAmong,
  demandOf,
  demandOfAll,
  lacking,
  most,
  plus,
  portsOf,
  total,
} from './demands.test-support.ts'
import {
  anyTermHolds,
  type Expression,
  holds,
  keysOf,
  nodeTerms,
  on,
  untoleratedTaints,
  valuesToTry,
} from './labels.test-support.ts'
import {
  cheapest,
  daemonsOn,
  isHeld,
  type Launch,
  launchesOf,
  poolExpressions,
  poolLabels,
} from './launches.test-support.ts'
import { exceededOnType, nameOf, volumeTerms } from './nodes.test-support.ts'

/** A claim as messages name it. */
export const claimName = (claim: NewClaim, index: number): string => `claim ${index} of ${claim.nodePool}`

/** Types of the pool by the names a claim lists; unknown names are omitted. */
export function typesOf(claim: NewClaim, input: SchedulingInput): readonly InstanceType[] {
  const pool = input.pools.find((each) => each.nodePool.metadata.name === claim.nodePool)
  return claim.instanceTypes.flatMap((name) => pool?.instanceTypes.find((type) => type.name === name) ?? [])
}

/** Rules broken by new claims. */
export function checkClaims(input: SchedulingInput, result: SchedulingResult): readonly string[] {
  const violations = result.claims.flatMap((claim, index) => {
    const pool = input.pools.find((each) => each.nodePool.metadata.name === claim.nodePool)
    const found =
      pool === undefined
        ? ['its NodePool is not there']
        : [
            ...checkTypes(claim, pool, input),
            ...checkRequirements(claim, pool),
            ...checkMinValues(claim, pool, input),
            ...checkPods(claim, pool, input),
          ]
    return found.map((text) => `${claimName(claim, index)}: ${text}`)
  })
  return [...violations, ...checkReservations(input, result)]
}

function checkTypes(claim: NewClaim, pool: PoolInput, input: SchedulingInput): readonly string[] {
  const violations: string[] = []
  const known = new Set(pool.instanceTypes.map((type) => type.name))
  if (claim.instanceTypes.length === 0) violations.push('names no instance type')
  if (claim.instanceTypes.length > input.policy.maxInstanceTypes) violations.push('names too many types')
  for (const name of claim.instanceTypes) if (!known.has(name)) violations.push(`type ${name} is unknown`)
  return [...violations, ...checkPrices(claim, pool, input)]
}

/** Types come cheapest first, and the claim has the price of the first. */
function checkPrices(claim: NewClaim, pool: PoolInput, input: SchedulingInput): readonly string[] {
  const violations: string[] = []
  const types = typesOf(claim, input)
  const hasOverrides = types.some((type) =>
    type.offerings.some((each) => each.capacityOverride !== undefined || each.overheadOverride !== undefined),
  )
  const inUse = input.policy.reservations !== undefined
  const prices = types.map((type) => cheapest(claim, type, inUse))
  for (const [index, price] of prices.entries()) {
    if (index === 0) continue
    const order = comparePrices(prices[index - 1], price)
    const [nameBefore = '', name = ''] = [claim.instanceTypes[index - 1], claim.instanceTypes[index]]
    const isInOrder = order < 0 || (order === 0 && nameBefore < name)
    if (!isInOrder && !hasOverrides) violations.push(`types are not sorted by price at ${name}`)
  }
  // Offerings with less room than their type's others may be the cheapest without being enough.
  const holding = types
    .flatMap((type) => launchesOf(claim, type))
    .filter(({ offering }) => isHeld(claim, offering, inUse))
    .filter((launch) => shortOf(launch, claim, pool, input).length === 0)
    .map((launch) => launch.offering.pricePerHour)
  const highest = hasOverrides ? lowestPrice(holding) : prices[0]
  const { pricePerHour } = claim
  if (comparePrices(pricePerHour, prices[0]) < 0 || comparePrices(pricePerHour, highest) > 0)
    violations.push(`price is ${pricePerHour}, but the cheapest offering costs ${prices[0]}`)
  return violations
}

/** Every value that the claim allows, the pool must allow. */
function checkRequirements(claim: NewClaim, { nodePool }: PoolInput): readonly string[] {
  const violations: string[] = []
  const wanted = poolExpressions(nodePool)
  for (const key of keysOf(wanted)) {
    const bounds: readonly Expression[] = on(key, wanted)
    const claimed = on(key, claim.requirements)
    const wider = valuesToTry([...bounds, ...claimed]).filter(
      (value) => claimed.every((each) => holds(each, value)) && !bounds.every((each) => holds(each, value)),
    )
    if (wider.length > 0) violations.push(`allows ${key} ${wider.join(', ')}, which the NodePool does not`)
  }
  for (const [key, value] of Object.entries(poolLabels(nodePool)))
    if (claim.labels[key] !== value) violations.push(`label ${key} is not the NodePool's`)
  for (const [key, value] of Object.entries(claim.labels))
    if (!on(key, claim.requirements).every((each) => holds(each, value)))
      violations.push(`label ${key}=${value} contradicts its requirements`)
  for (const key of [names.hostname, names.registered, names.initialized])
    if (key in claim.labels || keysOf(claim.requirements).has(key)) violations.push(`speaks of ${key}`)
  return violations
}

/** Different values that the types list for a label, whether or not the claim allows all of them. */
export function valuesAmong(types: readonly InstanceType[], key: string): number {
  const listed = types.flatMap((type) =>
    on(key, type.requirements)
      .filter((each) => each.operator === 'In')
      .flatMap((each) => each.values ?? []),
  )
  return new Set(listed).size
}

function checkMinValues(claim: NewClaim, pool: PoolInput, input: SchedulingInput): readonly string[] {
  const violations: string[] = []
  const isStrict = input.policy.minValues === 'Strict'
  if (isStrict && claim.minValuesRelaxed) violations.push('minValues are relaxed under Strict')
  // BestEffort may lower them, and does not look again after the list was cut.
  const isCut = claim.instanceTypes.length === input.policy.maxInstanceTypes
  if (!isStrict && (claim.minValuesRelaxed || isCut)) return violations
  for (const { key, minValues = 0 } of pool.nodePool.spec.template.spec.requirements) {
    if (minValues > valuesAmong(typesOf(claim, input), key))
      violations.push(`minValues ${minValues} of ${key} is not kept`)
    const kept = on(key, claim.requirements).map((each) => ('minValues' in each ? each.minValues : 0))
    if (minValues > 0 && !kept.some((least) => Number(least) >= minValues))
      violations.push(`minValues of ${key} is not passed on`)
  }
  return violations
}

function checkPods(claim: NewClaim, pool: PoolInput, input: SchedulingInput): readonly string[] {
  const violations: string[] = []
  if (claim.pods.length === 0) violations.push('holds no pod')
  for (const pod of claim.pods) {
    for (const taint of untoleratedTaints(pool.nodePool.spec.template.spec.taints ?? [], pod.spec, false))
      violations.push(`${nameOf(pod)} does not tolerate taint ${taint.key}`)
  }
  if (clashAmong(claim.pods.map((pod) => portsOf(pod.spec)))) violations.push('host ports of its pods clash')
  for (const name of lacking(demandOfAll(claim.pods), claim.requests))
    violations.push(`requests less ${name} than its pods`)
  for (const type of typesOf(claim, input)) violations.push(...checkAsType(claim, pool, type, input))
  return violations
}

/** The provider is free to take any offering, so labels must suit with all, resources with one. */
function checkAsType(
  claim: NewClaim,
  pool: PoolInput,
  type: InstanceType,
  input: SchedulingInput,
): readonly string[] {
  const launches = launchesOf(claim, type)
  // A claim pinned to reservations goes on naming types that would have held its pods otherwise.
  const isSpare = claim.reservationIds.length > 0 && claim.instanceTypes[0] !== type.name
  if (launches.length === 0 && !isSpare) return [`type ${type.name} has no available offering that it allows`]
  const violations = new Set<string>()
  for (const driver of exceededOnType(type.name, claim.pods, input))
    violations.add(`type ${type.name} attaches fewer volumes of ${driver} than its pods have`)
  for (const node of launches.flatMap((launch) => launch.labels)) {
    for (const pod of claim.pods) {
      const where = `as type ${type.name} in ${node[names.zone]} ${node[names.capacityType]}`
      if (!anyTermHolds(nodeTerms(pod.spec), node)) violations.add(`${nameOf(pod)}: wrong labels ${where}`)
      if (!anyTermHolds(volumeTerms(pod, input), node)) violations.add(`${nameOf(pod)}: volume ${where}`)
    }
  }
  const short = launches.map((launch) => shortOf(launch, claim, pool, input))
  if (!isSpare && short.every((lack) => lack.length > 0))
    violations.add(`type ${type.name} does not hold its pods: ${short[0]?.join(', ')}`)
  return [...violations]
}

/**
 * Resources and ports that a launched node lacks for the claim's pods and its daemons. A label that the
 * node has only because a pod would not have some value of it draws no daemons: Karpenter does not
 * foresee those either.
 */
function shortOf(
  { labels, allocatable, offering }: Launch,
  claim: NewClaim,
  { nodePool }: PoolInput,
  input: SchedulingInput,
): readonly string[] {
  const { wellKnownLabels } = input.policy
  const sources = keysOf(poolExpressions(nodePool), offering.requirements)
  return labels.flatMap((node) => {
    const known = Object.entries(node).filter(([key]) => sources.has(key) || wellKnownLabels.has(key))
    const daemons = daemonsOn(input.daemons, nodePool, Object.fromEntries(known))
    const wanted = plus(demandOfAll(claim.pods), total(daemons.map((daemon) => demandOf(daemon.spec))))
    const daemonPorts = daemons.flatMap((daemon) => portsOf(daemon.spec))
    const clashing = claim.pods.some((pod) => clash(portsOf(pod.spec), daemonPorts))
    return [...lacking(wanted, allocatable), ...(clashing ? ['host ports'] : [])]
  })
}

/** No reservation is promised to more claims than it has instances. */
function checkReservations(input: SchedulingInput, { claims }: SchedulingResult): readonly string[] {
  const key = input.policy.reservations?.label
  if (key === undefined) return []
  const offerings = input.pools.flatMap((pool) => pool.instanceTypes).flatMap((type) => type.offerings)
  const ids = new Set(claims.flatMap((claim) => claim.reservationIds))
  return [...ids].flatMap((id) => {
    const capacities = offerings
      .filter((each) => on(key, each.requirements).some((one) => (one.values ?? []).includes(id)))
      .map((each) => each.reservationCapacity ?? 0)
    const holders = claims.filter((claim) => claim.reservationIds.includes(id)).length
    return holders > Math.min(...capacities) ? [`reservation ${id}: promised to ${holders} claims`] : []
  })
}

/** NodePools whose new claims, each taken at its largest type, exceed their limits. */
export function checkLimits(input: SchedulingInput, result: SchedulingResult): readonly string[] {
  return input.pools.flatMap(({ nodePool, usage }) => {
    const name = nodePool.metadata.name
    const claims = result.claims.filter((claim) => claim.nodePool === name)
    if (claims.length === 0) return []
    const launched = claims.map((claim): Resources => {
      const largest = typesOf(claim, input).map((type) => type.capacity)
      return { ...largest.reduce(most, {}), nodes: 1 }
    })
    const used = plus(usage, total(launched))
    return Object.entries(parseResources(nodePool.spec.limits))
      .filter(([resource, limit]) => (used[resource] ?? 0) > limit)
      .map(
        ([resource, limit]) =>
          `NodePool ${name}: limit ${limit} of ${resource} exceeded by ${used[resource]}`,
      )
  })
}
