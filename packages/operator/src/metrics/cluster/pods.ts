/** `metrics.pod`: where pods are, and how long they wait for a node and to be ready (operations.md 9.2). */
import { type Node, type NodeClaim, type Pod, type PodCondition } from '@tenon/api'
import type { Change, ReconcileResult } from '@tenon/kube'
import { type Clock, inSlices, type Turns } from '@tenon/runtime'
import type { SingletonSpec } from '../../controller.ts'
import { sliceMs } from '../../decider/slice.ts'
import type { ClusterMetrics, PodAges } from './cluster-metrics.ts'
import type { KeptGauge } from '../kept-gauge.ts'
import type { LiveSeries } from '../live-gauge.ts'
import type { PodDecision } from '../../cluster/pods/pod-decisions.ts'
import { isTerminal, keyOf } from '../../cluster/pods/pods.ts'
import { areSame, isReady, nodeLabelsOf, podLabels } from './pod-labels.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly state: ClusterState
  readonly clock: Clock
  readonly turns: Turns
}

const periodMs = 30_000

/** A pod that this process saw in phase Pending, until it has become ready or has ended. */
interface StartingPod {
  /** What its series say of it. */
  readonly labels: { readonly name: string; readonly namespace: string }
  readonly createdMs: number
  /** Whether it has yet to leave phase Pending. */
  isPending: boolean
  /** Whether it was seen without a node. */
  readonly wasUnbound: boolean
  /** Since it was seen with a node, its waiting times stand still. */
  bound?: { readonly atMs: number; readonly schedulableMs: number | undefined }
  /** What was decided about it, once the state remembers it no more. */
  decision?: PodDecision
}

/** Follows every pod. What its series say is worked out when somebody looks, and every 30 s. */
export class PodMetrics implements PodAges, SingletonSpec {
  readonly name = 'metrics.pod'
  readonly #deps: Dependencies
  readonly #metrics: ClusterMetrics
  /** By UID. */
  readonly #starting = new Map<string, StartingPod>()
  /** What is shown of each pod, by key. */
  readonly #labels = new Map<string, Readonly<Record<string, string>>>()
  /** Pods that may have to show something else, by UID. */
  readonly #changed = new Map<string, Pod>()

  constructor(deps: Dependencies, metrics: ClusterMetrics) {
    this.#deps = deps
    this.#metrics = metrics
    const { caches, state } = deps
    state.podDecisions.forgotten.add(({ uid, decision }) => {
      const pod = this.#starting.get(uid)
      if (pod !== undefined) pod.decision = decision
    })
    metrics.podAges = this
    const gauge = metrics.pods?.state
    if (gauge !== undefined) gauge.beforeReading = () => this.#showChanged(gauge)
    caches.pods.onChange((change) => {
      const { kind, object } = change
      if (kind === 'deleted' || !state.isWellFormed(object)) {
        this.#drop(object)
        return
      }
      // One that could not be read, and can be again, is not shown yet although nothing of that has changed.
      const isShown = this.#labels.has(keyOf(object.metadata)) && looksTheSame(change)
      if (gauge !== undefined && !isShown) this.#changed.set(uidOf(object), object)
      this.#wait(object)
    })
    if (gauge === undefined) return
    caches.nodes.onChange((change) => {
      const isSame =
        change.kind === 'updated' && areSame(nodeLabelsOf(change.old), nodeLabelsOf(change.object))
      if (!isSame) this.#nodeChanged(change.object)
    })
    caches.nodeClaims.onChange((change) => {
      const isSame =
        change.kind === 'updated' && change.old.status?.providerID === change.object.status?.providerID
      if (!isSame) this.#claimChanged(change.object)
    })
  }

