/**
 * Finds nodes that were launched in vain (reports.md 1): they are there, and the scheduler still refuses the pods they
 * were launched for. Runs before each decision, which would else launch the same again.
 */
import {
  conditionOf,
  isConditionTrue,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  ownValue,
  type Pod,
  tolerates,
} from '@tenon/api'
import {
  accumulate,
  attachedClaims,
  podRequests,
  resolveVolumes,
  type SchedulingResult,
  shortfallOf,
  volumesAdmit,
  withinVolumeLimits,
} from '@tenon/engine'
import { type EventRecorder, isKubeError, type KubeClient } from '@tenon/kube'
import { type CloudProvider, isProviderError } from '@tenon/provider'
import { type Clock, inSlices, type Logger, type Turns } from '@tenon/runtime'
import { eligibilityPolicy } from '../../provisioning/input/eligible-pods.ts'
import { sliceMs } from '../../decider/slice.ts'
import { nodeStorage, volumeLookups } from '../../provisioning/input/volume-lookups.ts'
import type { Knowledge, UselessNode } from '../../cluster/nodes/node-evidence.ts'
import { isInitializationDoubtful } from '../../cluster/nodes/initialization-time.ts'
import type { PlanTarget } from '../../cluster/pods/pod-plans.ts'
import { isActive, isDaemonPod, isReschedulable } from '../../cluster/pods/pods.ts'
import { isNodeReady, type NodeStorage, transitionMs } from '../../cluster/nodes/state-node.ts'
import { workloadOf } from '../../cluster/pods/workloads.ts'
import { groundOf } from './ground.ts'
import { workloadsOf } from './launched-for.ts'
import { uselessText } from '../../cluster/nodes/useless-text.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { CapacityLearning } from '../../cloud/corrected-provider.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly learning?: CapacityLearning
  readonly events: EventRecorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly turns: Turns
  readonly logger: Logger
  readonly settings: Settings
}

/** On a node that has been still for so long since the pod was tried there is no place for the pod. */
const settleMs = 2 * 60_000
/** The same if pods came or went since: the scheduler tries every pod once more within five minutes. */
const triedAgainMs = 6 * 60_000
/** The scheduler need not try a pod on a node that is too small for it. */
const shortSettleMs = 30_000
/** A node that has been there for so long without being found useless was not launched in vain. */
const openMs = 60 * 60_000
/** Conditions tell whole seconds, and the scheduler is told that a node is open before this process has noted it. */
const precisionMs = 2000
/** Set on a volume claim by the scheduler, while the volume is made for a node. */
const selectedNodeAnnotation = 'volume.kubernetes.io/selected-node'

/**
 * What is known about the place of a pod. `open`: it may yet get it. `taken`: it has other pods now, or is closed, which
 * says nothing about the pod.
 */
type Verdict =
  | { readonly kind: 'open' }
  | { readonly kind: 'taken' }
  | { readonly kind: 'short'; readonly names: readonly string[] }
  | { readonly kind: 'refused' }

const open: Verdict = { kind: 'open' }
const taken: Verdict = { kind: 'taken' }

/** A node and the pods that wait for it. */
interface Place {
  readonly claim: NodeClaim
  readonly node: Node
  /** When pods could come first; Unix milliseconds. */
  readonly openedMs: number
  /** When pods last came or went; Unix milliseconds. */
  readonly changedMs: number
  /** Volumes of its pods, and of those of DaemonSets alone; worked out once. */
  readonly storage: { all?: NodeStorage; daemons?: NodeStorage }
}

/** Pods that wait for a node that was launched for them, by key of their workload, and how many it was launched for. */
export type OnTrial = ReadonlyMap<string, number>

