/** The cluster part of the engine's input: nodes, plans, DaemonSets, and where pods run. */
import { type CsiNode, labels, type Node, ownValue, type Pod, type VolumeAttachment } from '@tenon/api'
import {
  attachedClaims,
  type NodeInput,
  type PodGroupInput,
  type TopologyNode,
  type VolumeLookups,
} from '@tenon/engine'
import { type Clock, perObject } from '@tenon/runtime'
import { type Caches, indexes, type servesDevices } from '../../state/caches.ts'
import {
  allocatableOf,
  isHeldUp,
  isInitializationDoubtful,
  labelsOf,
  nodeInput,
  type NodeStorage,
  type StateNode,
} from '../../state/nodes/state-node.ts'
import { type NodeUse, useOf, useWith } from '../../state/pods/pod-index.ts'
import { isCurrentlyReschedulable, isPausedByBudget, isTerminal } from '../../state/pods/pods.ts'
import { workloadOf } from '../../state/pods/workloads.ts'
import { workloadsOf } from '../../nodeclaim/claim-objects.ts'
import type { PlacedPod } from './eligible-pods.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { policyOf, type Settings } from '../../settings.ts'
import { limitsOf } from '../../state/nodes/attach-limits.ts'

export interface ClusterSources {
  readonly caches: VolumeCaches &
    Pick<Caches, 'daemonSets' | 'limitRanges' | 'namespaces' | 'podDisruptionBudgets'> &
    Parameters<typeof servesDevices>[0]
  readonly state: Pick<
    ClusterState,
    | 'attachLimits'
    | 'isWellFormed'
    | 'nominations'
    | 'parsed'
    | 'plans'
    | 'pods'
    | 'podsOn'
    | 'podsOnNodes'
    | 'surgingPods'
    | 'taintsOfCloud'
    | 'volumeDrivers'
    | 'windows'
  >
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'compatibility' | 'fitScoring' | 'initializationTimeoutMs'>
}

/** Instances whose pods must be rescheduled; memoized by the list of instances. */
export const leavingAmong = perObject((all: readonly StateNode[]): readonly StateNode[] =>
  all.filter(({ isMarkedForDeletion, node }) => isMarkedForDeletion && node !== undefined),
)

/** Instances that are registered and not initialized. */
const startingAmong = perObject((all: readonly StateNode[]): readonly StateNode[] =>
  all.filter(({ isRegistered, isInitialized }) => isRegistered && !isInitialized),
)

/** By pod UID, the instance that an earlier decision planned for the pod. */
export function plannedNodes(
  { clock, settings, state }: ClusterSources,
  nodes: readonly StateNode[],
  pending: readonly Pod[],
): ReadonlyMap<string, string> {
  const planned = new Map<string, string>()
  const plans = [...state.plans.entries()]
  if (plans.length > 0) {
    const names = { claim: new Map<string, string>(), node: new Map<string, string>() }
    for (const { name, claim, node } of nodes) {
      if (claim !== undefined) names.claim.set(claim.metadata.name, name)
      if (node !== undefined) names.node.set(node.metadata.name, name)
    }
    for (const [uid, { target }] of plans) {
      const name = names[target.kind].get(target.name)
      if (name !== undefined) planned.set(uid, name)
    }
  }
  const doubtful = startingAmong(nodes).filter((node) =>
    isInitializationDoubtful(node, settings, clock.now()),
  )
  if (doubtful.length > 0) stayWithTheirNodes(doubtful, pending, planned)
  return planned
}

/** A pod without a plan keeps the node that was launched for it. */
function stayWithTheirNodes(
  nodes: readonly StateNode[],
  pending: readonly Pod[],
  planned: Map<string, string>,
): void {
  const unplanned = Map.groupBy(
    pending.filter(({ metadata: { uid = '' } }) => !planned.has(uid)),
    workloadOf,
  )
  for (const { name, claim } of nodes) {
    if (claim === undefined) continue
    for (const [workload, count] of workloadsOf(claim))
      for (const { metadata } of unplanned.get(workload)?.splice(0, count) ?? [])
        planned.set(metadata.uid ?? '', name)
  }
}

/** A memoized input with what it was made of. */
interface KnownInput {
  readonly use: NodeUse
  readonly csiNode: CsiNode | undefined
  /** Attach limits less what is attached. */
  readonly bare: NodeInput
  /** As it is as long as nothing that has volumes runs there. */
  readonly input: NodeInput
}

/** Memo of inputs: most instances have not changed since the last pass. */
const inputs = new WeakMap<StateNode, KnownInput>()

/**
 * One instance that stays.
 * @param left the pods that will be left on it; undefined: all that are there.
 */
