/** Tables of `tenon get`: kubectl's columns, plus prices, requests and why nodes are kept. */
import {
  accumulate,
  age,
  type CapacityBuffer,
  type CapacityQuota,
  conditionOf,
  isConditionTrue,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  ownValue,
  parseResource,
  type Pod,
  podRequests,
  priceText,
  quotaValidType,
  selectorText,
  sumOfPrices,
} from '@tenon/api'
import type { Style } from '../../kubectl/color.ts'
import type { Column } from '../../kubectl/output/table.ts'
import { type Facts, poolOf } from './facts.ts'

const none = '<none>'
const unknown = '<unknown>'

type TableOf<T extends KubeObject> = (facts: Facts) => readonly Column<T>[]

function labelOf({ metadata }: KubeObject, key: string): string {
  return ownValue(metadata.labels, key) ?? none
}

/** Adds `NAME` as the first and `AGE` as the last column. */
function framed<T extends KubeObject>({ nowMs }: Facts, columns: readonly Column<T>[]): readonly Column<T>[] {
  return [
    { title: 'NAME', value: ({ metadata }) => metadata.name },
    ...columns,
    { title: 'AGE', value: ({ metadata }) => age(metadata.creationTimestamp, nowMs) },
  ]
}

/** The title contains the currency. */
function priceColumn<T extends KubeObject>(facts: Facts): Column<T> {
  return {
    title: `${facts.currency ?? 'PRICE'}/HOUR`,
    value: (object) => priceText(facts.priceOf(object), unknown),
  }
}

function whyColumn<T extends KubeObject>(facts: Facts): Column<T> {
  return { title: 'WHY-KEPT', value: (object) => facts.decisionOn(object)?.cause ?? none }
}

/** The full sentence, which only the wide output has. */
function whyTextColumn<T extends KubeObject>(facts: Facts): Column<T> {
  return { title: 'REASON', value: (object) => facts.decisionOn(object)?.message ?? none, isWide: true }
}

const typeColumns: readonly Column<KubeObject>[] = [
  { title: 'TYPE', value: (object) => labelOf(object, labels.instanceType) },
  { title: 'CAPACITY', value: (object) => labelOf(object, labels.capacityType) },
  { title: 'ZONE', value: (object) => labelOf(object, labels.zone) },
]

const mebibyte = 1024 ** 2

/** `1.5/4` cores. */
function cores(requested: number | undefined, allocatable: number): string {
  const text = (millis: number) => String(Math.round(millis / 10) / 100)
  return `${requested === undefined ? '?' : text(requested)}/${text(allocatable)}`
}

/** `512Mi/3912Mi`. */
function mebibytes(requested: number | undefined, allocatable: number): string {
  const text = (bytes: number) => `${Math.round(bytes / mebibyte)}Mi`
  return `${requested === undefined ? '?' : text(requested)}/${text(allocatable)}`
}

/** An amount in canonical units; 0 if missing. */
function amountOf(list: Readonly<Record<string, string>> | undefined, name: string): number {
  return parseResource(name, ownValue(list, name) ?? '0')
}

/** The status of a condition; `Unknown` if it is not set. */
function conditionStatus(
  object: { readonly status?: { readonly conditions?: readonly { type: string; status: string }[] } },
  type: string,
): string {
  return object.status?.conditions?.find((condition) => condition.type === type)?.status ?? 'Unknown'
}

const goodStatuses: ReadonlySet<string> = new Set(['Completed', 'Ready', 'Running', 'Succeeded', 'True'])
const passingStatuses =
  /^(ContainerCreating|Init:\d+\/\d+|Pending|Terminating|Unknown|.*,SchedulingDisabled)$/

/** For nodes, pods, and conditions that should be True. */
function statusStyle(status: string): Style {
  if (goodStatuses.has(status)) return 'green'
  return passingStatuses.test(status) ? 'yellow' : 'red'
}

/** kubectl's columns, requests and allocatable, the price, and why each node is kept. */
export const nodeTable: TableOf<Node> = (facts) =>
  framed(facts, [
    { title: 'STATUS', value: nodeStatus, style: statusStyle },
    { title: 'ROLES', value: rolesOf },
    { title: 'VERSION', value: ({ status }) => status?.nodeInfo?.kubeletVersion ?? none },
    {
      title: 'CPU',
      value: (node) => cores(requestedOn(node, facts)['cpu'], amountOf(node.status?.allocatable, 'cpu')),
    },
    {
      title: 'MEMORY',
      value: (node) =>
        mebibytes(requestedOn(node, facts)['memory'], amountOf(node.status?.allocatable, 'memory')),
    },
    priceColumn(facts),
    whyColumn(facts),
    ...typeColumns.map((column) => ({ ...column, isWide: true as const })),
    { title: 'NODEPOOL', value: (node) => labelOf(node, labels.nodePool), isWide: true },
    whyTextColumn(facts),
  ])

