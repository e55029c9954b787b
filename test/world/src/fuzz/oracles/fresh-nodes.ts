/**
 * Checks whether a pending pod could run on a new node of some pool. It asks the embedded kube-scheduler by
 * adding such nodes one after the other, once the operator has stopped.
 */
import {
  formatResource,
  type KubeObject,
  kinds,
  parseResource,
  type Pod,
  type Resources,
  ownValue,
} from '@tenon/api'
import type { World } from '../../world.ts'
import type { Case, Finding } from '../case.ts'
import type { Observer } from '../observer.ts'
import { type Amounts, type Row, rowsOf } from '../rows.ts'
import { openableDomains, withKnownDomains } from './domains.ts'

const second = 1000
/** Enough to try each kind of instance of each pool; more take time and find little. */
const mostRows = 60

/** @returns a finding for the first pod that a new node would have helped. */
export async function couldRun(world: World, observer: Observer, given: Case): Promise<readonly Finding[]> {
  const waiting = new Set(
    observer
      .workloadPods()
      .filter((pod) => pod.node === undefined && pod.goneMs === undefined)
      .map(({ name }) => name),
  )
  if (waiting.size === 0 || isQuotaFull(world, given)) return []
  const said = lastWords(world)
  const pods = world.pods().filter(({ metadata }) => waiting.has(`${metadata.namespace}/${metadata.name}`))
  const usable = rowsOf(given, wantedValues(given.objects)).filter(
    (row) => isUsable(world, row) && isWithinQuota(world, given, row),
  )
  const all = withKnownDomains(usable, world.pods())
  const affordable = all.filter((row) => isWithinLimits(world, row))
  // A NodePool at its limit still counts for a spread (scheduling.md, scenario 154): without its domains pods
  // would crowd into the others, and its limit may be raised.
  await openDomains(world, openableDomains(all, pods))
  const rows = tried(affordable)
  for (const [index, row] of rows.entries()) {
    const { bound, refusal } = await tryOne(world, row, index, waiting)
    if (refusal !== undefined)
      return [{ oracle: 'everyPodRuns', text: refusal, atMs: world.clock.monotonic() }]
    if (bound === undefined) continue
    const text =
      `pod ${bound} never ran, but kube-scheduler puts it on a fresh node of NodePool ` +
      `${row.pool.metadata.name}, type ${row.type} in ${row.labels['topology.kubernetes.io/zone']}; ` +
      `what it was told: ${said.get(bound) ?? 'nothing'}`
    return [{ oracle: 'everyPodRuns', text, atMs: world.clock.monotonic() }]
  }
  return []
}

function isQuotaFull(world: World, { provider, surroundings }: Case): boolean {
  const { quota = Number.POSITIVE_INFINITY } = surroundings
  return provider !== 'clever-cloud' && world.cluster.cloud.instances().length >= quota
}

/** Whether the platform's quota allows another NodeGroup of the flavor. */
function isWithinQuota(world: World, { provider }: Case, { capacity }: Row): boolean {
  if (provider !== 'clever-cloud') return true
  const { used, limit } = world.cleverCloud.quota()
  return used.cpu + (capacity['cpu'] ?? 0) / 1000 <= limit.cpu
}

/** Adds a full node to each domain. */
async function openDomains(world: World, domains: readonly Row[]): Promise<void> {
  for (const [index, row] of domains.entries())
    startNode(world, `domain-${index}`, { ...row, allocatable: { ...row.allocatable, pods: 0 } })
  if (domains.length > 0) await world.clock.advance(30 * second)
}

/** The newest Event of Tenon for each pod, by `namespace/name`. */
function lastWords(world: World): ReadonlyMap<string, string> {
  const events = world.cluster.server.local.list(kinds.event) as readonly (KubeObject & {
    readonly involvedObject?: { readonly namespace?: string; readonly name?: string }
    readonly source?: { readonly component?: string }
    readonly reportingComponent?: string
    readonly message?: string
  })[]
  return new Map(
    events
      .filter(({ source, reportingComponent }) => (source?.component ?? reportingComponent) === 'karpenter')
      .map(({ involvedObject, message = '' }) => [
        `${involvedObject?.namespace}/${involvedObject?.name}`,
        message.slice(0, 300),
      ]),
  )
}

/** @returns the name of a pending pod that was bound to such a node, or why there can be no such node. */
async function tryOne(
  world: World,
  row: Row,
  index: number,
  waiting: ReadonlySet<string>,
): Promise<{ readonly bound?: string; readonly refusal?: string }> {
  const { local } = world.cluster.server
  const name = `fresh-${index}`
  const kubelet = startNode(world, name, row)
  // Only DaemonSet pods come first, as on planned nodes. The taint alone is not enough: it is removed from a
  // node that is not cordoned.
  if (local.get(kinds.node, undefined, name) !== undefined)
    local.patch(kinds.node, undefined, name, { spec: { unschedulable: true } })
  const clock = world.clock
  const isReady = (): boolean =>
    local
      .get(kinds.node, undefined, name)
      ?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
  await clock.advanceUntil(isReady, 30 * second)
  await clock.advance(3 * second)
  const node = local.get(kinds.node, undefined, name)
  if (node === undefined) {
    kubelet.stop()
    return { refusal: `a node with the labels ${JSON.stringify(row.labels)} cannot register` }
  }
  // Nobody would launch an instance on which its DaemonSet pods do not fit.
  if (!lacksDaemons(world, name)) {
    local.patch(kinds.node, undefined, name, { spec: { unschedulable: null } })
    await clock.advance(12 * second)
  }
  const bound = world
    .pods()
    .find(
      (pod) => pod.spec.nodeName === name && waiting.has(`${pod.metadata.namespace}/${pod.metadata.name}`),
    )
  if (bound !== undefined) return { bound: `${bound.metadata.namespace}/${bound.metadata.name}` }
  kubelet.stop()
  local.delete(kinds.node, undefined, name, {})
  for (const pod of world.pods())
    if (pod.spec.nodeName === name)
      local.delete(kinds.pod, pod.metadata.namespace, pod.metadata.name, { gracePeriodSeconds: 0 })
  await clock.advance(second)
  return {}
}