export function nodeInputOf(
  deps: ClusterSources,
  state: StateNode,
  lookups: VolumeLookups,
  left: readonly Pod[] | undefined,
): NodeInput {
  const { pods, nominations, parsed, attachLimits, taintsOfCloud, volumeDrivers } = deps.state
  const missingDrivers = volumeDrivers.missingOn(state)
  const lacking = missingDrivers.length === 0 ? {} : { missingDrivers }
  if (state.node === undefined)
    return nodeInput(
      state,
      useOf([]),
      { ...withLimits(attachLimits.expectedOf(typeOf(state))), ...lacking },
      parsed,
      taintsOfCloud,
    )
  const { name } = state.node.metadata
  const arriving = nominations.arrivingAt(name)
  const use =
    arriving.length > 0
      ? useWith(
          left ?? deps.state.podsOn(name).filter((pod) => pods.isWellFormed(pod)),
          arriving,
          pods.resized,
        )
      : left === undefined
        ? pods.useOf(name)
        : useOf(left, pods.resized)
  const csiNode = deps.caches.csiNodes.get({ name })
  let known = inputs.get(state)
  if (known?.use !== use || known.csiNode !== csiNode) {
    const scored = deps.settings.fitScoring && { allocatable: allocatableOf(state, parsed) }
    const bare =
      known?.use === use ? known.bare : { ...nodeInput(state, use, {}, parsed, taintsOfCloud), ...scored }
    known = { use, csiNode, bare, input: withStorage(bare, nodeStorage(csiNode, [], lookups)) }
    inputs.set(state, known)
  }
  const attachments = deps.caches.volumeAttachments.byIndex(indexes.byNode, name)
  // The same object, so that comparisons see at once that nothing has changed.
  if (state.isInitialized && isEmpty([...use.podsWithVolumes, ...attachments, ...missingDrivers]))
    return known.input
  const expected = state.isInitialized ? {} : attachLimits.expectedOf(typeOf(state))
  const storage = nodeStorage(csiNode, use.podsWithVolumes, lookups, expected, attachments)
  const input = withStorage(known.bare, { ...storage, ...lacking })
  const isDoubtful = isInitializationDoubtful(state, deps.settings, deps.clock.now())
  return isDoubtful ? { ...input, takesOnlyPlanned: true } : input
}

const typeOf = (state: StateNode): string => labelsOf(state)[labels.instanceType] ?? ''

const isEmpty = (fields: object): boolean => Object.keys(fields).length === 0

function withStorage(input: NodeInput, storage: NodeStorage): NodeInput {
  return isEmpty(storage) ? input : { ...input, ...storage }
}

function withLimits(volumeLimits: Readonly<Record<string, number>>): NodeStorage {
  return isEmpty(volumeLimits) ? {} : { volumeLimits }
}

/**
 * The pods to reschedule because their node is being deleted. Pods that a PodDisruptionBudget holds are excluded while the
 * drain is stuck: room for them would stay empty, be removed, and be bought again.
 */
export function podsOfLeavingNodes(deps: ClusterSources, nodes: readonly StateNode[]): readonly PlacedPod[] {
  const { caches, clock, settings, state } = deps
  const budgets = caches.podDisruptionBudgets.list()
  const now = clock.now()
  return leavingAmong(nodes).flatMap((stateNode) => {
    const isStuck = policyOf(settings).isolates && isHeldUp(stateNode, now)
    return state
      .podsOn(stateNode.node?.metadata.name ?? '')
      .filter((pod) => state.isWellFormed(pod) && !state.surgingPods.isBeingReplaced(pod))
      .filter((pod) =>
        isCurrentlyReschedulable(pod, state.podsOnNodes.surges(pod) ? [] : budgets, now, state.windows),
      )
      .filter((pod) => !isStuck || !isPausedByBudget(pod, budgets, now, state.windows))
      .map((pod): PlacedPod => ({ pod, origin: 'deleting' }))
  })
}

const asCandidate = perObject((node: Node) => topologyNode(node, true))
const asOther = perObject((node: Node) => topologyNode(node, false))

function topologyNode({ metadata, spec }: Node, isCandidate: boolean): TopologyNode {
  const { labels: own = {}, name } = metadata
  return { hostname: own[labels.hostname] ?? name, labels: own, taints: spec?.taints ?? [], isCandidate }
}

/** Nodes as topology rules need them. Depends on the list of instances only, so it is memoized by it. */
export class TopologyNodes {
  #last: { readonly of: readonly StateNode[]; readonly nodes: ReadonlyMap<string, TopologyNode> } | undefined

