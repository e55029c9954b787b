/** One instance: its Node and its NodeClaim, and which of them counts for what (cluster-state.md 2.1, 4). */
import {
  annotations,
  conditionOf,
  difference,
  disruptedTaint,
  isConditionTrue,
  isKnownEphemeralTaint,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  ownValue,
  parseDuration,
  parseResources,
  type Resources,
  sameTaint,
  setOwn,
  type Taint,
} from '@tenon/api'
import type { NodeInput } from '@tenon/engine'
import type { NodeUse } from '../pods/pod-index.ts'
import type { Settings } from '../../settings.ts'

export interface StateNode {
  readonly node: Node | undefined
  readonly claim: NodeClaim | undefined
  readonly providerID: string
  readonly name: string
  readonly isRegistered: boolean
  readonly isInitialized: boolean
  readonly isMarkedForDeletion: boolean
}

/** @param isMarked whether it is marked for deletion before its objects show it. */
export function joined(
  node: Node | undefined,
  claim: NodeClaim | undefined,
  providerID: string,
  isMarked: boolean,
): StateNode {
  const has = (label: string) => claim === undefined || ownValue(node?.metadata.labels, label) === 'true'
  const isRegistered = has(labels.registered)
  return {
    node,
    claim,
    providerID,
    name:
      (isRegistered ? node?.metadata.name : undefined) ??
      claim?.metadata.name ??
      node?.metadata.name ??
      providerID,
    isRegistered,
    isInitialized: has(labels.initialized),
    isMarkedForDeletion: isDeleted(node, claim) || isMarked,
  }
}

/**
 * Managed nodes that have no provider ID or instance type yet are ignored (cluster-state.md 2.1).
 */
export function isTracked({ metadata, spec }: Node): boolean {
  const tags = metadata.labels ?? {}
  if ((tags[labels.nodePool] ?? '') === '') return true
  if ((spec?.providerID ?? '') === '') return false
  return (tags[labels.initialized] ?? '') !== '' || (tags[labels.instanceType] ?? '') !== ''
}

/** Whether the objects of an instance are being deleted; a deleted Node does not count while its claim stays. */
export function isDeleted(node: Node | undefined, claim: NodeClaim | undefined): boolean {
  return claim === undefined
    ? node?.metadata.deletionTimestamp !== undefined
    : claim.metadata.deletionTimestamp !== undefined || isConditionTrue(claim, 'InstanceTerminating')
}

/** The claim's labels until the node is registered (cluster-state.md 4). */
export function labelsOf(state: StateNode): Readonly<Record<string, string>> {
  const source = state.isRegistered && state.node !== undefined ? state.node : (state.claim ?? state.node)
  return source?.metadata.labels ?? {}
}

/** Taints for scheduling (cluster-state.md 4.1). */
function taintsOf(state: StateNode, ofCloud: readonly Taint[]): readonly Taint[] {
  const { node, claim } = state
  const source =
    claim !== undefined && (node === undefined || !state.isRegistered)
      ? claim.spec.taints
      : node?.spec?.taints
  const taints = source ?? []
  if (claim === undefined || state.isInitialized) return taints
  return taints.filter((taint) => startupTaintKind(taint, claim, ofCloud) === undefined)
}

function filled(first: Resources, second: Resources): Resources {
  const amounts: Record<string, number> = { ...first }
  for (const [name, amount] of Object.entries(second)) {
    if ((ownValue(amounts, name) ?? 0) === 0) setOwn(amounts, name, amount)
  }
  return amounts
}

/** Capacity with `nodes: 1`; estimates of the claim fill gaps until the node is initialized. */
export function capacityOf(state: StateNode, parse: typeof parseResources = parseResources): Resources {
  return { ...ownCapacityOf(state, parse), nodes: 1 }
}

/** The same without `nodes`; the memoized object of `parse` once the node is initialized. */
export function ownCapacityOf(state: StateNode, parse: typeof parseResources): Resources {
  const { node, claim } = state
  return claim !== undefined && !state.isInitialized
    ? filled(parse(node?.status?.capacity), parse(claim.status?.capacity))
    : parse(node?.status?.capacity)
}

