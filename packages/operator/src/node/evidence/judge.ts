import {
  accumulate,
  conditionOf,
  isConditionTrue,
  labels,
  type Node,
  type NodeClaim,
  ownValue,
  type Pod,
  podRequests,
  requestsOf,
  type Resources,
} from '@tenon/api'
import { type SchedulingResult, shortfallOf } from '@tenon/engine'
import { isKubeError } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'
import { type Clock, inSlices, type Logger, type Slicing } from '@tenon/runtime'
import type { CapacityLearning } from '../../cloud/provider-layers.ts'
import type { Kubernetes } from '../../kubernetes.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { workloadsOf } from '../../nodeclaim/claim-objects.ts'
import { indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type UselessNode, uselessText } from '../../state/nodes/node-evidence.ts'
import { isNodeReady, transitionMs } from '../../state/nodes/state-node.ts'
import { isActive, isDaemonPod, podsOnNode } from '../../state/pods/pods.ts'
import { workloadOf } from '../../state/pods/workloads.ts'
import { isOfShortGroup, readSchedulerMessage, refusalOf } from './pod-refusals.ts'

/** How long the scheduler has to place a pod on a node. It tries each pod again every five minutes. */
const settleMs = 2 * 60_000
/** The same if it refuses the pod for reasons that decisions know. */
const unexplainedMs = 30 * 60_000
/** By then it has tried the pod again. If its message is the same, it writes nothing. */
const repeatedMs = 10 * 60_000
/** Pods checked in one pass, each with two reads from the API server. */
const checksPerPass = 10
const againMs = 60_000
/** Times in conditions are whole seconds, and the scheduler may see the open Node before its claim is updated. */
const precisionMs = 2000

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly learning?: CapacityLearning
  readonly metrics: Metrics
  readonly clock: Clock
  readonly logger: Logger
  readonly slicing: Slicing
}

/** A pod that decisions keep on an existing node. */
interface PlacedPod {
  readonly node: string
  readonly sinceMs: number
  nextCheckMs: number
}

/**
 * Finds nodes that do not serve the pods they were launched for, so that no more of the kind are launched (reports-2.md 1).
 * Runs before each decision.
 */
export class NodeEvidenceJudge {
  readonly #deps: Dependencies
  /** By pod UID. */
  #placed = new Map<string, PlacedPod>()
  /** Workloads that a claim was launched for and that have not run on its node, by claim name. */
  readonly #open = new Map<string, Map<string, { isSmall: boolean }>>()
  /** Deleted claims that never ran a pod they were launched for, which may still be pending. */
  readonly #unused: { readonly claim: NodeClaim; readonly pod: Pod }[] = []
  /** Names of claims. */
  readonly #seen = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  follow(): () => void {
    const { kubernetes, state } = this.#deps
    const { caches } = kubernetes
    const unfollowClaims = caches.nodeClaims.onChange(({ kind, object }) => {
      const { name, deletionTimestamp } = object.metadata
      if (kind !== 'deleted' && deletionTimestamp === undefined) {
        const workloads = [...workloadsOf(object).keys()]
        if (workloads.length > 0 && !this.#seen.has(name))
          this.#open.set(name, new Map(workloads.map((workload) => [workload, { isSmall: false }])))
        this.#seen.add(name)
        return
      }
      if (kind === 'deleted') this.#seen.delete(name)
      const unserved = this.#open.get(name)
      this.#open.delete(name)
      if (unserved !== undefined) this.#ended(object, unserved)
    })
    const unfollowPods = caches.pods.onChange((change) => {
      const pod = change.object
      if (change.kind === 'deleted' || !state.isWellFormed(pod) || (pod.spec.nodeName ?? '') === '') return
      if (change.kind === 'updated' && change.old.spec?.nodeName === pod.spec.nodeName) return
      this.#started(pod)
    })
    return () => {
      unfollowClaims()
      unfollowPods()
    }
  }