  /** @param all all instances; the same list as long as no instance has changed. */
  of(
    nodes: Pick<Caches['nodes'], 'list'>,
    staying: readonly StateNode[],
    all: readonly StateNode[],
  ): ReadonlyMap<string, TopologyNode> {
    if (this.#last?.of !== all) this.#last = { of: all, nodes: topologyNodes(nodes.list(), staying) }
    return this.#last.nodes
  }
}

function topologyNodes(
  all: readonly Node[],
  staying: readonly StateNode[],
): ReadonlyMap<string, TopologyNode> {
  const candidates = new Set(staying.map(({ node }) => node?.metadata.name))
  const nodes = new Map<string, TopologyNode>()
  for (const node of all) {
    const { name } = node.metadata
    nodes.set(name, candidates.has(name) ? asCandidate(node) : asOther(node))
  }
  return nodes
}

/**
 * The pods that stay, by node, where kube-scheduler preempted others that are still terminating: a group of higher
 * priority will get their room and needs no other node. After their grace period nobody knows whether they end.
 */
export function withoutPreempted(
  state: Pick<ClusterState, 'isWellFormed' | 'pods'>,
  groups: readonly PodGroupInput[],
  nowMs: number,
): ReadonlyMap<string, readonly Pod[]> {
  if (groups.length === 0) return new Map()
  const highest = Math.max(...groups.map(({ priority }) => priority))
  const isGiven = (pod: Pod) => (pod.spec.priority ?? 0) < highest && isPreempted(pod, nowMs)
  const bound = state.pods.bound()
  const left = new Map<string, Pod[]>()
  for (const pod of bound) if (isGiven(pod)) left.set(pod.spec.nodeName ?? '', [])
  if (left.size === 0) return left
  for (const pod of bound)
    if (!isGiven(pod) && state.isWellFormed(pod)) left.get(pod.spec.nodeName ?? '')?.push(pod)
  return left
}

function isPreempted({ metadata, status }: Pod, nowMs: number): boolean {
  if (!(Date.parse(metadata.deletionTimestamp ?? '') > nowMs)) return false
  return (status?.conditions ?? []).some(
    ({ type, status: is, reason }) =>
      type === 'DisruptionTarget' && is === 'True' && reason === 'PreemptionByScheduler',
  )
}

/** Lookups of volumes, and of the nodes that attach them. */
type VolumeCaches = Pick<
  Caches,
  | 'csiNodes'
  | 'nodes'
  | 'persistentVolumeClaims'
  | 'persistentVolumes'
  | 'pods'
  | 'storageClasses'
  | 'volumeAttachments'
>

export function volumeLookups(caches: Omit<VolumeCaches, 'csiNodes' | 'volumeAttachments'>): VolumeLookups {
  return {
    claim: (namespace, name) => caches.persistentVolumeClaims.get({ namespace, name }),
    volume: (name) => caches.persistentVolumes.get({ name }),
    storageClass: (name) => caches.storageClasses.get({ name }),
    volumesOfClass: (name) => caches.persistentVolumes.byIndex(indexes.byStorageClass, name),
    podsUsing: (namespace, name) =>
      caches.pods
        .byIndex(indexes.byVolumeClaim, `${namespace}/${name}`)
        .filter((pod) => (pod.spec.nodeName ?? '') !== '' && !isTerminal(pod)),
    node: (name) => caches.nodes.get({ name }),
  }
}

/**
 * Volumes of a node's pods and how many of each driver it can attach; `pods` must be well-formed.
 * @param expected limits that hold until the node's CSINode has its own.
 * @param attachments those of the node; they count whether or not a pod uses them (scheduling.md 8.1).
 */
function nodeStorage(
  csiNode: CsiNode | undefined,
  pods: readonly Pod[],
  lookups: VolumeLookups,
  expected: Readonly<Record<string, number>> = {},
  attachments: readonly VolumeAttachment[] = [],
): NodeStorage {
  const volumeLimits = csiNode === undefined ? expected : { ...expected, ...limitsOf(csiNode) }
  // Without a limit attached volumes do not matter.
  if (Object.keys(volumeLimits).length === 0) return {}
  const inUse = new Map<string, Set<string>>()
  for (const pod of pods) {
    if (isTerminal(pod) || (pod.spec.volumes ?? []).length === 0) continue
    for (const [driver, claims] of Object.entries(attachedClaims(pod, lookups))) {
      const known = inUse.get(driver) ?? new Set()
      for (const claim of claims) known.add(claim)
      inUse.set(driver, known)
    }
  }
  addAttached(inUse, attachments, volumeLimits, lookups)
  return {
    volumeLimits,
    volumesInUse: Object.fromEntries([...inUse].map(([driver, claims]) => [driver, [...claims].toSorted()])),
  }
}

/** Adds volumes that are attached to a node to the claims of its pods, up to its limits. */
function addAttached(
  inUse: Map<string, Set<string>>,
  attachments: readonly VolumeAttachment[],
  limits: Readonly<Record<string, number>>,
  lookups: VolumeLookups,
): void {
  for (const { metadata, spec } of attachments) {
    const limit = ownValue(limits, spec.attacher)
    const volume = lookups.volume(spec.source.persistentVolumeName ?? '')
    const known = inUse.get(spec.attacher) ?? new Set()
    // Nothing is placed on a node over its limit, but kube-scheduler still gives it pods without volumes.
    if (limit === undefined || volume?.spec.csi === undefined || known.size >= limit) continue
    const { claimRef } = volume.spec
    known.add(claimRef === undefined ? metadata.name : `${claimRef.namespace ?? ''}/${claimRef.name ?? ''}`)
    inUse.set(spec.attacher, known)
  }
}
