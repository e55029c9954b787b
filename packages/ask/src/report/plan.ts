/** What other nodes for the same pods would cost (adoption.md 1). */
import { labels, type Pod, sumOfPrices } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import { type Relaxations, withoutNodes } from '../simulate/move.ts'
import { type AddedNodes, gathered, type SimulatedPrice } from '../simulate/simulate.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import type { ReportedCluster, ReportedNode } from './cluster.ts'

/** The nodes of a cluster as Tenon would have them. Pods that wait for a node now are in none of the figures. */
export interface Plan {
  /** Of all nodes, those that stay included. */
  readonly price: SimulatedPrice
  readonly nodes: number
  readonly removed: number
  /** A new node of the type of a removed one is neither: that one stays. */
  readonly added: readonly AddedNodes[]
  /** Pods of the removed nodes: the fewest that have to move. */
  readonly evictions: number
  /** `namespace/name` of pods that would fit no node of a known price, so that their nodes stay. */
  readonly unplaceable: readonly string[]
}

export interface PlanOptions extends Relaxations {
  /** Names of nodes that stay. */
  readonly stay: ReadonlySet<string>
}

/** Milliseconds for one decision; what it has not placed by then stays where it is. */
const decisionMs = 15_000
/** Nodes of pods without a place stay, which may leave others without one: the search ends after so many rounds. */
const rounds = 4

/** The cluster as it is, as a plan. */
export function asItIs({ instances }: ReportedCluster, unplaceable: readonly string[] = []): Plan {
  const price = sumOfPrices(instances.map(({ pricePerHour }) => pricePerHour))
  return { price, nodes: instances.length, removed: 0, added: [], evictions: 0, unplaceable }
}

/**
 * Places the pods of all nodes that need not stay, on the others and on new ones. A plan never costs more than the
 * cluster as it is: if what is decided would, everything stays.
 */
export async function planned(cluster: ReportedCluster, options: PlanOptions): Promise<Plan> {
  const staying = new Set([...cluster.fixed, ...options.stay])
  const unplaceable = new Set<string>()
  for (let round = 0; round < rounds; round++) {
    const going = cluster.nodes.filter(({ node }) => !staying.has(node.metadata.name))
    if (going.length === 0) break
    const { claims, homeless } = await replaced(cluster.snapshot, going, options)
    if (homeless.size === 0) {
      const plan = planOf(cluster, going, claims, [...unplaceable])
      return plan.price.pricePerHour < asItIs(cluster).price.pricePerHour
        ? plan
        : asItIs(cluster, [...unplaceable])
    }
    for (const { node, pods } of going)
      for (const key of pods.map(keyOf).filter((each) => homeless.has(each))) {
        staying.add(node.metadata.name)
        unplaceable.add(key)
      }
  }
  return asItIs(cluster, [...unplaceable])
}

interface Replacement {
  readonly claims: readonly NewClaim[]
  /** Pods that got no node, or one of unknown price. */
  readonly homeless: ReadonlySet<string>
}

/** Decides about the pods of `going` as if these nodes were gone and nothing else waited. */
async function replaced(
  snapshot: Snapshot,
  going: readonly ReportedNode[],
  options: PlanOptions,
): Promise<Replacement> {
  const study = await Study.open(withoutNodes(snapshot, going, options))
  try {
    const { result } = await study.decide(decisionMs)
    const claims = [...result.claims, ...result.deferred.map(({ claim }) => claim)]
    const priced = claims.filter(({ pricePerHour }) => pricePerHour !== undefined)
    const placed = new Set(
      [...result.placements.map(({ pod }) => pod), ...priced.flatMap(({ pods }) => pods)].map(keyOf),
    )
    const all = going.flatMap(({ pods }) => pods.map(keyOf))
    return { claims: priced, homeless: new Set(all.filter((key) => !placed.has(key))) }
  } finally {
    await study.close()
  }
}

function planOf(
  { instances }: ReportedCluster,
  going: readonly ReportedNode[],
  claims: readonly NewClaim[],
  unplaceable: readonly string[],
): Plan {
  const gone = new Set(going.map(({ instance }) => instance))
  const kept = instances.filter((instance) => !gone.has(instance))
  const { removed, added } = netOf(going, claims)
  return {
    price: sumOfPrices([...kept, ...claims].map(({ pricePerHour }) => pricePerHour)),
    nodes: kept.length + claims.length,
    removed: removed.length,
    added: gathered(added),
    evictions: removed.reduce((sum, { pods }) => sum + pods.length, 0),
    unplaceable,
  }
}

/** Of removed nodes and new ones of the same type and price, those with the most pods stay. */
function netOf(
  going: readonly ReportedNode[],
  claims: readonly NewClaim[],
): { readonly removed: readonly ReportedNode[]; readonly added: readonly NewClaim[] } {
  const alike = Map.groupBy(
    going.toSorted((a, b) => b.pods.length - a.pods.length),
    ({ node, instance }) =>
      `${node.metadata.labels?.[labels.instanceType] ?? ''} ${instance.pricePerHour ?? ''}`,
  )
  const staying = new Set<ReportedNode>()
  const added = claims.filter(({ instanceTypes, pricePerHour }) => {
    const stays = alike.get(`${instanceTypes[0] ?? ''} ${pricePerHour ?? ''}`)?.shift()
    if (stays !== undefined) staying.add(stays)
    return stays === undefined
  })
  return { removed: going.filter((each) => !staying.has(each)), added }
}

function keyOf({ metadata }: Pod): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}
