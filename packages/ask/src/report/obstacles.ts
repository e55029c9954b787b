/** What stands in the way of a cheaper cluster, ranked by money (adoption.md 1). */
import {
  isKnownPrice,
  karpenterKinds,
  labels,
  type NodePool,
  ownValue,
  type Pod,
  type PricePerHour,
  type Requirement,
  type Resources,
} from '@tenon/api'
import { priceShares } from '@tenon/operator/objects'
import { ofKind, type PricedInstance } from '../cost/priced.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import type { ReportedCluster, ReportedNode } from './cluster.ts'
import { claimKeys, type Hold, type HoldKind, holdKinds, holdsOf, workloadName } from './holds.ts'
import { type Plan, planned, type PlanOptions } from './plan.ts'

export type ObstacleKind =
  | HoldKind
  | 'nodePoolTypes'
  | 'singleReplica'
  | 'daemons'
  | 'noRequests'
  | 'unusedRequests'

/** One object among those that make an obstacle. */
export interface ObstacleItem {
  readonly name: string
  readonly nodes: number
  readonly pods: number
}

export interface Obstacle {
  readonly kind: ObstacleKind
  /**
   * What it costs per hour: what Tenon could save besides if it were gone; of single replicas the part of the saving
   * that needs their eviction; of daemons and unused requests what is paid for them. Undefined if that is unknown.
   */
  readonly pricePerHour: PricePerHour
  readonly nodes: number
  readonly pods: number
  /** Those on the most nodes first, no more than {@link shownItems}. */
  readonly items: readonly ObstacleItem[]
  /** Of all of them. */
  readonly itemCount: number
}

/** Usage of a pod by `namespace/name`, in canonical units; undefined if nobody measures it. */
export type MeasuredUsage = ReadonlyMap<string, Resources> | undefined

export const shownItems = 20
/** Part of a node's price that daemons may take unnoticed. */
const daemonShare = 0.1
/** Requests below this multiple of the usage are ordinary headroom. */
const headroom = 2

/** A pod on its node, or a node alone. */
interface Finding {
  readonly name: string
  readonly node: string
  readonly pods: number
}

export interface Reach {
  /** By the moves that everything allows that {@link obstacles} lists. */
  readonly plan: Plan
  /** From nothing. */
  readonly least: Plan
  readonly obstacles: readonly Obstacle[]
}

/** Plans both, and what each obstacle costs between them. */
export async function reachOf(cluster: ReportedCluster, usage: MeasuredUsage): Promise<Reach> {
  const holds = holdsOf(cluster)
  const stayFor = (kinds: readonly HoldKind[]): ReadonlySet<string> =>
    new Set(holds.filter(({ kind }) => kinds.includes(kind)).map(({ node }) => node))
  const plan = await planned(cluster, { stay: stayFor(holdKinds) })
  const anew = holds.length === 0 ? plan : await planned(cluster, { stay: new Set() })
  // A plan by moves is one from nothing as well, and neither search is complete.
  const least = anew.price.pricePerHour <= plan.price.pricePerHour ? anew : plan
  const without = async (options: PlanOptions, base: Plan): Promise<number> =>
    Math.max(0, base.price.pricePerHour - (await planned(cluster, options)).price.pricePerHour)

  const obstacles: Obstacle[] = []
  for (const kind of holdKinds) {
    const of = holds.filter((hold) => hold.kind === kind)
    if (of.length === 0) continue
    const stay = stayFor(holdKinds.filter((each) => each !== kind))
    const relaxPod = kind === 'localVolume' ? withoutVolumes : undefined
    const saved = await without({ stay, ...(relaxPod && { relaxPod }) }, plan)
    obstacles.push(obstacle(kind, of.map(asFinding), saved))
  }
  const isAboutTypes = choosesTypes(cluster.snapshot)
  const isNarrow = ({ spec }: NodePool) => spec.template.spec.requirements.some(isAboutTypes)
  if (ofKind(cluster.snapshot, karpenterKinds.nodePool).some(isNarrow)) {
    const relaxPool = (pool: NodePool) => withRequirements(pool, (each) => !isAboutTypes(each))
    const saved = await without({ stay: new Set(), relaxPool }, least)
    const findings = cluster.nodes.flatMap(({ node, pool, pods }) =>
      pool !== undefined && isNarrow(pool)
        ? [{ name: `NodePool ${pool.metadata.name}`, node: node.metadata.name, pods: pods.length }]
        : [],
    )
    if (saved > 0) obstacles.push(obstacle('nodePoolTypes', findings, saved))
  }
  const single = singleReplicas(cluster.nodes)
  if (single.length > 0) {
    const stay = new Set([...stayFor(holdKinds), ...single.map(({ node }) => node)])
    const spared = (await planned(cluster, { stay })).price.pricePerHour
    obstacles.push(obstacle('singleReplica', single, Math.max(0, spared - plan.price.pricePerHour)))
  }
  obstacles.push(...daemons(cluster), ...noRequests(cluster.nodes), ...unusedRequests(cluster, usage))
  return { plan, least, obstacles: obstacles.toSorted(byPrice) }
}

/** The most expensive first, unknown amounts last. */
function byPrice(a: Obstacle, b: Obstacle): number {
  return (b.pricePerHour ?? -1) - (a.pricePerHour ?? -1) || b.nodes - a.nodes || (a.kind < b.kind ? -1 : 1)
}

function asFinding({ by, node, pods }: Hold): Finding {
  return { name: by, node, pods }
}