function nodeStatus({ spec, status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status
  const word = ready === undefined ? 'Unknown' : ready === 'True' ? 'Ready' : 'NotReady'
  return spec?.unschedulable === true ? `${word},SchedulingDisabled` : word
}

const rolePrefix = 'node-role.kubernetes.io/'

function rolesOf({ metadata }: Node): string {
  const roles = Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(rolePrefix)) return [key.slice(rolePrefix.length)]
    return key === 'kubernetes.io/role' && value !== '' ? [value] : []
  })
  return roles.length === 0 ? none : roles.toSorted().join(',')
}

/** Undefined if the node's pods could not be listed. */
function requestedOn(
  { metadata }: Node,
  facts: Facts,
): { readonly cpu?: number | undefined; readonly memory?: number | undefined } {
  const pods = facts.podsOn(metadata.name)
  if (pods === undefined) return {}
  const [sum, running] = [
    { cpu: 0, memory: 0 },
    pods.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed'),
  ]
  for (const { spec, status } of running) accumulate(sum, podRequests(spec, status))
  return sum
}

/** The columns of the CustomResourceDefinition, the price, and why each claim is kept. */
export const claimTable: TableOf<NodeClaim> = (facts) =>
  framed(facts, [
    ...typeColumns,
    { title: 'NODE', value: ({ status }) => status?.nodeName ?? none },
    { title: 'READY', value: (claim) => conditionStatus(claim, 'Ready'), style: statusStyle },
    priceColumn(facts),
    whyColumn(facts),
    { title: 'IMAGEID', value: ({ status }) => status?.imageID ?? none, isWide: true },
    { title: 'ID', value: ({ status }) => status?.providerID ?? none, isWide: true },
    { title: 'NODEPOOL', value: (claim) => labelOf(claim, labels.nodePool), isWide: true },
    { title: 'NODECLASS', value: ({ spec }) => spec.nodeClassRef.name, isWide: true },
    { title: 'DRIFTED', value: (claim) => conditionStatus(claim, 'Drifted'), isWide: true },
    whyTextColumn(facts),
  ])

/** The columns of the CustomResourceDefinition, and the total price. */
export const poolTable: TableOf<NodePool> = (facts) => {
  const claimsOf = Map.groupBy(facts.claims, poolOf)
  return framed(facts, [
    { title: 'NODECLASS', value: ({ spec }) => spec.template.spec.nodeClassRef.name },
    { title: 'NODES', value: ({ status }) => String(status?.nodes ?? 0) },
    { title: 'READY', value: (pool) => conditionStatus(pool, 'Ready'), style: statusStyle },
    { title: 'PAUSED', value: (pool) => (isConditionTrue(pool, 'Paused') ? 'True' : 'False') },
    {
      title: `${facts.currency ?? 'PRICE'}/HOUR`,
      value: (pool) => priceOfAll(claimsOf.get(pool.metadata.name) ?? [], facts),
    },
    { title: 'WEIGHT', value: ({ spec }) => String(spec.weight ?? none), isWide: true },
    { title: 'CPU', value: ({ status }) => ownValue(status?.resources, 'cpu') ?? none, isWide: true },
    { title: 'MEMORY', value: ({ status }) => ownValue(status?.resources, 'memory') ?? none, isWide: true },
    { title: 'WHY-PAUSED', value: whyPaused, isWide: true },
  ])
}

function whyPaused(pool: NodePool): string {
  const paused = conditionOf(pool, 'Paused')
  return paused?.status === 'True' ? paused.message : none
}

/** `1.2500`, or `1.2500+2?` with two instances of unknown price. */
function priceOfAll(claims: readonly KubeObject[], facts: Facts): string {
  const { pricePerHour, unpriced } = sumOfPrices(claims.map((claim) => facts.priceOf(claim)))
  if (unpriced === claims.length && unpriced > 0) return unknown
  return unpriced === 0 ? priceText(pricePerHour) : `${priceText(pricePerHour)}+${unpriced}?`
}

/** kubectl's columns, and requests. */
export const podTable: TableOf<Pod> = (facts) =>
  framed(facts, [
    { title: 'READY', value: readyOf },
    { title: 'STATUS', value: podStatus, style: statusStyle },
    { title: 'RESTARTS', value: (pod) => String(restartsOf(pod)) },
    { title: 'CPU', value: ({ spec, status }) => `${podRequests(spec, status)['cpu'] ?? 0}m` },
    {
      title: 'MEMORY',
      value: ({ spec, status }) => `${Math.round((podRequests(spec, status)['memory'] ?? 0) / 1024 ** 2)}Mi`,
    },
    { title: 'NODE', value: ({ spec }) => spec.nodeName ?? none, isWide: true },
    { title: 'NOMINATED-NODE', value: ({ status }) => status?.nominatedNodeName ?? none, isWide: true },
  ])

