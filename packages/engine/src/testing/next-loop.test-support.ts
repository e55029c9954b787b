/** What a cluster looks like once the claims of one scheduling loop are nodes. */
import {
  capacityTypes,
  comparePrices,
  difference,
  fits,
  type InstanceType,
  labels,
  type Offering,
  type Pod,
  podRequests,
  sum,
} from '@tenon/api'
import { allocatableGroups } from '../scheduling/types/allocatable.ts'
import { hostPortsOf } from '../input/host-ports.ts'
import { compatible, parseRequirements } from '../requirements/requirements.ts'
import type { NodeInput, PoolInput, SchedulingInput, TopologyNode } from '../input/input.ts'
import type { NewClaim, SchedulingResult } from '../input/result.ts'

/** A claim that became a node, and how it was bought. */
interface Launch {
  readonly claim: NewClaim
  readonly node: NodeInput
  readonly type: InstanceType
  readonly offering: Offering
}

/**
 * The input of the loop after `result`: each claim is an initialized node of its cheapest type in the
 * cheapest offering it allows, placed pods are bound, used reservations and pool usage are booked.
 * To be placed are the pods that found no place, and `arriving`. Volumes are not carried over.
 */
export function nextLoop(
  input: SchedulingInput,
  result: SchedulingResult,
  arriving: readonly Pod[] = [],
): SchedulingInput {
  const launches = result.claims.map((claim, index) =>
    launch(input, claim, `launched-${String(input.nodes.length + index + 1).padStart(3, '0')}`),
  )
  const originals = new Map(input.pods.map((pod) => [pod.metadata.uid, pod]))
  const original = (pod: Pod): Pod => originals.get(pod.metadata.uid) ?? pod
  const placed = [
    ...result.placements,
    ...launches.flatMap(({ claim, node }) => claim.pods.map((pod) => ({ pod, node: node.name }))),
  ].map(({ pod, node }) => ({ pod: original(pod), node }))
  const nodes = [...input.nodes, ...launches.map(({ node }) => node)].map((node) =>
    withPods(
      node,
      placed.filter((each) => each.node === node.name).map(({ pod }) => pod),
    ),
  )
  const uids = new Set(placed.map(({ pod }) => pod.metadata.uid))
  const left = [...result.failures.map(({ pod }) => pod), ...result.undecided].map(original)
  return {
    ...input,
    pods: [...left, ...arriving],
    nodes,
    pools: launches.reduce((pools, each) => booked(pools, each, input), input.pools),
    topology: {
      ...input.topology,
      pods: [
        ...input.topology.pods.filter((pod) => !uids.has(pod.metadata.uid)),
        ...placed.map(({ pod, node }) => ({ ...pod, spec: { ...pod.spec, nodeName: node } })),
      ],
      nodes: new Map([
        ...input.topology.nodes,
        ...launches.map(({ node }): [string, TopologyNode] => [
          node.name,
          { hostname: node.name, labels: node.labels, taints: node.taints, isCandidate: true },
        ]),
      ]),
    },
  }
}

/** Buys what a provider would: the cheapest type, in the cheapest way the claim allows. */
function launch({ pools, policy }: SchedulingInput, claim: NewClaim, name: string): Launch {
  const type = pools
    .find((pool) => pool.nodePool.metadata.name === claim.nodePool)
    ?.instanceTypes.find((each) => each.name === claim.instanceTypes[0])
  const wanted = parseRequirements(claim.requirements)
  if (type === undefined) throw new Error(`NodePool ${claim.nodePool} has no ${claim.instanceTypes[0]}`)
  const [bought] = allocatableGroups(type)
    .filter(({ allocatable }) => fits(claim.requests, allocatable))
    .flatMap(({ allocatable, offerings }) => offerings.map((offering) => ({ allocatable, offering })))
    .filter(({ offering }) =>
      compatible(wanted, parseRequirements(offering.requirements), policy.wellKnownLabels),
    )
    .toSorted((a, b) => comparePrices(a.offering.pricePerHour, b.offering.pricePerHour))
  if (bought === undefined) throw new Error(`no offering of ${type.name} suits the claim`)
  const { offering, allocatable } = bought
  const stated = [...type.requirements, ...claim.requirements, ...offering.requirements]
  const node: NodeInput = {
    name,
    labels: {
      ...Object.fromEntries(
        stated.flatMap(({ key, operator, values = [] }) =>
          operator === 'In' && values.length === 1 ? [[key, values[0] ?? '']] : [],
        ),
      ),
      ...claim.labels,
      [labels.hostname]: name,
    },
    taints: claim.pool.spec.template.spec.taints ?? [],
    initialized: true,
    available: allocatable,
    daemonRequests: {},
    usedHostPorts: [],
  }
  return { claim, node, type, offering }
}

export function withPods(node: NodeInput, pods: readonly Pod[]): NodeInput {
  const requests = pods.map((pod) => podRequests(pod.spec)).reduce(sum, {})
  return {
    ...node,
    available: difference(node.available, requests),
    usedHostPorts: [...node.usedHostPorts, ...pods.flatMap((pod) => hostPortsOf(pod.spec))],
  }
}

/** The pools after a launch: what its own pool uses, and what is left of a reservation everywhere. */
function booked(
  pools: readonly PoolInput[],
  { claim, type, offering }: Launch,
  { policy }: SchedulingInput,
): readonly PoolInput[] {
  const used = reservationOf(offering, policy.reservations?.label)
  const after = (each: Offering): Offering => {
    if (used === undefined || reservationOf(each, policy.reservations?.label) !== used) return each
    const left = (each.reservationCapacity ?? 0) - 1
    return { ...each, reservationCapacity: left, available: left > 0 }
  }
  return pools.map((pool) => ({
    ...pool,
    instanceTypes: pool.instanceTypes.map((each) => ({ ...each, offerings: each.offerings.map(after) })),
    usage:
      pool.nodePool.metadata.name === claim.nodePool
        ? sum(pool.usage, { ...type.capacity, nodes: 1 })
        : pool.usage,
  }))
}

/** The reservation an offering draws on; undefined when it is not reserved. */
function reservationOf(offering: Offering, label: string | undefined): string | undefined {
  const value = (key: string | undefined) =>
    offering.requirements.find((requirement) => requirement.key === key)?.values?.[0]
  return value(labels.capacityType) === capacityTypes.reserved ? value(label) : undefined
}