function obstacle(kind: ObstacleKind, findings: readonly Finding[], pricePerHour: PricePerHour): Obstacle {
  const items = Array.from(
    Map.groupBy(findings, ({ name }) => name),
    ([name, each]): ObstacleItem => ({
      name,
      nodes: new Set(each.map(({ node }) => node)).size,
      pods: each.reduce((sum, { pods }) => sum + pods, 0),
    }),
  ).toSorted((a, b) => b.nodes - a.nodes || b.pods - a.pods || (a.name < b.name ? -1 : 1))
  return {
    kind,
    pricePerHour,
    nodes: new Set(findings.map(({ node }) => node)).size,
    pods: findings.reduce((sum, { pods }) => sum + pods, 0),
    items: items.slice(0, shownItems),
    itemCount: items.length,
  }
}

function withoutVolumes(pod: Pod): Pod {
  return claimKeys(pod).length === 0 ? pod : { ...pod, spec: { ...pod.spec, volumes: [] } }
}

/** Requirements that say where a node is and what it is for, not which type it has. */
const placing: ReadonlySet<string> = new Set([
  labels.arch,
  labels.os,
  labels.zone,
  labels.region,
  labels.capacityType,
  labels.hostname,
  labels.windowsBuild,
])

/** Whether a requirement chooses among instance types, by a label that types have. */
const choosesTypes =
  ({ cloud }: Snapshot) =>
  ({ key }: { readonly key: string }): boolean =>
    key === labels.instanceType || (cloud.wellKnownLabels.includes(key) && !placing.has(key))

function withRequirements(pool: NodePool, isKept: (requirement: Requirement) => boolean): NodePool {
  const { template } = pool.spec
  const requirements = template.spec.requirements.filter(isKept)
  return {
    ...pool,
    spec: { ...pool.spec, template: { ...template, spec: { ...template.spec, requirements } } },
  }
}

/** The only pod of its workload, and pods without one. Moving it interrupts what it does. */
function singleReplicas(nodes: readonly ReportedNode[]): readonly Finding[] {
  const pods = nodes.flatMap(({ node, pods: own }) =>
    own.map((pod) => ({ name: workloadName(pod), node: node.metadata.name, pods: 1 })),
  )
  return [...Map.groupBy(pods, ({ name }) => name).values()].filter(({ length }) => length === 1).flat()
}

/** Nodes of which DaemonSets take more than a tenth, and what that costs. */
function daemons({ nodes }: ReportedCluster): readonly Obstacle[] {
  const findings: Finding[] = []
  let paid: PricePerHour
  for (const { node, instance } of nodes) {
    const of = instance.pods.filter(({ owner }) => owner.kind === 'DaemonSet')
    const share = shareOf(instance, of)
    if (share <= daemonShare) continue
    for (const { namespace, owner } of of)
      findings.push({ name: `DaemonSet ${namespace}/${owner.name}`, node: node.metadata.name, pods: 1 })
    if (instance.pricePerHour !== undefined) paid = (paid ?? 0) + instance.pricePerHour * share
  }
  return findings.length === 0 ? [] : [obstacle('daemons', findings, paid)]
}

/** The part of an instance that some of its pods take, from 0 to 1, as prices are shared. */
function shareOf(instance: PricedInstance, some: PricedInstance['pods']): number {
  const shares = priceShares(
    1,
    instance.allocatable,
    instance.pods.map(({ requests }) => requests),
  )
  return instance.pods.reduce((sum, pod, at) => sum + (some.includes(pod) ? (shares[at] ?? 0) : 0), 0)
}

/** Pods that ask for neither CPU nor memory: nobody can plan room for them, so what they cost is unknown. */
function noRequests(nodes: readonly ReportedNode[]): readonly Obstacle[] {
  const findings = nodes.flatMap(({ node, instance }) =>
    instance.pods
      .filter(({ requests }) => (requests['cpu'] ?? 0) === 0 && (requests['memory'] ?? 0) === 0)
      .map(({ namespace, owner }) => ({
        name: `${owner.kind} ${namespace}/${owner.name}`,
        node: node.metadata.name,
        pods: 1,
      })),
  )
  return findings.length === 0 ? [] : [obstacle('noRequests', findings, undefined)]
}

/** Requests of more than twice what is used of every requested resource, and what is paid for the unused part. */
function unusedRequests({ nodes }: ReportedCluster, usage: MeasuredUsage): readonly Obstacle[] {
  if (usage === undefined) return []
  const findings: Finding[] = []
  let paid: PricePerHour
  for (const { node, instance } of nodes) {
    const { allocatable, pods, pricePerHour } = instance
    const shares = priceShares(
      1,
      allocatable,
      pods.map(({ requests }) => requests),
    )
    for (const [at, { namespace, name, owner, requests }] of pods.entries()) {
      const used = usage.get(`${namespace}/${name}`)
      const part = used === undefined ? undefined : usedPart(requests, used)
      if (part === undefined || part * headroom >= 1) continue
      findings.push({ name: `${owner.kind} ${namespace}/${owner.name}`, node: node.metadata.name, pods: 1 })
      if (isKnownPrice(pricePerHour)) paid = (paid ?? 0) + pricePerHour * (shares[at] ?? 0) * (1 - part)
    }
  }
  return findings.length === 0 ? [] : [obstacle('unusedRequests', findings, paid)]
}

/** The larger part of the CPU and memory requests that is used; undefined if that is not measured. */
function usedPart(requests: Resources, used: Resources): number | undefined {
  const parts = ['cpu', 'memory'].flatMap((name) => {
    const [asked, had] = [ownValue(requests, name) ?? 0, ownValue(used, name)]
    return asked === 0 || had === undefined ? [] : [had / asked]
  })
  return parts.length === 0 ? undefined : Math.max(...parts)
}