/** Allocatable resources, with gaps filled as in {@link capacityOf}. */
export function allocatableOf(state: StateNode, parse: typeof parseResources): Resources {
  const { node, claim } = state
  return claim !== undefined && !state.isInitialized
    ? filled(parse(node?.status?.allocatable), parse(claim.status?.allocatable))
    : parse(node?.status?.allocatable)
}

export type NodeStorage = Pick<NodeInput, 'missingDrivers' | 'volumeLimits' | 'volumesInUse'>

/**
 * The instance for the engine, with the resources that its pods leave.
 * @param taintsOfCloud taints that the cloud removes from starting Nodes.
 */
export function nodeInput(
  state: StateNode,
  use: NodeUse,
  storage: NodeStorage = {},
  parse: typeof parseResources = parseResources,
  taintsOfCloud: readonly Taint[] = [],
): NodeInput {
  const allocatable = allocatableOf(state, parse)
  const { node } = state
  const declaredFeatures = node?.status?.declaredFeatures
  const isOutOfService = node !== undefined && outOfServiceBy(node) !== undefined
  return {
    name: state.name,
    labels: labelsOf(state),
    ...(declaredFeatures !== undefined && { declaredFeatures }),
    taints: taintsOf(state, taintsOfCloud),
    initialized: state.isInitialized,
    available: withoutMissing(difference(allocatable, use.requests), allocatable, use),
    daemonRequests: use.daemonRequests,
    usedHostPorts: use.hostPorts,
    ...(isOutOfService && { refusesCandidatePods: true, takesOnlyPlanned: true }),
    ...storage,
  }
}

/**
 * Leaves out extended resources of which the node has none, unless pods hold them from a device plugin that is gone. What
 * pods hold from devices would be less than nothing, and the node would take no other pod.
 */
function withoutMissing(available: Resources, allocatable: Resources, use: NodeUse): Resources {
  const missing = Object.keys(available).filter(
    (name) =>
      name.includes('/') &&
      (ownValue(allocatable, name) ?? 0) === 0 &&
      (use.servedByDevices.includes(name) || (ownValue(use.requests, name) ?? 0) === 0),
  )
  if (missing.length === 0) return available
  return Object.fromEntries(Object.entries(available).filter(([name]) => !missing.includes(name)))
}

/** Conditions with which administrators say that they take a Node out of service (KEP-5683), from Kubernetes 1.37 on. */
const serviceConditions: ReadonlySet<string> = new Set([
  'DrainInProgress',
  'Drained',
  'MaintenancePlanned',
  'MaintenanceInProgress',
  'GracefulNodeShutdownInProgress',
])

/** The condition that says that others take the Node out of service; undefined if there is none. */
export function outOfServiceBy({ status }: Node): string | undefined {
  return status?.conditions?.find((each) => serviceConditions.has(each.type) && each.status === 'True')?.type
}

/** Whether the Node has the disrupted taint. */
export function isDisrupted({ spec }: Node): boolean {
  return (spec?.taints ?? []).some((taint) => sameTaint(taint, disruptedTaint))
}

export function isNodeReady(node: Node): boolean {
  return node.status?.conditions?.find((condition) => condition.type === 'Ready')?.status === 'True'
}

/** When a claim's condition last changed; Unix milliseconds. */
export function transitionMs(claim: NodeClaim, type: string): number | undefined {
  const condition = conditionOf(claim, type)
  return condition === undefined ? undefined : Date.parse(condition.lastTransitionTime)
}

export function isDrifted({ claim }: StateNode): boolean {
  return claim !== undefined && isConditionTrue(claim, 'Drifted')
}

/** After this long, room for the pods of a drain that budgets block is no longer kept. */
const heldUpMs = 10 * 60_000

/** Deadline of the drain, Unix milliseconds: Infinity without one, NaN if malformed. */
export function deadlineMsOf(claim: NodeClaim | undefined): number {
  const text = claim?.metadata.annotations?.[annotations.terminationTimestamp]
  return text === undefined ? Number.POSITIVE_INFINITY : Date.parse(text)
}

/** Whether a drain has taken ten minutes, and its deadline is more than ten minutes away. */
export function isHeldUp({ node, claim }: Pick<StateNode, 'node' | 'claim'>, nowMs: number): boolean {
  const sinceMs = Math.min(deletedAtMs(node), deletedAtMs(claim))
  return nowMs - sinceMs >= heldUpMs && deadlineMsOf(claim) - nowMs > heldUpMs
}

