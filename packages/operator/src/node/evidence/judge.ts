/**
 * Looks at what becomes of nodes that were launched for pods (reports-2.md 1). Runs before each decision, which would
 * else launch the same again.
 */
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
import type { SchedulingResult } from '@tenon/engine'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isNodeReady, transitionMs } from '../../state/nodes/state-node.ts'
import { podsOnNode } from '../../state/pods/pods.ts'
import { isActive, isDaemonPod } from '../../state/pods/pods.ts'
import { workloadOf } from '../../state/pods/workloads.ts'
import type { EvidenceReport } from './evidence-report.ts'
import { workloadsOf } from './launched-for.ts'
import type { PodRefusals } from './pod-refusals.ts'
import type { Shortfalls } from './shortfalls.ts'

/** The scheduler has had its chance to place a pod on a node. */
const settleMs = 2 * 60_000
/** The same where its words are about something that decisions know: it tries each pod again every five minutes. */
const unexplainedMs = 30 * 60_000
/** By then it has tried the pod again, and has said the same as before if nothing was written. */
const repeatedMs = 10 * 60_000
/** Reads from the API server in one pass, of which each pod takes two. */
const looksPerPass = 10
const againMs = 60_000
/** The scheduler may hear that a node is open before its claim says so, in whole seconds. */
const precisionMs = 2000

interface Parts {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes' | 'pods'>
  readonly client: Pick<KubeClient, 'list'>
  readonly state: Pick<
    ClusterState,
    | 'claimOf'
    | 'evidence'
    | 'isWellFormed'
    | 'nodeOf'
    | 'parsed'
    | 'plans'
    | 'pods'
    | 'podsOn'
    | 'schedulerUpdates'
  >
  readonly clock: Pick<Clock, 'now'>
  readonly refusals: PodRefusals
  readonly shortfalls: Shortfalls
  readonly report: EvidenceReport
  readonly slicing: Slicing
}

/** A pod that decisions put on a node that is there. */
interface PlacedPod {
  readonly node: string
  readonly sinceMs: number
  nextLookMs: number
}

