/**
 * Whether pods that found no place really have none in the end: no node that is there takes them, and
 * no type of any pool on a new node of its own.
 *
 * Lenient where order or the other pods decide:
 * - pods with hard rules about other pods, or that others' anti-affinity speaks of, are judged for new
 *   nodes only, and only if all those rules are spreads or anti-affinity over host names, which an empty
 *   new node always keeps;
 * - a pool with limits may have been charged for more than its claims show: each counts as the largest
 *   type of the pool;
 * - pods that had a place until it was taken back (a claim that lost its minValues, a node that is not
 *   initialized) are not judged, nor is anybody when reservations are in use.
 */
import {
  type InstanceType,
  labels as names,
  normalizedLabel,
  type Offering,
  parseResources,
  type Pod,
} from '@tenon/api'
import type { NodeInput, PoolInput, SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { typesOf, valuesAmong } from './claims.test-support.ts'
import {
  clash,
  demandOf,
  demandOfAll,
  exclusiveClaimsOf,
  lacking,
  most,
  plus,
  portsOf,
  total,
} from './demands.test-support.ts'
import {
  canHold,
  type Expression,
  holds,
  keysOf,
  nodeTerms,
  on,
  untoleratedTaints,
} from './labels.test-support.ts'
import { allocatableWith, daemonsThatMayRun, poolExpressions } from './launches.test-support.ts'
import {
  exceededOnType,
  exceededVolumeLimits,
  nameOf,
  nodeLabels,
  nodeRefusals,
  roomOn,
  volumeTerms,
  portsTakenOn,
} from './nodes.test-support.ts'
import { requiredTerms, termSelects } from './topology.test-support.ts'

/** Reasons of pods that had a place until the decision was complete. */
export const takenBack: ReadonlySet<string> = new Set(['truncationBrokeMinValues', 'uninitializedNode'])

/** Failures of pods for which there is a place. */
export function checkFailures(input: SchedulingInput, result: SchedulingResult): readonly string[] {
  if (input.policy.reservations !== undefined) return []
  // The pods of a dropped claim had been charged to limits.
  const isDropped = result.failures.some(({ reason }) => reason.kind === 'truncationBrokeMinValues')
  const pools = input.pools.filter(({ nodePool }) => !isDropped || nodePool.spec.limits === undefined)
  // So had others that were to be on a starting node.
  const isGivenUp = result.failures.some(({ reason }) => reason.kind === 'uninitializedNode')
  const judged = new Set<string>()
  const served = [
    ...result.placements.map((placement) => placement.pod),
    ...result.claims.flatMap((claim) => claim.pods),
  ]
  const taken = exclusiveClaimsOf(served, input)
  return result.failures.flatMap(({ pod, reason }) => {
    if (takenBack.has(reason.kind)) return []
    if (exclusiveClaimsOf([pod], input).some((claim) => taken.includes(claim))) return []
    // Pods that are alike fail alike; one of them is enough.
    const { namespace, labels: own, uid = '' } = pod.metadata
    const like = [pod.spec, namespace, own, input.volumes?.has(uid) && uid, input.origins?.get(uid)]
    if (judged.has(JSON.stringify(like))) return []
    judged.add(JSON.stringify(like))
    const hostRulesOnly = rulesOn(pod, input).every((key) => key === names.hostname)
    if (!hostRulesOnly) return []
    const isFree = rulesOn(pod, input).length === 0
    const nodes = input.nodes.filter((each) => !isGivenUp || each.initialized)
    const node = isFree ? nodes.find((each) => takes(each, pod, input, result)) : undefined
    if (node !== undefined) return [`${nameOf(pod)}: failed, but node ${node.name} would hold it`]
    const pool = pools.find((each) => launches(each, pod, input, result))
    return pool === undefined
      ? []
      : [`${nameOf(pod)}: failed, but NodePool ${pool.nodePool.metadata.name} could launch a node for it`]
  })
}

/** Keys over which hard rules bear on a pod; `affinity` stands for one that needs company. */
function rulesOn(pod: Pod, input: SchedulingInput): readonly string[] {
  const spreads = (pod.spec.topologySpreadConstraints ?? []).filter(
    (each) => each.whenUnsatisfiable === 'DoNotSchedule',
  )
  const repelling = [...input.pods, ...input.topology.pods]
    .filter((other) => other !== pod)
    .flatMap((owner) =>
      requiredTerms(owner, 'podAntiAffinity').filter((term) => termSelects(term, owner, pod, input)),
    )
  return [
    ...[...spreads, ...requiredTerms(pod, 'podAntiAffinity'), ...repelling].map((rule) =>
      normalizedLabel(rule.topologyKey),
    ),
    ...requiredTerms(pod, 'podAffinity').map(() => 'affinity'),
  ]
}

/** A pod with one required term, and whether soft taints were still in its way with it. */
interface Attempt {
  readonly pod: Pod
  readonly term: readonly Expression[]
  readonly softTaintsCount: boolean
}

function attempts(pod: Pod, input: SchedulingInput): readonly Attempt[] {
  const isSoftTolerated = input.pools.some(({ nodePool }) =>
    (nodePool.spec.template.spec.taints ?? []).some((taint) => taint.effect === 'PreferNoSchedule'),
  )
  return nodeTerms(pod.spec).map((term) => ({ pod, term, softTaintsCount: !isSoftTolerated }))
}

function takes(node: NodeInput, pod: Pod, input: SchedulingInput, result: SchedulingResult): boolean {
  const placed = result.placements.filter((each) => each.node === node.name).map((each) => each.pod)
  const taken = demandOfAll(placed)
  const room = Object.fromEntries(
    Object.entries(roomOn(node, input)).map(([name, amount]) => [name, amount - (taken[name] ?? 0)]),
  )
  const ports = [...portsTakenOn(node, input), ...placed.flatMap((each) => portsOf(each.spec))]
  const labels = nodeLabels(node)
  return (
    lacking(demandOf(pod.spec), room).length === 0 &&
    Object.values(room).every((amount) => amount >= 0) &&
    !clash(portsOf(pod.spec), ports) &&
    exceededVolumeLimits(node, [...placed, pod], input).length === 0 &&
    attempts(pod, input).some(
      ({ term, softTaintsCount }) =>
        nodeRefusals(pod, node, input, softTaintsCount).length === 0 &&
        term.every((each) => holds(each, labels[normalizedLabel(each.key)])),
    )
  )
}

function launches(pool: PoolInput, pod: Pod, input: SchedulingInput, result: SchedulingResult): boolean {
  const affordable = pool.instanceTypes.filter((type) => isAffordable(type, pool, input, result))
  return attempts(pod, input).some(({ term, softTaintsCount }) => {
    const { taints = [] } = pool.nodePool.spec.template.spec
    if (untoleratedTaints(taints, pod.spec, softTaintsCount).length > 0) return false
    return volumeTerms(pod, input).some((volume) => {
      const wanted = [...term, ...volume]
      const types = affordable.filter((type) => launchesAs(type, pool, pod, wanted, input))
      const isEnough = pool.nodePool.spec.template.spec.requirements.every(
        ({ key, minValues = 0 }) =>
          input.policy.minValues === 'BestEffort' || valuesAmong(types, key) >= minValues,
      )
      return types.length > 0 && types.length <= input.policy.maxInstanceTypes && isEnough
    })
  })
}

function isAffordable(
  type: InstanceType,
  { nodePool, usage, instanceTypes }: PoolInput,
  input: SchedulingInput,
  result: SchedulingResult,
): boolean {
  const limits = parseResources(nodePool.spec.limits)
  const largest = { ...instanceTypes.map((each) => each.capacity).reduce(most, {}), nodes: 1 }
  const claims = result.claims.filter((claim) => claim.nodePool === nodePool.metadata.name)
  const used = total([usage, ...claims.map(() => largest), type.capacity, { nodes: 1 }])
  // Typeless claims cannot be charged; a result that has one is reported elsewhere.
  if (claims.some((claim) => typesOf(claim, input).length === 0)) return false
  return Object.entries(limits).every(([name, limit]) => (used[name] ?? 0) <= limit)
}

function launchesAs(
  type: InstanceType,
  { nodePool }: PoolInput,
  pod: Pod,
  wanted: readonly Expression[],
  input: SchedulingInput,
): boolean {
  const daemons = daemonsThatMayRun(input.daemons, nodePool, type)
  const demand = plus(demandOf(pod.spec), total(daemons.map((daemon) => demandOf(daemon.spec))))
  const daemonPorts = daemons.flatMap((daemon) => portsOf(daemon.spec))
  if (clash(portsOf(pod.spec), daemonPorts)) return false
  if (exceededOnType(type.name, [pod], input).length > 0) return false
  return type.offerings.some((offering) => {
    const allocatable = allocatableWith(type, offering)
    return (
      offering.available &&
      Object.values(allocatable).every((amount) => amount >= 0) &&
      lacking(demand, allocatable).length === 0 &&
      suits(type, offering, poolExpressions(nodePool), wanted, input)
    )
  })
}

/** Whether a node of this pool, type and offering can have labels that the pod asks for. */
function suits(
  type: InstanceType,
  offering: Offering,
  template: readonly Expression[],
  wanted: readonly Expression[],
  input: SchedulingInput,
): boolean {
  const own = keysOf(offering.requirements)
  const ofType = type.requirements.filter((each) => !own.has(normalizedLabel(each.key)))
  const instance = [...ofType, ...offering.requirements]
  const isUnderstood = [...keysOf(wanted)].every((key) => {
    const isAbsenceFine = on(key, wanted).every((each) => holds(each, undefined))
    const isKnown = keysOf(template).has(key) || input.policy.wellKnownLabels.has(key)
    const hasSource = keysOf(template).has(key) || keysOf(instance).has(key)
    return isAbsenceFine || (isKnown && hasSource)
  })
  const all = [...template, ...instance, ...wanted]
  return isUnderstood && [...keysOf(all)].every((key) => canHold(on(key, all)))
}
