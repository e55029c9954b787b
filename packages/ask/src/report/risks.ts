/** What may go wrong in a cluster, whoever adds its nodes (adoption.md 1). */
import {
  counted,
  karpenterKinds,
  kinds,
  labels,
  matchesSelector,
  minorOf,
  type Node,
  ownValue,
  parseResources,
  type Pod,
} from '@tenon/api'
import { isProvisionable, isReschedulable } from '@tenon/operator/objects'
import { ofKind } from '../cost/priced.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import { workloadName } from './holds.ts'
import type { ReportedCluster } from './cluster.ts'
import { shownItems } from './obstacles.ts'

export type RiskKind = 'noType' | 'noSecondHome' | 'spread' | 'limit' | 'oldNode' | 'versionSkew'

export interface RiskItem {
  /** Such as `Deployment shop/web` or `Node n1`. */
  readonly name: string
  /** How it shows, such as `94 % of cpu`; absent where the name says all. */
  readonly detail?: string
}

export interface Risk {
  readonly kind: RiskKind
  /** No more than {@link shownItems}. */
  readonly items: readonly RiskItem[]
  readonly itemCount: number
}

export interface RiskFacts {
  /** Pods that would fit no node again (`Plan.unplaceable`). */
  readonly unplaceable: readonly string[]
  /** Of the API server, such as `v1.36.3`; undefined if unknown. */
  readonly serverVersion: string | undefined
}

const dayMs = 86_400_000
const oldDays = 30
/** Minor versions that kubelets may be older than the API server. */
const kubeletSkew = 3
/** Part of a limit from which on it is nearly reached. */
const nearLimit = 0.9
const decisionMs = 15_000

/** Pods without a node first; only those that there are. */
export async function risksOf(
  { snapshot }: ReportedCluster,
  { unplaceable, serverVersion }: RiskFacts,
): Promise<readonly Risk[]> {
  const pods = ofKind(snapshot, kinds.pod)
  const nodes = ofKind(snapshot, kinds.node)
  const byKey = new Map(pods.map((pod) => [`${pod.metadata.namespace ?? ''}/${pod.metadata.name}`, pod]))
  const homeless = unplaceable.flatMap((key) => byKey.get(key) ?? [])
  const found: readonly (readonly [RiskKind, readonly RiskItem[]])[] = [
    ['noType', workloads(await withoutNode(snapshot, pods))],
    ['noSecondHome', workloads(homeless)],
    ['spread', brokenSpreads(pods, nodes)],
    ['limit', nearLimits(snapshot)],
    ['oldNode', oldNodes(nodes, snapshot.takenAtMs)],
    ['versionSkew', skewed(nodes, serverVersion)],
  ]
  return found
    .filter(([, items]) => items.length > 0)
    .map(([kind, items]) => ({ kind, items: items.slice(0, shownItems), itemCount: items.length }))
}

/** Pods that wait, and would go on to wait. */
async function withoutNode(snapshot: Snapshot, pods: readonly Pod[]): Promise<readonly Pod[]> {
  if (!pods.some(isProvisionable)) return []
  const study = await Study.open(snapshot)
  try {
    const { input, result } = await study.decide(decisionMs)
    return [...result.failures, ...input.refused].map(({ pod }) => pod)
  } finally {
    await study.close()
  }
}