export class NodeEvidenceJudge {
  readonly #parts: Parts
  /** By UID. */
  #placed = new Map<string, PlacedPod>()
  /** By claim name the workloads that it was launched for and that have not run on its node; whether it is too small. */
  readonly #open = new Map<string, Map<string, { isSmall: boolean }>>()
  /** Claims that ended without having run a pod that they were launched for, and that may wait still. */
  readonly #unused: { readonly claim: NodeClaim; readonly pod: Pod }[] = []
  /** Claims that were seen. */
  readonly #seen = new Set<string>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Follows claims and pods until the returned function is called. */
  follow(): () => void {
    const { caches, state } = this.#parts
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

  /** A pod has a node: others like it need not be held from such nodes. */
  #started(pod: Pod): void {
    const { caches, state } = this.#parts
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

  /** A claim ends. Whoever waits since before it was made, and was meant to run there, has not. */
  #ended(claim: NodeClaim, unserved: ReadonlyMap<string, object>): void {
    // Nodes that never take pods pause the launches of their NodePool, unless they lack what pods ask for.
    const initialized = conditionOf(claim, 'Initialized')
    const isOpen = initialized?.status === 'True' || initialized?.reason === 'ResourceNotRegistered'
    if (!isOpen || unserved.size === 0) return
    const { state } = this.#parts
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

  /** Counts nodes that ended unused, if the pod waits by the API server's word as well. */
  async #countUnused(signal: AbortSignal): Promise<void> {
    const { clock, refusals, report, state } = this.#parts
    for (const { claim, pod } of this.#unused.splice(0, looksPerPass)) {
      const said = await refusals.wordsOf(pod, signal)
      if (said === undefined) continue
      const initialized = conditionOf(claim, 'Initialized')
      const words = initialized?.status === 'True' ? said : (initialized?.message ?? said)
      const atMs = Date.parse(claim.metadata.deletionTimestamp ?? '') || clock.now()
      const finding = { ...this.#finding(claim, pod), cause: 'unused', words, atMs } as const
      report.useless(state.evidence.useless(finding), pod)
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
    const { caches, state } = this.#parts
    const workload = workloadOf(pod)
    return caches.nodeClaims
      .byIndex(indexes.byNodePool, pool)
      .some((claim) =>
        state
          .podsOn(claim.status?.nodeName ?? '')
          .some((other) => state.isWellFormed(other) && isActive(other) && workloadOf(other) === workload),
      )
  }

  /** Notes on which of the nodes that there are a decision put pods. */
  decided({ placements }: Pick<SchedulingResult, 'placements'>): void {
    const now = this.#parts.clock.now()
    const placed = new Map<string, PlacedPod>()
    for (const { pod, node } of placements) {
      const { uid = '' } = pod.metadata
      const known = this.#placed.get(uid)
      placed.set(uid, known?.node === node ? known : { node, sinceMs: now, nextLookMs: now + settleMs })
    }
    this.#placed = placed
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, report, state } = this.#parts
    await this.#learnFromSmallNodes(signal)
    await this.#countUnused(signal)
    const now = clock.now()
    let looks = 0
    for (const [uid, placed] of this.#placed) {
      if (placed.nextLookMs > now || looks >= looksPerPass) continue
      const pod = state.pods.unplaced(uid)
      if (pod === undefined || !state.isWellFormed(pod)) continue
      placed.nextLookMs = now + againMs
      looks++
      await this.#look(pod, placed, signal)
    }
    report.held()
  }

  /** Judges a pod that decisions have kept on a node, and that waits all the same. */
  async #look(pod: Pod, placed: PlacedPod, signal: AbortSignal): Promise<void> {
    const { caches, clock, refusals, report, state } = this.#parts
    const node = caches.nodes.get({ name: placed.node })
    const claim = node && state.claimOf(node)
    if (node === undefined || claim === undefined || !isConditionTrue(claim, 'Initialized')) return
    const openedMs = transitionMs(claim, 'Initialized') ?? Number.NaN
    const waitedMs = clock.now() - Math.max(placed.sinceMs, openedMs)
    if (!(waitedMs >= settleMs) || refusals.isOfShortGroup(pod)) return
    const words = await refusals.wordsOf(pod, signal)
    const isExplained = this.#isExplained(pod, words, { openedMs, waitedMs })
    if (words === undefined || isExplained === undefined) return
    if (!(await this.#hasRoom(pod, node, signal))) return
    this.#leave(pod, node)
    const workload = workloadOf(pod)
    const isMeant = this.#open.get(claim.metadata.name)?.has(workload) === true
    if (!isMeant || !isExplained) return
    this.#settle(claim.metadata.name, workload)
    const finding = { ...this.#finding(claim, pod), node: node.metadata.name }
    report.useless(state.evidence.useless({ ...finding, cause: 'refused', words, atMs: clock.now() }), pod)
  }

  /**
   * Whether the scheduler names a reason of its own, which decisions do not know.
   * @returns undefined where its words say nothing of an open node yet.
   */
  #isExplained(
    pod: Pod,
    words: string | undefined,
    { openedMs, waitedMs }: { readonly openedMs: number; readonly waitedMs: number },
  ): boolean | undefined {
    const { caches, state } = this.#parts
    const message = words === undefined ? undefined : readSchedulerMessage(words)
    // Words from before the node was there, or open, are about others; the same words as before are not written again.
    const isSaidSince =
      state.schedulerUpdates.lastMs(pod.metadata.uid ?? '') >= openedMs - precisionMs ||
      waitedMs >= repeatedMs
    if (message === undefined || !isSaidSince || message.nodes < caches.nodes.list().length) return undefined
    if (message.unknownReasons.length > 0) return true
    return waitedMs >= unexplainedMs ? false : undefined
  }

  /** Whether the pod fits beside what runs on the node by the API server's word: the cache may be late. */
  async #hasRoom(pod: Pod, node: Node, signal: AbortSignal): Promise<boolean> {
    const { client, state } = this.#parts
    let pods: readonly Pod[]
    try {
      pods = await podsOnNode(client, node.metadata.name, signal)
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
    for (const other of pods) if (isActive(other)) accumulate(used, requestsOf(other))
    return lacking(podRequests(pod.spec), state.parsed(node.status?.allocatable), used).length === 0
  }

  /** The pod is planned elsewhere for a while. */
  #leave(pod: Pod, { metadata }: Node): void {
    const { state } = this.#parts
    const { uid = '' } = pod.metadata
    this.#placed.delete(uid)
    state.plans.giveUp([uid])
    state.evidence.refuse(uid, metadata.labels?.[labels.hostname] ?? metadata.name)
  }

  /** A pod of each workload that waits. */
  *#waiting(): Generator<undefined, Map<string, Pod>, undefined> {
    const { state } = this.#parts
    const waiting = new Map<string, Pod>()
    for (const pod of state.pods.waiting()) {
      yield
      if (state.isWellFormed(pod) && isActive(pod)) waiting.set(workloadOf(pod), pod)
    }
    return waiting
  }