/** Whether a DaemonSet pod is pending for this node. */
function lacksDaemons(world: World, node: string): boolean {
  return world.pods().some(({ spec }) => {
    const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
    const fields = required?.nodeSelectorTerms.flatMap(({ matchFields = [] }) => matchFields) ?? []
    return spec.nodeName === undefined && fields.some(({ values }) => values?.includes(node) === true)
  })
}

const kubeletVersion = 'v1.34.1'

function startNode({ cluster }: World, name: string, { labels, taints, capacity, allocatable }: Row) {
  return cluster.kubelets.start({
    nodeName: name,
    providerId: `fresh://${name}`,
    systemUuid: name,
    kubeletVersion,
    labels: { ...labels, 'kubernetes.io/hostname': name },
    taints,
    capacity: quantities(capacity),
    allocatable: quantities(allocatable),
    addresses: [],
  })
}

function quantities(amounts: Amounts): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(amounts)
      .filter(([, amount]) => amount > 0)
      .map(([name, amount]) => [name, formatResource(name, amount)]),
  )
}

/** The largest instance of each pool, zone and set of labels first, then the others. */
function tried(rows: readonly Row[]): readonly Row[] {
  const size = ({ allocatable }: Row): number => (allocatable['cpu'] ?? 0) * (allocatable['memory'] ?? 0)
  const sorted = rows.toSorted((a, b) => size(b) - size(a))
  const kindOf = ({ pool, labels, allocatable }: Row): string =>
    JSON.stringify([
      pool.metadata.name,
      Object.entries(labels).filter(([key]) => !ofType.has(key)),
      Object.keys(allocatable).toSorted(),
    ])
  const seen = new Map<string, number>()
  const order = sorted.map((row) => {
    const kind = kindOf(row)
    const nth = seen.get(kind) ?? 0
    seen.set(kind, nth + 1)
    return { row, nth }
  })
  return order
    .toSorted((a, b) => a.nth - b.nth)
    .slice(0, mostRows)
    .map(({ row }) => row)
}

/** Labels that describe the size of an instance. */
const ofType: ReadonlySet<string> = new Set([
  'node.kubernetes.io/instance-type',
  'karpenter.kwok.sh/instance-size',
  'karpenter.kwok.sh/instance-family',
  'karpenter.kwok.sh/instance-cpu',
  'karpenter.kwok.sh/instance-memory',
  'exoscale.com/instance-size',
  'clever-cloud.com/flavor',
  'karpenter.clever-cloud.com/instance-cpu',
  'karpenter.clever-cloud.com/instance-memory',
])

/** Pools that are invalid or being deleted launch nothing; those with minValues may have too few types. */
function isUsable(world: World, { pool, type }: Row): boolean {
  const now = world.cluster.server.local.get(
    { group: 'karpenter.sh', version: 'v1', kind: 'NodePool', plural: 'nodepools', namespaced: false },
    undefined,
    pool.metadata.name,
  )
  if (now === undefined || type === '') return false
  return (pool.spec.template.spec.requirements ?? []).every(({ minValues }) => minValues === undefined)
}

/**
 * Whether an instance certainly stays within the limits. A type that was never launched may have its full
 * nominal capacity.
 */
function isWithinLimits(world: World, { pool, type, capacity, promised }: Row): boolean {
  const limits = Object.entries(pool.spec.limits ?? {})
  if (limits.length === 0) return true
  const own = world
    .nodes()
    .filter(({ metadata }) => metadata.labels?.['karpenter.sh/nodepool'] === pool.metadata.name)
  const isKnown = world
    .nodes()
    .some(({ metadata }) => metadata.labels?.['node.kubernetes.io/instance-type'] === type)
  const amounts = isKnown ? capacity : promised
  return limits.every(([name, limit]) => {
    const used = own.reduce(
      (sum, node) =>
        sum + (name === 'nodes' ? 1 : parseResource(name, ownValue(node.status?.capacity, name) ?? '0')),
      0,
    )
    const more: Resources[string] = name === 'nodes' ? 1 : (ownValue(amounts, name) ?? 0)
    return used + more <= parseResource(name, limit)
  })
}

/**
 * Values of each key that pods may ask for. A value that only another NodePool lists does not count: a pod that
 * cannot go there does not bring the value to a pool that leaves the key open.
 */
export function wantedValues(objects: readonly KubeObject[]): ReadonlyMap<string, ReadonlySet<string>> {
  const wanted = new Map<string, Set<string>>()
  const add = (key: string, value: string): void => {
    wanted.set(key, (wanted.get(key) ?? new Set()).add(value))
  }
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) {
      for (const each of value) visit(each)
      return
    }
    const fields = new Map(Object.entries(value as Readonly<Record<string, unknown>>))
    const [key, values] = [fields.get('key'), fields.get('values')]
    if (typeof key === 'string' && Array.isArray(values)) for (const each of values) add(key, String(each))
    const selector = fields.get('nodeSelector') as Pod['spec']['nodeSelector']
    for (const [name, each] of Object.entries(selector ?? {})) add(name, each)
    for (const each of fields.values()) visit(each)
  }
  for (const object of objects) if (object.kind !== 'NodePool') visit(object)
  return wanted
}
