/** Nodes and claims joined by provider ID, with what runs on them (cluster-state.md). */
import {
  conditionOf,
  isConditionTrue,
  isKnownEphemeralTaint,
  labels,
  type Node,
  type NodeClaim,
  type Pod,
  parseResources,
  type ResourceList,
  type Resources,
  sameTaint,
  type Taint,
} from '@tenon/api'
import { difference, type HostPort, hostPortsOf, type NodeInput, podRequests, sum } from '@tenon/engine'
import type { CloudProvider } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import { type Caches, indexes } from '../observe/caches.ts'
import { isDaemonPod, isTerminal } from './pods.ts'

/** A machine as the cluster knows it: a Node, a NodeClaim, or both. */
export interface StateNode {
  readonly node: Node | undefined
  readonly claim: NodeClaim | undefined
  readonly providerID: string
  readonly name: string
  readonly isRegistered: boolean
  readonly isInitialized: boolean
  readonly isMarkedForDeletion: boolean
}

/** Joins what the caches hold and remembers what no object tells: marks, nominations, fresh claims. */
export class ClusterState {
  readonly #caches: Caches
  readonly #provider: CloudProvider
  readonly #clock: Clock
  readonly #marked = new Set<string>()
  readonly #nominatedUntil = new Map<string, number>()
  /** Claims this process created that its cache has not shown yet. */
  readonly #seeded = new Map<string, NodeClaim>()

  constructor(caches: Caches, provider: CloudProvider, clock: Clock) {
    this.#caches = caches
    this.#provider = provider
    this.#clock = clock
    caches.nodeClaims.onChange((change) => {
      this.#seeded.delete(change.object.metadata.name)
      if (change.kind === 'deleted') this.#forget(change.object.status?.providerID)
    })
  }

  /** Whether this provider serves the claim's node class. */
  isManaged(claim: NodeClaim): boolean {
    const ref = claim.spec.nodeClassRef
    return this.#provider.nodeClasses.some((type) => type.group === ref.group && type.kind === ref.kind)
  }

  /** Tells the state about a claim that was just created, so that no pass launches for its pods again. */
  seed(claim: NodeClaim): void {
    if (this.#caches.nodeClaims.get({ name: claim.metadata.name }) === undefined) {
      this.#seeded.set(claim.metadata.name, claim)
    }
  }

  /** Drops a seed whose claim turned out to be gone from the API. */
  dropSeed(name: string): void {
    this.#seeded.delete(name)
  }

