/** One instance: what its Node and its NodeClaim say, and which of them counts (cluster-state.md 2.1, 4). */
import {
  conditionOf,
  difference,
  disruptedTaint,
  isConditionTrue,
  labels,
  type Node,
  type NodeClaim,
  ownValue,
  parseResources,
  type Resources,
  sameTaint,
  setOwn,
  type Taint,
} from '@tenon/api'
import type { NodeInput } from '@tenon/engine'
import type { NodeUse } from '../pods/pod-index.ts'
import { startupTaintKind } from './startup-taints.ts'

/** An instance as the cluster knows it: a Node, a NodeClaim, or both. */
export interface StateNode {
  readonly node: Node | undefined
  readonly claim: NodeClaim | undefined
  readonly providerID: string
  readonly name: string
  readonly isRegistered: boolean
  readonly isInitialized: boolean
  readonly isMarkedForDeletion: boolean
}

/** An instance of a Node, a claim, or both. @param isMarked whether it goes away before any object says so. */
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
 * Managed nodes that are starting and do not say what they are yet are as if they were not there
 * (cluster-state.md 2.1).
 */
export function isTracked({ metadata, spec }: Node): boolean {
  const tags = metadata.labels ?? {}
  if ((tags[labels.nodePool] ?? '') === '') return true
  if ((spec?.providerID ?? '') === '') return false
  return (tags[labels.initialized] ?? '') !== '' || (tags[labels.instanceType] ?? '') !== ''
}

/** Whether the objects of an instance say that it goes away; a Node alone does not while its claim stays. */
export function isDeleted(node: Node | undefined, claim: NodeClaim | undefined): boolean {
  return claim === undefined
    ? node?.metadata.deletionTimestamp !== undefined
    : claim.metadata.deletionTimestamp !== undefined || isConditionTrue(claim, 'InstanceTerminating')
}

/** Labels that count: the claim's until the node is registered (cluster-state.md 4). */
export function labelsOf(state: StateNode): Readonly<Record<string, string>> {
  const source = state.isRegistered && state.node !== undefined ? state.node : (state.claim ?? state.node)
  return source?.metadata.labels ?? {}
}

/** Taints that count for scheduling (cluster-state.md 4.1). */
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

/** Capacity with `nodes: 1`: the claim's estimates stand in until the node is initialized. */
export function capacityOf(state: StateNode, parse: typeof parseResources = parseResources): Resources {
  return { ...ownCapacityOf(state, parse), nodes: 1 }
}

/** The same without the instance itself as one of the `nodes`; as `parse` has it once the node is initialized. */
export function ownCapacityOf(state: StateNode, parse: typeof parseResources): Resources {
  const { node, claim } = state
  return claim !== undefined && !state.isInitialized
    ? filled(parse(node?.status?.capacity), parse(claim.status?.capacity))
    : parse(node?.status?.capacity)
}

/** What pods may have in all, as {@link capacityOf}. */
export function allocatableOf(state: StateNode, parse: typeof parseResources): Resources {
  const { node, claim } = state
  return claim !== undefined && !state.isInitialized
    ? filled(parse(node?.status?.allocatable), parse(claim.status?.allocatable))
    : parse(node?.status?.allocatable)
}

/** Which volumes are attached to an instance, and how many can be, by CSI driver. */
export type NodeStorage = Pick<NodeInput, 'volumeLimits' | 'volumesInUse'>

/**
 * An instance as the engine sees it, less what the pods bound to it take.
 * @param taintsOfCloud those that the cloud removes from a Node that starts.
 */
export function nodeInput(
  state: StateNode,
  use: NodeUse,
  storage: NodeStorage = {},
  parse: typeof parseResources = parseResources,
  taintsOfCloud: readonly Taint[] = [],
): NodeInput {
  return {
    name: state.name,
    labels: labelsOf(state),
    taints: taintsOf(state, taintsOfCloud),
    initialized: state.isInitialized,
    available: difference(allocatableOf(state, parse), use.requests),
    daemonRequests: use.daemonRequests,
    usedHostPorts: use.hostPorts,
    ...storage,
  }
}

/** Whether the Node is marked as one that is about to go, so that no pod comes to it. */
export function isDisrupted({ spec }: Node): boolean {
  return (spec?.taints ?? []).some((taint) => sameTaint(taint, disruptedTaint))
}

/** Whether the Node's `Ready` condition is True. */
export function isNodeReady(node: Node): boolean {
  return node.status?.conditions?.find((condition) => condition.type === 'Ready')?.status === 'True'
}

/** When a claim's condition last changed, in milliseconds; undefined while it is absent. */
export function transitionMs(claim: NodeClaim, type: string): number | undefined {
  const condition = conditionOf(claim, type)
  return condition === undefined ? undefined : Date.parse(condition.lastTransitionTime)
}

/** Whether the instance is not as its NodePool and node class want it any more. */
export function isDrifted({ claim }: StateNode): boolean {
  return claim !== undefined && isConditionTrue(claim, 'Drifted')
}