  /** A pod was bound, so its workload is served by such nodes. */
  #started(pod: Pod): void {
    const { kubernetes, state } = this.#deps
    const { caches } = kubernetes
    const node = caches.nodes.get({ name: pod.spec.nodeName ?? '' })
    const claim = node && state.claimOf(node)
    if (claim === undefined || isDaemonPod(pod)) return
    this.#settle(claim.metadata.name, workloadOf(pod))
    state.evidence.served(pod, poolOf(claim))
  }

  #settle(claim: string, workload: string): void {
    const workloads = this.#open.get(claim)
    if (workloads?.delete(workload) === true && workloads.size === 0) this.#open.delete(claim)
  }

  /** Pods that the claim was launched for and that are older than it have never run on its node. */
  #ended(claim: NodeClaim, unserved: ReadonlyMap<string, object>): void {
    // Nodes that never become initialized pause the launches of their NodePool, unless they lack resources of pods.
    const initialized = conditionOf(claim, 'Initialized')
    const isOpen = initialized?.status === 'True' || initialized?.reason === 'ResourceNotRegistered'
    if (!isOpen || unserved.size === 0) return
    const { state } = this.#deps
    const madeMs = Date.parse(claim.metadata.creationTimestamp ?? '')
    const seen = new Set<string>()
    for (const pod of state.pods.waiting()) {
      if (!state.isWellFormed(pod) || !isActive(pod)) continue
      const workload = workloadOf(pod)
      if (!unserved.has(workload) || seen.has(workload)) continue
      if (Date.parse(pod.metadata.creationTimestamp ?? '') > madeMs) continue
      seen.add(workload)
      this.#unused.push({ claim, pod })
    }
  }

  /** Counts nodes that were deleted unused, if the pod is still pending by the API server. */
  async #countUnused(signal: AbortSignal): Promise<void> {
    const { clock, kubernetes, state } = this.#deps
    for (const { claim, pod } of this.#unused.splice(0, checksPerPass)) {
      const said = await refusalOf(kubernetes.client, pod, signal)
      if (said === undefined) continue
      const initialized = conditionOf(claim, 'Initialized')
      const words = initialized?.status === 'True' ? said : (initialized?.message ?? said)
      const atMs = Date.parse(claim.metadata.deletionTimestamp ?? '') || clock.now()
      const finding = { ...this.#finding(claim, pod), cause: 'unused', words, atMs } as const
      this.#reportUseless(state.evidence.useless(finding), pod)
    }
  }

  #finding(claim: NodeClaim, pod: Pod) {
    return {
      pod,
      nodePool: poolOf(claim),
      node: claim.status?.nodeName ?? '',
      claim: claim.metadata.name,
      boughtMs: Date.parse(claim.metadata.creationTimestamp ?? ''),
      isServed: this.#runsIn(poolOf(claim), pod),
    }
  }

  /** Whether a pod of the same workload runs on a node of the NodePool. */
  #runsIn(pool: string, pod: Pod): boolean {
    const { kubernetes, state } = this.#deps
    const { caches } = kubernetes
    const workload = workloadOf(pod)
    return caches.nodeClaims
      .byIndex(indexes.byNodePool, pool)
      .some((claim) =>
        state
          .podsOn(claim.status?.nodeName ?? '')
          .some((other) => state.isWellFormed(other) && isActive(other) && workloadOf(other) === workload),
      )
  }

  /** Stores which existing nodes a decision put pods on. */
  decided({ placements }: Pick<SchedulingResult, 'placements'>): void {
    const now = this.#deps.clock.now()
    const placed = new Map<string, PlacedPod>()
    for (const { pod, node } of placements) {
      const { uid = '' } = pod.metadata
      const known = this.#placed.get(uid)
      placed.set(uid, known?.node === node ? known : { node, sinceMs: now, nextCheckMs: now + settleMs })
    }
    this.#placed = placed
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#deps
    await this.#learnFromSmallNodes(signal)
    await this.#countUnused(signal)
    const now = clock.now()
    let checks = 0
    for (const [uid, placed] of this.#placed) {
      if (placed.nextCheckMs > now || checks >= checksPerPass) continue
      const pod = state.pods.unplaced(uid)
      if (pod === undefined || !state.isWellFormed(pod)) continue
      placed.nextCheckMs = now + againMs
      checks++
      await this.#check(pod, placed, signal)
    }
    this.#reportHeld()
  }

  /** Checks a pod that decisions keep on a node while the scheduler does not bind it. */
  async #check(pod: Pod, placed: PlacedPod, signal: AbortSignal): Promise<void> {
    const { clock, kubernetes, state } = this.#deps
    const node = kubernetes.caches.nodes.get({ name: placed.node })
    const claim = node && state.claimOf(node)
    if (node === undefined || claim === undefined || !isConditionTrue(claim, 'Initialized')) return
    const openedMs = transitionMs(claim, 'Initialized') ?? Number.NaN
    const waitedMs = clock.now() - Math.max(placed.sinceMs, openedMs)
    if (!(waitedMs >= settleMs) || isOfShortGroup(state, pod)) return
    const words = await refusalOf(kubernetes.client, pod, signal)
    const isExplained = this.#isExplained(pod, words, { openedMs, waitedMs })
    if (words === undefined || isExplained === undefined) return
    if (!(await this.#hasRoom(pod, node, signal))) return
    this.#planElsewhere(pod, node)
    const workload = workloadOf(pod)
    const isMeant = this.#open.get(claim.metadata.name)?.has(workload) === true
    if (!isMeant || !isExplained) return
    this.#settle(claim.metadata.name, workload)
    const finding = { ...this.#finding(claim, pod), node: node.metadata.name }
    const useless = { ...finding, cause: 'refused', words, atMs: clock.now() } as const
    this.#reportUseless(state.evidence.useless(useless), pod)
  }

  /**
   * Whether the scheduler refuses the pod for a reason that decisions do not know.
   * @returns undefined if its message is not about the open node yet.
   */
  #isExplained(
    pod: Pod,
    words: string | undefined,
    { openedMs, waitedMs }: { readonly openedMs: number; readonly waitedMs: number },
  ): boolean | undefined {
    const { kubernetes, state } = this.#deps
    const { caches } = kubernetes
    const message = words === undefined ? undefined : readSchedulerMessage(words)
    // Older messages are about other nodes; the same message is not written again.
    const isSaidSince =
      state.schedulerUpdates.lastMs(pod.metadata.uid ?? '') >= openedMs - precisionMs ||
      waitedMs >= repeatedMs
    if (message === undefined || !isSaidSince || message.nodes < caches.nodes.list().length) return undefined
    if (message.unknownReasons.length > 0) return true
    return waitedMs >= unexplainedMs ? false : undefined
  }

  /** Whether the pod fits on the node with the pods that the API server has there: the cache may be behind. */
  async #hasRoom(pod: Pod, node: Node, signal: AbortSignal): Promise<boolean> {
    const { kubernetes, state } = this.#deps
    let pods: readonly Pod[]
    try {
      pods = await podsOnNode(kubernetes.client, node.metadata.name, signal)
    } catch (error) {
      if (!isKubeError(error)) throw error
      return false
    }
    if (
      !isNodeReady(node) ||
      node.spec?.unschedulable === true ||
      !pods.every((each) => state.isWellFormed(each))
    )
      return false
    const used: Record<string, number> = {}
    for (const other of pods) if (isActive(other)) accumulate(used, requestsOf(other, state.pods.resized))
    return lacking(podRequests(pod.spec), state.parsed(node.status?.allocatable), used).length === 0
  }

  #planElsewhere(pod: Pod, { metadata }: Node): void {
    const { state } = this.#deps
    const { uid = '' } = pod.metadata
    this.#placed.delete(uid)
    state.plans.giveUp([uid])
    state.evidence.refuse(uid, metadata.labels?.[labels.hostname] ?? metadata.name)
  }

  /** One pending pod of each workload. */
  *#waiting(): Generator<undefined, Map<string, Pod>, undefined> {
    const { state } = this.#deps
    const waiting = new Map<string, Pod>()
    for (const pod of state.pods.waiting()) {
      yield
      if (state.isWellFormed(pod) && isActive(pod)) waiting.set(workloadOf(pod), pod)
    }
    return waiting
  }

  /** Learns from nodes that are too small for a pod they were launched for, so that the next one is larger. */
  async #learnFromSmallNodes(signal: AbortSignal): Promise<void> {
    const { kubernetes, slicing, state } = this.#deps
    const known = state.evidence.all()
    if (this.#open.size === 0 && known.length === 0) return
    const waiting = await inSlices(this.#waiting(), slicing)
    for (const { workload } of known) state.evidence.await(workload, waiting.has(workload))
    for (const [name, workloads] of this.#open) {
      const claim = kubernetes.caches.nodeClaims.get({ name })
      const node = claim && state.nodeOf(claim)
      // Known before the node takes pods, and so before another one like it is launched.
      if (claim === undefined || node?.status?.allocatable === undefined) continue
      for (const pod of state.podsOn(node.metadata.name))
        if (state.isWellFormed(pod)) this.#settle(name, workloadOf(pod))
      const { daemonRequests } = state.pods.useOf(node.metadata.name)
      for (const [workload, progress] of workloads) {
        const pod = waiting.get(workload)
        if (pod === undefined || progress.isSmall) continue
        const names = lacking(podRequests(pod.spec), state.parsed(node.status?.allocatable), daemonRequests)
        if (names.length === 0) continue
        const margins = await this.#marginsOf(claim, node, names, signal)
        if (Object.keys(margins).length > 0) state.evidence.learn(workload, margins)
        progress.isSmall = true
        this.#reportSmall(claim, node, pod, names)
      }
    }
  }

  /** By resource, how many times more the catalogue promises than the node has. */
  async #marginsOf(
    claim: NodeClaim,
    node: Node,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, number>>> {
    const { kubernetes, learning, state } = this.#deps
    const pool = kubernetes.caches.nodePools.get({ name: poolOf(claim) })
    const types =
      pool &&
      (await learning?.provider.getInstanceTypes(pool, signal).catch((error: unknown) => {
        if (!isProviderError(error)) throw error
        return undefined
      }))
    const type = types?.find(({ name }) => name === node.metadata.labels?.[labels.instanceType])
    const allocatable = state.parsed(node.status?.allocatable)
    const short = type && shortfallOf(type, { capacity: {}, allocatable })?.allocatable
    return Object.fromEntries(
      Object.entries(short ?? {})
        .filter(([name, { found }]) => name !== 'pods' && names.includes(name) && found > 0)
        .map(([name, { said, found }]) => [name, said / found]),
    )
  }

  #reportUseless(entry: UselessNode | undefined, pod: Pod): void {
    if (entry === undefined) return
    const { logger, metrics } = this.#deps
    metrics.uselessNodes.inc({ nodepool: entry.nodePool, cause: entry.cause })
    logger.warn('a node was launched in vain', {
      Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
      NodeClaim: { name: entry.claim },
      Node: { name: entry.node },
      NodePool: { name: entry.nodePool },
      cause: entry.cause,
      scheduler: entry.words,
    })
    this.#warn(pod, entry.node, entry.cause === 'refused' ? 'NodeRefused' : 'NodeUnused', uselessText(entry))
  }

  /** @param short names of resources of which the node has too little. */
  #reportSmall(claim: NodeClaim, node: Node, pod: Pod, short: readonly string[]): void {
    const { name } = node.metadata
    this.#deps.metrics.uselessNodes.inc({ nodepool: poolOf(claim), cause: 'short' })
    const what = `Node ${name} (NodeClaim ${claim.metadata.name}) was launched for pod ${pod.metadata.namespace}/${pod.metadata.name}`
    const message = `${what} and has less ${short.join(', ')} than was planned; the next decision uses that`
    this.#warn(pod, name, 'NodeRefused', message)
  }

  #warn(pod: Pod, node: string, reason: string, message: string): void {
    const dedupe = [pod.metadata.uid ?? '', node]
    this.#deps.kubernetes.events.record({ object: pod, type: 'Warning', reason, message, dedupe })
  }

  /** Measures for how many pending workloads each NodePool launches nothing for now. */
  #reportHeld(): void {
    const { kubernetes, metrics, state } = this.#deps
    const pools = kubernetes.caches.nodePools.list()
    const counts = new Map(pools.map(({ metadata }) => [metadata.name, 0]))
    for (const entry of state.evidence.all())
      if (state.evidence.isAwaited(entry.workload) && state.evidence.isHeld(entry))
        counts.set(entry.nodePool, (counts.get(entry.nodePool) ?? 0) + 1)
    metrics.heldWorkloads.reset()
    for (const [nodepool, count] of counts) metrics.heldWorkloads.set({ nodepool }, count)
  }
}

const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

/** Names of resources of which less is left than wanted, sorted. */
function lacking(wanted: Resources, has: Resources, used: Resources): readonly string[] {
  return Object.entries(wanted)
    .filter(
      ([name, amount]) => amount > 0 && amount > (ownValue(has, name) ?? 0) - (ownValue(used, name) ?? 0),
    )
    .map(([name]) => name)
    .toSorted()
}