  get seeded(): readonly NodeClaim[] {
    return [...this.#seeded.values()]
  }

  /** Claims that are not launched yet; while there are any, decisions would be made blind. */
  unlaunched(): readonly NodeClaim[] {
    const listed = this.#caches.nodeClaims
      .list()
      .filter((claim) => this.isManaged(claim) && (claim.status?.providerID ?? '') === '')
      .filter((claim) => claim.metadata.deletionTimestamp === undefined)
    return [...this.#seeded.values(), ...listed]
  }

  /** Every node and every launched claim, in order of name. */
  stateNodes(): readonly StateNode[] {
    const claimed = this.#caches.nodeClaims
      .list()
      .filter((claim) => this.isManaged(claim) && (claim.status?.providerID ?? '') !== '')
      .map((claim) => this.#joined(this.nodeOf(claim), claim, claim.status?.providerID as string))
    const covered = new Set(claimed.flatMap(({ node }) => (node === undefined ? [] : [node.metadata.name])))
    const others = this.#caches.nodes
      .list()
      .filter((node) => !covered.has(node.metadata.name))
      .map((node) => this.#joined(node, undefined, node.spec?.providerID ?? node.metadata.name))
    return [...claimed, ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** The Node of a claim; undefined while there is none, or when several claim its provider ID. */
  nodeOf(claim: NodeClaim): Node | undefined {
    const providerID = claim.status?.providerID ?? ''
    const nodes = providerID === '' ? [] : this.#caches.nodes.byIndex(indexes.byProviderId, providerID)
    return nodes.length === 1 ? nodes[0] : undefined
  }

  /** The claim of a Node, if exactly one managed claim has its provider ID. */
  claimOf(node: Node): NodeClaim | undefined {
    const providerID = node.spec?.providerID ?? ''
    const claims = providerID === '' ? [] : this.#caches.nodeClaims.byIndex(indexes.byProviderId, providerID)
    const managed = claims.filter((claim) => this.isManaged(claim))
    return managed.length === 1 ? managed[0] : undefined
  }

  podsOn(nodeName: string): readonly Pod[] {
    return this.#caches.pods.byIndex(indexes.byNode, nodeName)
  }

  /** Marks a machine as going away, before any object says so. */
  mark(providerID: string): void {
    this.#marked.add(providerID)
  }

  unmark(providerID: string): void {
    this.#marked.delete(providerID)
  }

  /** Keeps a machine from being disrupted while pods are on their way to it. */
  nominate(providerID: string, durationMs: number): void {
    const until = this.#clock.now() + durationMs
    this.#nominatedUntil.set(providerID, Math.max(until, this.#nominatedUntil.get(providerID) ?? 0))
  }

  isNominated(providerID: string): boolean {
    return (this.#nominatedUntil.get(providerID) ?? 0) > this.#clock.now()
  }

  #forget(providerID: string | undefined): void {
    if (providerID === undefined) return
    this.#marked.delete(providerID)
    this.#nominatedUntil.delete(providerID)
  }

  #joined(node: Node | undefined, claim: NodeClaim | undefined, providerID: string): StateNode {
    const has = (label: string) => claim === undefined || node?.metadata.labels?.[label] === 'true'
    const deleted =
      claim === undefined
        ? node?.metadata.deletionTimestamp !== undefined
        : claim.metadata.deletionTimestamp !== undefined || isConditionTrue(claim, 'InstanceTerminating')
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
      isMarkedForDeletion: deleted || this.#marked.has(providerID),
    }
  }
}

/** Labels that count: the claim's until the node is registered (cluster-state.md 4). */
export function labelsOf(state: StateNode): Readonly<Record<string, string>> {
  const source = state.isRegistered && state.node !== undefined ? state.node : (state.claim ?? state.node)
  return source?.metadata.labels ?? {}
}

/** Taints that count for scheduling (cluster-state.md 4.1). */
function taintsOf(state: StateNode): readonly Taint[] {
  const { node, claim } = state
  const source =
    claim !== undefined && (node === undefined || !state.isRegistered)
      ? claim.spec.taints
      : node?.spec?.taints
  const taints = source ?? []
  if (claim === undefined || state.isInitialized) return taints
  return taints.filter(
    (taint) =>
      !isKnownEphemeralTaint(taint) &&
      !(claim.spec.startupTaints ?? []).some((startup) => sameTaint(startup, taint)),
  )
}

function filled(first: ResourceList | undefined, second: ResourceList | undefined): Resources {
  const amounts: Record<string, number> = { ...parseResources(first) }
  for (const [name, amount] of Object.entries(parseResources(second))) {
    if ((amounts[name] ?? 0) === 0) amounts[name] = amount
  }
  return amounts
}

/** Capacity with `nodes: 1`: the claim's estimates stand in until the node is initialized. */
export function capacityOf(state: StateNode): Resources {
  const { node, claim } = state
  const amounts =
    claim !== undefined && !state.isInitialized
      ? filled(node?.status?.capacity, claim.status?.capacity)
      : parseResources(node?.status?.capacity)
  return { ...amounts, nodes: 1 }
}

function allocatableOf(state: StateNode): Resources {
  const { node, claim } = state
  return claim !== undefined && !state.isInitialized
    ? filled(node?.status?.allocatable, claim.status?.allocatable)
    : parseResources(node?.status?.allocatable)
}

/** A machine as the engine sees it, with the pods bound to it subtracted. */
export function nodeInput(state: StateNode, pods: readonly Pod[]): NodeInput {
  const running = pods.filter((pod) => !isTerminal(pod))
  const used = running.map((pod) => podRequests(pod.spec)).reduce(sum, {})
  const usedHostPorts: HostPort[] = running.flatMap((pod) => hostPortsOf(pod.spec))
  return {
    name: state.name,
    labels: labelsOf(state),
    taints: taintsOf(state),
    initialized: state.isInitialized,
    available: difference(allocatableOf(state), used),
    daemonRequests: running
      .filter(isDaemonPod)
      .map((pod) => podRequests(pod.spec))
      .reduce(sum, {}),
    usedHostPorts,
  }
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