function workloads(pods: readonly Pod[]): readonly RiskItem[] {
  return Array.from(Map.groupBy(pods, workloadName), ([name, each]) => ({
    name,
    detail: counted(each.length, 'pod'),
  })).toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** Workloads with a hard spread that does not hold now, or cannot, as there are fewer domains than it wants. */
function brokenSpreads(pods: readonly Pod[], nodes: readonly Node[]): readonly RiskItem[] {
  const nodeOf = new Map(nodes.map((node) => [node.metadata.name, node]))
  const running = pods.filter((pod) => nodeOf.has(pod.spec.nodeName ?? '') && isReschedulable(pod))
  const inNamespace = Map.groupBy(running, ({ metadata }) => metadata.namespace)
  return Array.from(Map.groupBy(running, workloadName), ([name, [pod]]): readonly RiskItem[] => {
    if (pod === undefined) return []
    const neighbours = inNamespace.get(pod.metadata.namespace) ?? []
    const [detail] = (pod.spec.topologySpreadConstraints ?? []).flatMap((constraint) =>
      constraint.whenUnsatisfiable === 'ScheduleAnyway'
        ? []
        : (whyBroken(constraint, domainCounts(constraint, pod, neighbours, nodeOf)) ?? []),
    )
    return detail === undefined ? [] : [{ name, detail }]
  })
    .flat()
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

type SpreadConstraint = NonNullable<Pod['spec']['topologySpreadConstraints']>[number]

function whyBroken(
  { maxSkew, minDomains = 1, topologyKey }: SpreadConstraint,
  counts: readonly number[],
): string | undefined {
  if (counts.length < minDomains) return `${counts.length} of ${minDomains} domains of ${topologyKey}`
  const skew = counts.length === 0 ? 0 : largest(counts) - smallest(counts)
  return skew > maxSkew ? `skew ${skew} over ${topologyKey}, at most ${maxSkew} allowed` : undefined
}

/** The pods that a constraint counts, in each domain where the pod may run. */
function domainCounts(
  { labelSelector, topologyKey }: SpreadConstraint,
  pod: Pod,
  neighbours: readonly Pod[],
  nodeOf: ReadonlyMap<string, Node>,
): readonly number[] {
  const counts = new Map<string, number>()
  const add = (node: Node | undefined, count: number): void => {
    const domain = ownValue(node?.metadata.labels, topologyKey)
    if (domain !== undefined) counts.set(domain, (counts.get(domain) ?? 0) + count)
  }
  for (const node of nodeOf.values()) if (mayRunOn(pod, node)) add(node, 0)
  for (const { metadata, spec } of neighbours)
    if (labelSelector !== undefined && matchesSelector(labelSelector, metadata.labels))
      add(nodeOf.get(spec.nodeName ?? ''), 1)
  return [...counts.values()]
}

/** By its node selector alone: what else excludes a node from a spread makes it hold sooner. */
function mayRunOn({ spec }: Pod, { metadata }: Node): boolean {
  return Object.entries(spec.nodeSelector ?? {}).every(
    ([key, value]) => ownValue(metadata.labels, key) === value,
  )
}

const largest = (amounts: readonly number[]): number => amounts.reduce((a, b) => Math.max(a, b))
const smallest = (amounts: readonly number[]): number => amounts.reduce((a, b) => Math.min(a, b))

/** Limits of NodePools of which nine tenths are used. */
function nearLimits(snapshot: Snapshot): readonly RiskItem[] {
  const nodes = Map.groupBy(ofKind(snapshot, kinds.node), ({ metadata }) =>
    ownValue(metadata.labels, labels.nodePool),
  )
  return ofKind(snapshot, karpenterKinds.nodePool).flatMap(({ metadata, spec }): readonly RiskItem[] =>
    Object.entries(parseResources(spec.limits)).flatMap(([resource, most]) => {
      const own = nodes.get(metadata.name) ?? []
      const used =
        resource === 'nodes'
          ? own.length
          : own.reduce(
              (sum, { status }) => sum + (ownValue(parseResources(status?.capacity), resource) ?? 0),
              0,
            )
      if (most <= 0 || used < most * nearLimit) return []
      return [
        { name: `NodePool ${metadata.name}`, detail: `${Math.round((used / most) * 100)} % of ${resource}` },
      ]
    }),
  )
}

function oldNodes(nodes: readonly Node[], nowMs: number): readonly RiskItem[] {
  return nodes
    .map(({ metadata }) => ({
      name: `Node ${metadata.name}`,
      days: Math.floor((nowMs - Date.parse(metadata.creationTimestamp ?? '')) / dayMs),
    }))
    .filter(({ days }) => days > oldDays)
    .toSorted((a, b) => b.days - a.days || (a.name < b.name ? -1 : 1))
    .map(({ name, days }) => ({ name, detail: counted(days, 'day') }))
}

/** Kubelets that are newer than the API server, or too old for it; without it, for the newest kubelet. */
function skewed(nodes: readonly Node[], serverVersion: string | undefined): readonly RiskItem[] {
  const versions = nodes.flatMap(({ metadata, status }) => {
    const version = status?.nodeInfo?.kubeletVersion
    const minor = version === undefined ? undefined : minorOf(version)
    return version === undefined || minor === undefined ? [] : [{ name: metadata.name, version, minor }]
  })
  if (versions.length === 0) return []
  const known = serverVersion === undefined ? undefined : minorOf(serverVersion)
  const server = known ?? largest(versions.map(({ minor }) => minor))
  return versions
    .filter(({ minor }) => minor > server || minor < server - kubeletSkew)
    .map(({ name, version }) => ({ name: `Node ${name}`, detail: `kubelet ${version}` }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