  async run(): Promise<ReconcileResult> {
    const gauge = this.#metrics.pods?.state
    if (gauge !== undefined) await inSlices(this.#showChanged(gauge), { ...this.#deps, sliceMs })
    return { kind: 'after', delayMs: periodMs }
  }

  *unbound(): Generator<LiveSeries, void, undefined> {
    for (const [, { labels, createdMs, isPending, wasUnbound, bound }] of this.#allStarting())
      if (isPending && wasUnbound) yield this.#age(labels, createdMs, bound?.atMs)
  }

  *provisioningUnbound(): Generator<LiveSeries, void, undefined> {
    for (const [uid, { labels, isPending, wasUnbound, bound, decision }] of this.#allStarting()) {
      if (!isPending || !wasUnbound) continue
      const { schedulableMs } = bound ?? this.#decisionOf(uid, decision)
      if (schedulableMs !== undefined) yield this.#age(labels, schedulableMs, bound?.atMs)
    }
  }

  *unstarted(): Generator<LiveSeries, void, undefined> {
    for (const [, { labels, createdMs }] of this.#allStarting()) yield this.#age(labels, createdMs)
  }

  *provisioningUnstarted(): Generator<LiveSeries, void, undefined> {
    for (const [uid, { labels, decision }] of this.#allStarting()) {
      const { schedulableMs } = this.#decisionOf(uid, decision)
      if (schedulableMs !== undefined) yield this.#age(labels, schedulableMs)
    }
  }

  *undecided(): Generator<LiveSeries, void, undefined> {
    for (const [uid, { labels, decision }] of this.#allStarting()) {
      const { ackMs, decidedMs } = this.#decisionOf(uid, decision)
      if (decidedMs === undefined && ackMs !== undefined) yield this.#age(labels, ackMs)
    }
  }

  /** A copy: a pod that comes back under its name while this is read would be in it twice. */
  #allStarting(): readonly (readonly [string, StartingPod])[] {
    return [...this.#starting]
  }

  #decisionOf(uid: string, decision: PodDecision | undefined): PodDecision {
    return decision ?? this.#deps.state.podDecisions.get(uid)
  }

  #age(labels: StartingPod['labels'], sinceMs: number, untilMs?: number): LiveSeries {
    // As shared labels, the text of which is made once for all series of the pod.
    return { labels: {}, shared: labels, value: seconds(sinceMs, untilMs ?? this.#deps.clock.now()) }
  }

  #nodeChanged({ metadata }: Node): void {
    // Those that were not seen yet will be, with their node as it is then.
    for (const pod of this.#deps.state.podsOn(metadata.name))
      if (this.#labels.has(keyOf(pod.metadata))) this.#changed.set(uidOf(pod), pod)
  }

  #claimChanged(claim: NodeClaim): void {
    const node = this.#deps.state.nodeOf(claim)
    if (node !== undefined) this.#nodeChanged(node)
  }

  #drop(pod: Pod): void {
    const key = keyOf(pod.metadata)
    const uid = uidOf(pod)
    this.#starting.delete(uid)
    this.#changed.delete(uid)
    this.#labels.delete(key)
    this.#metrics.pods?.state.drop(key)
  }

  *#showChanged(gauge: KeptGauge): Generator<undefined, void, undefined> {
    for (const [uid, pod] of this.#changed) {
      this.#changed.delete(uid)
      this.#showState(gauge, pod)
      yield
    }
  }

  #showState(gauge: KeptGauge, pod: Pod): void {
    const { caches, state } = this.#deps
    const name = pod.spec.nodeName ?? ''
    const node = name === '' ? undefined : caches.nodes.get({ name })
    const isManaged = node !== undefined && state.claimOf(node) !== undefined
    const labels = podLabels(pod, { node, isManaged })
    const key = keyOf(pod.metadata)
    if (areSame(this.#labels.get(key), labels)) return
    this.#labels.set(key, labels)
    gauge.show(key, [{ labels, value: 1 }])
  }

  /** Notes what the pod is waiting for, and how long it had been for what it has got now. */
  #wait(pod: Pod): void {
    const uid = uidOf(pod)
    const isPending = pod.status?.phase === 'Pending'
    let starting = this.#starting.get(uid)
    if (starting === undefined && isPending) {
      const { name, namespace = '', creationTimestamp = '' } = pod.metadata
      const createdMs = Date.parse(creationTimestamp)
      starting = { labels: { name, namespace }, createdMs, isPending, wasUnbound: !isBound(pod) }
      this.#starting.set(uid, starting)
    }
    if (starting === undefined) return
    if (isPending) this.#pending(pod, uid, starting)
    else if (starting.isPending) this.#leftPending(pod, uid, starting)
    if (isTerminal(pod)) this.#starting.delete(uid)
    else if (!isPending && isReady(pod)) this.#started(pod, uid, starting)
  }

  #pending(pod: Pod, uid: string, starting: StartingPod): void {
    if (starting.bound !== undefined || !isBound(pod)) return
    const { schedulableMs } = this.#decisionOf(uid, starting.decision)
    starting.bound = { atMs: this.#deps.clock.now(), schedulableMs }
  }

  #leftPending(pod: Pod, uid: string, starting: StartingPod): void {
    const { podBound, podProvisioningBound } = this.#metrics
    starting.isPending = false
    const boundMs = transitionMs(conditionOf(pod, 'PodScheduled'))
    if (boundMs === undefined) return
    podBound.observe(seconds(starting.createdMs, boundMs))
    const { schedulableMs } = this.#decisionOf(uid, starting.decision)
    if (schedulableMs !== undefined) podProvisioningBound.observe(seconds(schedulableMs, boundMs))
  }

  #started(pod: Pod, uid: string, { createdMs, decision }: StartingPod): void {
    const { podStartup, podProvisioningStartup } = this.#metrics
    this.#starting.delete(uid)
    const readyMs = transitionMs(conditionOf(pod, 'Ready'))
    if (readyMs === undefined) return
    podStartup.observe(seconds(createdMs, readyMs))
    const { schedulableMs } = this.#decisionOf(uid, decision)
    if (schedulableMs !== undefined) podProvisioningStartup.observe(seconds(schedulableMs, readyMs))
  }
}

/** Whether what a pod's series shows of itself stays, as nearly always while it runs. */
function looksTheSame(change: Change<Pod>): boolean {
  if (change.kind !== 'updated') return false
  const { old, object } = change
  return (
    old.spec === object.spec &&
    old.metadata.ownerReferences === object.metadata.ownerReferences &&
    old.status?.phase === object.status?.phase &&
    isReady(old) === isReady(object)
  )
}

function isBound(pod: Pod): boolean {
  return (pod.spec.nodeName ?? '') !== '' || conditionOf(pod, 'PodScheduled')?.status === 'True'
}

const uidOf = ({ metadata }: Pod) => metadata.uid ?? keyOf(metadata)

function conditionOf({ status }: Pod, type: string): PodCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type)
}

/** When the condition became True; undefined while it is not. */
function transitionMs(condition: PodCondition | undefined): number | undefined {
  const ms = condition?.status === 'True' ? Date.parse(condition.lastTransitionTime ?? '') : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

function seconds(fromMs: number, untilMs: number): number {
  return Math.max(0, untilMs - fromMs) / 1000
}