/** Keeps what claims were launched for until that has come true, or proved to be in vain. */
export class NodeEvidenceJudge {
  readonly #deps: Dependencies
  /** By claim name the workloads that have no pod on its node yet. */
  readonly #open = new Map<string, Map<string, number>>()
  /** Claims whose workloads were read. */
  readonly #read = new Set<string>()
  /** By UID of a pod the node that the last decision put it on; undefined where it knows none for the pod. */
  #decided: ReadonlyMap<string, string | undefined> = new Map()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Follows claims until the returned function is called. */
  follow(): () => void {
    const { caches, clock } = this.#deps
    return caches.nodeClaims.onChange(({ kind, object }) => {
      const { name, deletionTimestamp } = object.metadata
      if (kind !== 'deleted' && deletionTimestamp === undefined) {
        if (this.#read.has(name)) return
        this.#read.add(name)
        const initializedMs = isConditionTrue(object, 'Initialized')
          ? transitionMs(object, 'Initialized')
          : undefined
        if (initializedMs !== undefined && clock.now() - initializedMs > openMs) return
        const workloads = new Map(workloadsOf(object))
        if (workloads.size > 0) this.#open.set(name, workloads)
        return
      }
      this.#unborn(object)
      this.#open.delete(name)
      if (kind === 'deleted') this.#read.delete(name)
    })
  }

  /** Notes on which of the nodes that there are a decision put pods, and for which pods it knows none. */
  decided({
    placements,
    claims,
    failures,
  }: Pick<SchedulingResult, 'placements' | 'claims' | 'failures'>): void {
    const elsewhere = [...claims.flatMap(({ pods }) => pods), ...failures.map(({ pod }) => pod)]
    this.#decided = new Map([
      ...elsewhere.map(({ metadata }): [string, undefined] => [metadata.uid ?? '', undefined]),
      ...placements.map(({ pod, node }): [string, string] => [pod.metadata.uid ?? '', node]),
    ])
  }

  /** Judges every node that some pod waits for. */
  async run(signal: AbortSignal): Promise<OnTrial> {
    const { clock, state, turns } = this.#deps
    const { evidence } = state
    evidence.stand(groundOf(this.#deps))
    const onTrial = new Map<string, number>()
    const isIdle = this.#open.size === 0 && evidence.isEmpty
    const waiting = isIdle
      ? new Map<string, Pod[]>()
      : await inSlices(this.#waiting(), { clock, turns, sliceMs })
    for (const [name, workloads] of this.#open) {
      const place = this.#placeOf(name)
      if (place === undefined) continue
      const served = this.#served(place.node)
      for (const [workload, count] of workloads) {
        const pods = waiting.get(workload) ?? []
        if (served.has(workload)) workloads.delete(workload)
        else if (pods.length > 0 && (await this.#isOnTrial({ place, workload, pods }, signal)))
          onTrial.set(workload, (onTrial.get(workload) ?? 0) + count)
      }
      for (const [workload, ms] of served) evidence.served(workload, ms)
      if (workloads.size === 0) this.#open.delete(name)
    }
    await this.#judgePlans(signal)
    this.#tellHeld(waiting)
    return onTrial
  }

  *#waiting(): Generator<undefined, Map<string, Pod[]>, undefined> {
    const { state } = this.#deps
    const waiting = new Map<string, Pod[]>()
    for (const pod of state.pods.waiting()) {
      yield
      if (!state.isWellFormed(pod) || !isActive(pod)) continue
      const key = workloadOf(pod)
      const pods = waiting.get(key)
      if (pods === undefined) waiting.set(key, [pod])
      else pods.push(pod)
    }
    return waiting
  }

  /** The node of a claim; undefined while there is none, and once it goes. */
  #placeOf(name: string): Place | undefined {
    const { caches, state } = this.#deps
    const claim = caches.nodeClaims.get({ name })
    const node = claim === undefined ? undefined : state.nodeOf(claim)
    if (claim === undefined || node === undefined) return undefined
    if (node.metadata.deletionTimestamp !== undefined || isConditionTrue(claim, 'InstanceTerminating'))
      return undefined
    const eventMs = Date.parse(claim.status?.lastPodEventTime ?? '') || 0
    const openedMs = transitionMs(claim, 'Initialized') ?? 0
    return { claim, node, openedMs, changedMs: Math.max(openedMs, eventMs), storage: {} }
  }

  /** When pods last came to the node, by key of their workload; Unix milliseconds, 0 where it does not show. */
  #served({ metadata }: Node): ReadonlyMap<string, number> {
    const { state } = this.#deps
    const served = new Map<string, number>()
    for (const pod of state.podsOn(metadata.name)) {
      if (!state.isWellFormed(pod) || isDaemonPod(pod)) continue
      const workload = workloadOf(pod)
      served.set(workload, Math.max(boundMs(pod), served.get(workload) ?? 0))
    }
    return served
  }

  /** Whether a workload may yet get the place that was launched for it: nothing else is launched meanwhile. */
  async #isOnTrial(
    {
      place,
      workload,
      pods,
    }: { readonly place: Place; readonly workload: string; readonly pods: readonly Pod[] },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { clock, settings, state } = this.#deps
    const { evidence } = state
    const { claim } = place
    const isInitialized = isConditionTrue(claim, 'Initialized')
    const isRegistered = place.node.metadata.labels?.[labels.registered] === 'true'
    // Pods that such a node was launched for stay with it; others of the workload need not wait for it.
    if (isInitializationDoubtful({ claim, isRegistered, isInitialized }, settings, clock.now())) return false
    const known = evidence.of(workload)
    const isKnown = known !== undefined && evidence.isFound(workload, claim.metadata.name)
    if (isKnown && (known.cause === 'short' || evidence.isHeld(known))) return false
    // What kept the pods away is still there, and decisions know it: they may have a place elsewhere.
    if (isKnown && this.#isWithoutPlaces(pods, place.node)) return false
    // What was refused is tried once more, for a while.
    const again = isKnown
      ? { ...place, changedMs: Math.max(evidence.liftedMs(workload), place.changedMs) }
      : place
    const { verdict, pod } = this.#verdictOn(pods, again)
    if (verdict.kind === 'open') return true
    if (verdict.kind === 'taken') {
      this.#open.get(place.claim.metadata.name)?.delete(workload)
      return false
    }
    const words = await this.#wordsOf(pod, signal)
    if (words === undefined) return true
    await this.#found(place, { pod, like: pods }, verdict, words, signal)
    return false
  }

  #verdictOn(pods: readonly Pod[], place: Place): { readonly verdict: Verdict; readonly pod: Pod } {
    const [first] = pods
    let last: { readonly verdict: Verdict; readonly pod: Pod } = { verdict: open, pod: first as Pod }
    for (const pod of pods) {
      last = { verdict: this.#verdict(pod, place), pod }
      // All of them ask for the same; only what was said about each differs.
      if (last.verdict.kind !== 'open') return last
    }
    return last
  }

  #verdict(pod: Pod, place: Place): Verdict {
    const { claim, node, openedMs } = place
    const { clock, state } = this.#deps
    if (!isConditionTrue(claim, 'Initialized')) return open
    if (!isNodeReady(node) || isClosed(node, pod)) return taken
    const { name } = node.metadata
    const { requests, daemonRequests } = state.pods.useOf(name)
    const has = state.parsed(node.status?.allocatable)
    const wanted = podRequests(pod.spec)
    const saidMs = state.words.lastMs(pod.metadata.uid ?? '')
    const short = lacking(wanted, has, daemonRequests)
    if (short.length > 0) {
      const isSettled = clock.now() - openedMs >= shortSettleMs || saidMs >= openedMs + precisionMs
      return isSettled ? { kind: 'short', names: short } : open
    }
    if (lacking(wanted, has, requests).length > 0 || this.#isAttachedFull(pod, place)) return taken
    // Whether others are in the way shows once a decision was about the pod, which may have just come.
    const isJudged = this.#isSettled(saidMs, place) && this.#decided.has(pod.metadata.uid ?? '')
    if (!isJudged || this.#awaitsVolumes(pod)) return open
    return this.#isTakenByOthers(pod, claim, node) ? taken : { kind: 'refused' }
  }

  /** Whether a pod about which the scheduler last spoke then would have the place by now. */
  #isSettled(saidMs: number, { openedMs, changedMs }: Place): boolean {
    const now = this.#deps.clock.now()
    const isFresh = saidMs >= changedMs - precisionMs
    // The same words as before are not written again.
    const isTriedAgain = saidMs > 0 && now - openedMs >= triedAgainMs
    const isTold = isFresh || saidMs >= openedMs - precisionMs || isTriedAgain
    return isTold && now - changedMs >= (isFresh ? settleMs : triedAgainMs)
  }

  /**
   * Whether pods came to the node that it was not launched for, and decisions know no place for the pod there any more:
   * because of a host port, for instance, or of a rule about the others. The next node need not have them.
   */
  #isTakenByOthers({ metadata: { uid = '' } }: Pod, claim: NodeClaim, { metadata }: Node): boolean {
    const { state } = this.#deps
    const isWithoutPlace = this.#decided.has(uid) && this.#decided.get(uid) === undefined
    const hostname = metadata.labels?.[labels.hostname] ?? metadata.name
    if (!isWithoutPlace || state.evidence.refusing(uid).includes(hostname)) return false
    const expected = workloadsOf(claim)
    return state
      .podsOn(metadata.name)
      .some((pod) => isReschedulable(pod) && state.isWellFormed(pod) && !expected.has(workloadOf(pod)))
  }

  /** Whether a decision was about each of the pods and put none on the node. */
  #isWithoutPlaces(pods: readonly Pod[], { metadata }: Node): boolean {
    return pods.every(({ metadata: { uid = '' } }) => {
      return this.#decided.has(uid) && this.#decided.get(uid) !== metadata.name
    })
  }

  /** Whether a volume of the pod is being made for the node that the scheduler has chosen. */
  #awaitsVolumes({ metadata, spec }: Pod): boolean {
    const { persistentVolumeClaims } = this.#deps.caches
    return (spec.volumes ?? []).some(({ persistentVolumeClaim, ephemeral, name }) => {
      const claim = persistentVolumeClaim?.claimName ?? (ephemeral && `${metadata.name}-${name}`)
      const found =
        claim === undefined
          ? undefined
          : persistentVolumeClaims.get({ namespace: metadata.namespace ?? '', name: claim })
      return (
        found !== undefined &&
        (found.spec.volumeName ?? '') === '' &&
        (found.metadata.annotations?.[selectedNodeAnnotation] ?? '') !== ''
      )
    })
  }

  /** Whether the node could attach the volumes of the pod, but not beside those of the pods that it has. */
  #isAttachedFull(pod: Pod, { node, storage }: Place): boolean {
    if ((pod.spec.volumes ?? []).length === 0) return false
    const { podsWithVolumes } = this.#deps.state.pods.useOf(node.metadata.name)
    storage.all ??= this.#storageOf(node, podsWithVolumes)
    if (this.#attaches(pod, storage.all)) return false
    storage.daemons ??= this.#storageOf(node, podsWithVolumes.filter(isDaemonPod))
    return this.#attaches(pod, storage.daemons)
  }

  #storageOf({ metadata }: Node, pods: readonly Pod[]): NodeStorage {
    const { caches } = this.#deps
    return nodeStorage(caches, metadata.name, pods, volumeLookups(caches))
  }

  #attaches(pod: Pod, { volumeLimits = {}, volumesInUse = {} }: NodeStorage): boolean {
    const claims = attachedClaims(pod, volumeLookups(this.#deps.caches))
    return withinVolumeLimits(volumeLimits, volumesInUse, claims)
  }

  /** @param like pods of the same workload: decisions may have had the node for any of them. */
  #knowledgeOf(pod: Pod, like: readonly Pod[], node: Node): Knowledge {
    if (this.#isVolumeElsewhere(pod, node)) return 'lasting'
    // Launches of the type know from now on how many volumes it attaches.
    if (!this.#attaches(pod, this.#storageOf(node, []))) return 'lasting'
    const isDecided = like.some(
      ({ metadata }) => this.#decided.get(metadata.uid ?? '') === node.metadata.name,
    )
    return isDecided ? 'none' : 'present'
  }

  /**
   * Whether a volume of the pod cannot be reached from the node. That came to be after the launch, which knew the
   * volumes of its time: another pod that shares the claim was first.
   */
  #isVolumeElsewhere(pod: Pod, { metadata }: Node): boolean {
    const { caches, provider } = this.#deps
    const resolved = resolveVolumes(pod, volumeLookups(caches), eligibilityPolicy(provider))
    return !('kind' in resolved) && !volumesAdmit(resolved, metadata.labels ?? {})
  }

  /** What the scheduler says of the pod now, asked of the API server; undefined when it does not refuse it any more. */
  async #wordsOf(pod: Pod, signal: AbortSignal): Promise<string | undefined> {
    const { name, namespace = '', uid } = pod.metadata
    const { client } = this.#deps
    // As a list, which is what this process has the right to read pods by.
    const [now] = await client
      .list(kinds.pod, { namespace, fieldSelector: `metadata.name=${name}`, signal })
      .catch((error: unknown): Pod[] => {
        if (!isKubeError(error)) throw error
        // It is asked again before the next decision.
        return []
      })
    if (now === undefined || now.metadata.uid !== uid || (now.spec.nodeName ?? '') !== '' || !isActive(now))
      return undefined
    const condition = now.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    if (condition?.status !== 'False' || condition.reason !== 'Unschedulable') return undefined
    return condition.message ?? ''
  }

  async #found(
    { claim, node }: Place,
    { pod, like }: { readonly pod: Pod; readonly like: readonly Pod[] },
    verdict: Verdict & { readonly kind: 'short' | 'refused' },
    words: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { state } = this.#deps
    const names = verdict.kind === 'short' ? verdict.names : []
    const margins = names.length === 0 ? {} : await this.#margins(claim, node, names, signal)
    const entry = state.evidence.useless({
      pod,
      nodePool: claim.metadata.labels?.[labels.nodePool] ?? '',
      node: node.metadata.name,
      claim: claim.metadata.name,
      cause: verdict.kind,
      words,
      margins,
      knowledge: this.#knowledgeOf(pod, like, node),
      boughtMs: boughtMs(claim),
    })
    this.#release(entry.workload, { kind: 'claim', name: entry.claim })
    this.#tell(entry, pod, names)
  }

  /** By resource how much more than there is the catalogue promises, as a factor. */
  async #margins(
    claim: NodeClaim,
    node: Node,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, number>>> {
    const { caches, learning, state } = this.#deps
    const pool = caches.nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
    const types = pool && (await learning?.provider.getInstanceTypes(pool, signal).catch(nothingKnown))
    const type = types?.find(({ name }) => name === node.metadata.labels?.[labels.instanceType])
    const allocatable = state.parsed(node.status?.allocatable)
    const short = type && shortfallOf(type, { capacity: {}, allocatable })?.allocatable
    return Object.fromEntries(
      Object.entries(short ?? {})
        .filter(([name, { found }]) => name !== 'pods' && names.includes(name) && found > 0)
        .map(([name, { said, found }]) => [name, said / found]),
    )
  }

  /** Nobody waits for this node any more: it is not kept for anybody. */
  #release(workload: string, target: PlanTarget): void {
    const { plans, pods } = this.#deps.state
    plans.giveUp(
      plans.podsOf(target).filter((uid) => {
        const pod = pods.unplaced(uid)
        return pod !== undefined && workloadOf(pod) === workload
      }),
    )
  }

  #tell(entry: UselessNode, pod: Pod, short: readonly string[]): void {
    const { events, logger, metrics } = this.#deps
    metrics.uselessNodes.inc({ nodepool: entry.nodePool, cause: entry.cause })
    const message = uselessText(entry, short)
    logger.warn('a node was launched in vain', {
      Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
      NodeClaim: { name: entry.claim },
      Node: { name: entry.node },
      NodePool: { name: entry.nodePool },
      cause: entry.cause,
      scheduler: entry.words,
    })
    events.record({
      object: pod,
      type: 'Warning',
      reason: 'NodeRefused',
      message,
      dedupe: [pod.metadata.uid ?? '', entry.node],
    })
  }

  /** A claim ends whose node never offered what its pods ask for: the next one would not either. */
  #unborn(claim: NodeClaim): void {
    const workloads = this.#open.get(claim.metadata.name)
    if (workloads === undefined || conditionOf(claim, 'Initialized')?.reason !== 'ResourceNotRegistered')
      return
    const { state } = this.#deps
    const told = new Set<string>()
    for (const pod of state.pods.waiting()) {
      if (!state.isWellFormed(pod)) continue
      const workload = workloadOf(pod)
      if (!workloads.has(workload) || told.has(workload)) continue
      told.add(workload)
      const entry = state.evidence.useless({
        pod,
        nodePool: claim.metadata.labels?.[labels.nodePool] ?? '',
        node: claim.status?.nodeName ?? '',
        claim: claim.metadata.name,
        cause: 'refused',
        words: conditionOf(claim, 'Initialized')?.message ?? '',
        margins: {},
        knowledge: 'none',
        boughtMs: boughtMs(claim),
      })
      this.#tell(entry, pod, [])
    }
  }

  /** A pod that stays refused on a node that was there keeps it no longer, and is planned elsewhere. */
  async #judgePlans(signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#deps
    for (const [uid, { target, madeMs }] of state.plans.entries()) {
      if (clock.now() - madeMs < settleMs) continue
      const pod = state.pods.unplaced(uid)
      const node = pod && state.nominations.nodeFor(target)
      const claim = node && state.claimOf(node)
      if (pod === undefined || node === undefined || claim === undefined || !state.isWellFormed(pod)) continue
      if (this.#open.get(claim.metadata.name)?.has(workloadOf(pod)) === true) continue
      const place = this.#placeOf(claim.metadata.name)
      if (place === undefined) continue
      if (this.#verdict(pod, place).kind !== 'refused') continue
      if ((await this.#wordsOf(pod, signal)) === undefined) continue
      state.plans.giveUp([uid])
      state.evidence.refuse(uid, node.metadata.labels?.[labels.hostname] ?? node.metadata.name)
    }
  }

  #tellHeld(waiting: ReadonlyMap<string, readonly Pod[]>): void {
    const { caches, metrics, state } = this.#deps
    const counts = new Map(caches.nodePools.list().map(({ metadata }) => [metadata.name, 0]))
    for (const entry of state.evidence.all()) {
      const isWaitedFor = (waiting.get(entry.workload) ?? []).length > 0
      state.evidence.await(entry.workload, isWaitedFor)
      if (isWaitedFor && state.evidence.isHeld(entry))
        counts.set(entry.nodePool, (counts.get(entry.nodePool) ?? 0) + 1)
    }
    metrics.heldWorkloads.reset()
    for (const [nodepool, count] of counts) metrics.heldWorkloads.set({ nodepool }, count)
  }
}

/** Resources of which less is left than wanted, in order of name. */
function lacking(
  wanted: Readonly<Record<string, number>>,
  has: Readonly<Record<string, number>>,
  used: Readonly<Record<string, number>>,
): readonly string[] {
  const left: Record<string, number> = { ...has }
  accumulate(left, Object.fromEntries(Object.entries(used).map(([name, amount]) => [name, -amount])))
  return Object.entries(wanted)
    .filter(([name, amount]) => amount > 0 && amount > (ownValue(left, name) ?? 0))
    .map(([name]) => name)
    .toSorted()
}

/** When a pod got its node; Unix milliseconds, 0 where it does not show. */
function boundMs({ status }: Pod): number {
  const scheduled = status?.conditions?.find(
    ({ type, status: isSo }) => type === 'PodScheduled' && isSo === 'True',
  )
  return Date.parse(scheduled?.lastTransitionTime ?? status?.startTime ?? '') || 0
}

/** When a claim was made; Unix milliseconds. */
function boughtMs({ metadata }: NodeClaim): number | undefined {
  const ms = Date.parse(metadata.creationTimestamp ?? '')
  return Number.isNaN(ms) ? undefined : ms
}

/** Types that cannot be listed now say nothing. */
function nothingKnown(error: unknown): undefined {
  if (!isProviderError(error)) throw error
  return undefined
}

/** Whether something closes the node to the pod that its launch did not foresee. */
function isClosed({ spec }: Node, pod: Pod): boolean {
  if (spec?.unschedulable === true) return true
  return (spec?.taints ?? []).some(
    (taint) =>
      taint.effect !== 'PreferNoSchedule' &&
      !(pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  )
}