interface ContainerState {
  readonly ready?: boolean
  readonly restartCount?: number
  readonly state?: {
    readonly waiting?: { readonly reason?: string }
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number }
    readonly running?: object
  }
}

interface ShownStatus {
  readonly phase?: string
  readonly reason?: string
  readonly containerStatuses?: readonly ContainerState[]
  readonly initContainerStatuses?: readonly ContainerState[]
}

function shownStatus({ status }: Pod): ShownStatus {
  return status ?? {}
}

function readyOf(pod: Pod): string {
  const { containerStatuses = [] } = shownStatus(pod)
  return `${containerStatuses.filter(({ ready }) => ready === true).length}/${pod.spec.containers.length}`
}

function restartsOf(pod: Pod): number {
  return (shownStatus(pod).containerStatuses ?? []).reduce(
    (sum, { restartCount = 0 }) => sum + restartCount,
    0,
  )
}

/** The most specific status, as in kubectl: of a waiting or failed container, else of the pod. */
export function podStatus(pod: Pod): string {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating'
  const { phase = 'Unknown', reason, containerStatuses = [], initContainerStatuses = [] } = shownStatus(pod)
  const at = initContainerStatuses.findIndex(({ state }) => state?.terminated?.exitCode !== 0)
  const initializing = initContainerStatuses[at]
  if (phase === 'Pending' && initializing !== undefined && containerStatuses.length > 0) {
    const word = reasonOf(initializing)
    return word === undefined ? `Init:${at}/${initContainerStatuses.length}` : `Init:${word}`
  }
  const containerReason = containerStatuses.map(reasonOf).findLast((word) => word !== undefined)
  return containerReason ?? reason ?? phase
}

function reasonOf({ state }: ContainerState): string | undefined {
  const { waiting, terminated } = state ?? {}
  if (waiting !== undefined) return waiting.reason === 'PodInitializing' ? undefined : waiting.reason
  if (terminated === undefined) return undefined
  const { reason, exitCode } = terminated
  return reason ?? (exitCode === undefined ? undefined : `ExitCode:${exitCode}`)
}

/** What the capacity is for, how much there is, and what it costs. */
export const bufferTable: TableOf<CapacityBuffer> = (facts) =>
  framed(facts, [
    { title: 'FOR', value: reference },
    { title: 'WANTED', value: ({ status }) => String(status?.replicas ?? none) },
    { title: 'KEPT', value: (buffer) => String(facts.roomOf(buffer)?.kept ?? unknown) },
    {
      title: 'READY',
      value: (buffer) => conditionStatus(buffer, 'ReadyForProvisioning'),
      style: statusStyle,
    },
    { title: 'PROVISIONED', value: (buffer) => conditionStatus(buffer, 'Provisioning'), style: statusStyle },
    {
      title: `${facts.currency ?? 'PRICE'}/HOUR`,
      value: (buffer) => priceText(facts.roomOf(buffer)?.pricePerHour, unknown),
    },
    { title: 'STRATEGY', value: ({ spec }) => spec.provisioningStrategy ?? none, isWide: true },
  ])

/** What is used of each limit, and whether the quota is enforced. */
export const quotaTable: TableOf<CapacityQuota> = (facts) =>
  framed(facts, [
    { title: 'SELECTOR', value: ({ spec }) => selectorText(spec.selector ?? {}) || 'all nodes' },
    { title: 'NODES', value: (quota) => usedOf(quota, 'nodes') },
    { title: 'CPU', value: (quota) => usedOf(quota, 'cpu') },
    { title: 'MEMORY', value: (quota) => usedOf(quota, 'memory') },
    { title: 'VALID', value: (quota) => conditionStatus(quota, quotaValidType), style: statusStyle },
    { title: 'OTHERS', value: othersOf, isWide: true },
  ])

/** `used/limit`, or `<none>` without a limit. */
function usedOf({ spec, status }: CapacityQuota, name: string): string {
  const limit = ownValue(spec.limits.resources, name)
  if (limit === undefined) return none
  return `${ownValue(status?.used?.resources, name) ?? unknown}/${limit}`
}

function othersOf(quota: CapacityQuota): string {
  const others = Object.keys(quota.spec.limits.resources).filter(
    (name) => !['nodes', 'cpu', 'memory'].includes(name),
  )
  return others.map((name) => `${name}=${usedOf(quota, name)}`).join(',') || none
}

/** `podtemplate/web`, `deployment/web`. */
function reference({ spec }: CapacityBuffer): string {
  const { podTemplateRef, scalableRef } = spec
  if (podTemplateRef !== undefined) return `podtemplate/${podTemplateRef.name}`
  return scalableRef === undefined ? none : `${scalableRef.kind.toLowerCase()}/${scalableRef.name}`
}