/** Infinity if it is not being deleted. */
function deletedAtMs(object: KubeObject | undefined): number {
  const { deletionTimestamp } = object?.metadata ?? {}
  return deletionTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(deletionTimestamp)
}

/**
 * Whether a starting Node will lose the taint (lifecycle.md 3.4, cluster-state.md 4.1): `startup` if an agent of the claim
 * or the cloud removes it, `ephemeral` if Kubernetes or Tenon does.
 * @param ofCloud taints that the cloud removes.
 */
export function startupTaintKind(
  taint: Taint,
  claim: NodeClaim | undefined,
  ofCloud: readonly Taint[],
): 'startup' | 'ephemeral' | undefined {
  const startup = [...(claim?.spec.startupTaints ?? []), ...ofCloud]
  if (startup.some((each) => sameTaint(each, taint))) return 'startup'
  return isKnownEphemeralTaint(taint) ? 'ephemeral' : undefined
}

/**
 * Which of several Nodes with one provider ID is the instance's (reports-2.md 6): the registered one, if its kubelet
 * reports or no kubelet does; else the only one whose kubelet reports.
 * @param nodes with the provider ID of the claim.
 * @returns undefined if there is none, or it is ambiguous.
 */
export function ownNode(nodes: readonly Node[], claim: NodeClaim | undefined): Node | undefined {
  if (nodes.length < 2) return nodes[0]
  const registered = nodes.find(({ metadata }) => metadata.name === claim?.status?.nodeName)
  const [first, second] = nodes.filter(isReporting)
  if (first === undefined || (registered !== undefined && isReporting(registered))) return registered
  return second === undefined ? first : undefined
}

/** Whether the kubelet reports: the node lifecycle controller sets Ready to Unknown if it does not. */
export function isReporting(node: Node): boolean {
  const ready = readyOf(node)
  return ready?.status === 'True' || ready?.status === 'False'
}

/** Since when the kubelet has not reported; Unix milliseconds. */
export function silentSinceMs(node: Node): number {
  return Date.parse(readyOf(node)?.lastTransitionTime ?? node.metadata.creationTimestamp ?? '')
}

export function twinText(nodes: readonly Node[], own: Node | undefined): string {
  const names = nodes.map(({ metadata }) => metadata.name).toSorted()
  const whose = own === undefined ? '' : `; ${own.metadata.name} counts`
  return `Several Nodes carry provider ID ${nodes[0]?.spec?.providerID ?? ''}: ${names.join(', ')}${whose}`
}

function readyOf({ status }: Node) {
  return status?.conditions?.find(({ type }) => type === 'Ready')
}

/** On NodeClaims, usually from the template of the NodePool: a duration such as `30m`, or `Never`. */
const initializationTimeoutAnnotation = 'tenon.sh/initialization-timeout'
/** Healthy nodes take less than this. */
const leastDoubtMs = 3 * 60_000

/**
 * Longest time from registration to initialization (reports.md 4); Infinity for Never. A malformed annotation is ignored.
 */
export function initializationTimeoutMs(
  claim: NodeClaim,
  settings: Pick<Settings, 'initializationTimeoutMs'>,
): number {
  const text = claim.metadata.annotations?.[initializationTimeoutAnnotation]
  if (text === 'Never') return Number.POSITIVE_INFINITY
  const durationMs = text === undefined ? undefined : parseDuration(text)
  return durationMs === undefined || durationMs <= 0 ? settings.initializationTimeoutMs : durationMs
}

/**
 * Whether a third of that time, and at least 3 min, have passed since the registration. Then the node may never become
 * ready, and other pods than those it was launched for are not placed on it.
 * @param now Unix milliseconds.
 */
export function isInitializationDoubtful(
  { claim, isRegistered, isInitialized }: Pick<StateNode, 'claim' | 'isRegistered' | 'isInitialized'>,
  settings: Pick<Settings, 'initializationTimeoutMs'>,
  now: number,
): boolean {
  if (claim === undefined || !isRegistered || isInitialized) return false
  const sinceMs = transitionMs(claim, 'Registered')
  const doubtMs = Math.max(leastDoubtMs, initializationTimeoutMs(claim, settings) / 3)
  return sinceMs !== undefined && now - sinceMs >= doubtMs
}