  /** A node that is too small for a pod that it was launched for: the next one is to be larger. */
  async #learnFromSmallNodes(signal: AbortSignal): Promise<void> {
    const { caches, report, shortfalls, slicing, state } = this.#parts
    const known = state.evidence.all()
    if (this.#open.size === 0 && known.length === 0) return
    const waiting = await inSlices(this.#waiting(), slicing)
    for (const { workload } of known) state.evidence.await(workload, waiting.has(workload))
    for (const [name, workloads] of this.#open) {
      const claim = caches.nodeClaims.get({ name })
      const node = claim && state.nodeOf(claim)
      // What a node has is known before it takes pods, and so before the same is launched again.
      if (claim === undefined || node?.status?.allocatable === undefined) continue
      for (const pod of state.podsOn(node.metadata.name))
        if (state.isWellFormed(pod)) this.#settle(name, workloadOf(pod))
      const { daemonRequests } = state.pods.useOf(node.metadata.name)
      for (const [workload, standing] of workloads) {
        const pod = waiting.get(workload)
        if (pod === undefined || standing.isSmall) continue
        const names = lacking(podRequests(pod.spec), state.parsed(node.status?.allocatable), daemonRequests)
        if (names.length === 0) continue
        const margins = await shortfalls.marginsOf(claim, node, names, signal)
        if (Object.keys(margins).length > 0) state.evidence.learn(workload, margins)
        standing.isSmall = true
        report.small(claim, node, pod, names)
      }
    }
  }
}

const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

/** Resources of which less is left than wanted, in order of name. */
function lacking(wanted: Resources, has: Resources, used: Resources): readonly string[] {
  return Object.entries(wanted)
    .filter(
      ([name, amount]) => amount > 0 && amount > (ownValue(has, name) ?? 0) - (ownValue(used, name) ?? 0),
    )
    .map(([name]) => name)
    .toSorted()
}

/** Reasons of kube-scheduler's own filters, which decisions know as well. */
const knownReasons = [
  /^Insufficient /,
  /^Too many pods/,
  /untolerated taint/,
  /^node\(s\) were (unschedulable|not ready)/,
  /didn't match /,
  /didn't satisfy /,
  /didn't have free ports/,
  /didn't find available persistent volumes/,
  /had volume node affinity conflict/,
  /had no available volume zone/,
  /exceed max volume count/,
  /did not have enough free storage/,
  /no available disk|conflicting disk|disk conflict/,
  /unbound immediate PersistentVolumeClaims/,
  /cannot allocate all claims/,
  /node\(s\) unavailable due to /,
]

/** What a message says: how many nodes the scheduler looked at, and reasons that no filter of its own gives. */
interface SchedulerMessage {
  readonly nodes: number
  readonly unknownReasons: readonly string[]
}

/** @returns undefined for a text that is not of the form `0/5 nodes are available: 2 Insufficient cpu, 3 …`. */
function readSchedulerMessage(text: string): SchedulerMessage | undefined {
  const [, count = '', rest = ''] = /^0\/(\d+) nodes are available: ?(.*)$/s.exec(text) ?? []
  if (count === '') return undefined
  // What follows is about preemption, which counts the same nodes again.
  const [ofFilters = ''] = rest.split(/\.? preemption: /)
  const reasons = ofFilters
    .replace(/\.$/, '')
    .split(/, (?=\d+ )/)
    .flatMap((part) => /^\d+ (.*)$/s.exec(part)?.[1] ?? [])
  const unknownReasons = reasons.filter((reason) => !knownReasons.some((known) => known.test(reason)))
  return { nodes: Number(count), unknownReasons }
}
