/** `metrics.pod`: where pods are, and how long they wait for a node and to be ready (operations.md 9.2). */
import { type Node, type NodeClaim, type Pod, type PodCondition } from '@tenon/api'
import type { Change, ReconcileResult } from '@tenon/kube'
import { inSlices } from '@tenon/runtime'
import type { OperatorContext } from '../../context.ts'
import { sliceMs } from '../../decide/slice.ts'
import type { ClusterMetrics } from '../../metrics/cluster-metrics.ts'
import type { KeptGauge } from '../../metrics/kept-gauge.ts'
import type { PodDecision } from '../../state/pod-decisions.ts'
import { isTerminal, keyOf } from '../../state/pods.ts'
import { areSame, isReady, nodeLabelsOf, podLabels } from './pod-labels.ts'

const periodMs = 30_000

/** A pod that this process saw in phase Pending, until it has become ready or has ended. */
interface StartingPod {
  readonly key: string
  readonly createdMs: number
  /** Whether it has yet to leave phase Pending. */
  isPending: boolean
  /** Whether it was seen with a node; its waiting time stands still from then on. */
  isBound: boolean
  /** What was decided about it, once the state remembers it no more. */
  decision?: PodDecision
}

/** Follows every pod; what grows by itself needs no refresh, what is decided is read every 30 s. */
export class PodMetrics {
  readonly #context: OperatorContext
  readonly #metrics: ClusterMetrics
  /** By UID. */
  readonly #starting = new Map<string, StartingPod>()
  readonly #labels = new Map<string, Readonly<Record<string, string>>>()

  constructor(context: OperatorContext, metrics: ClusterMetrics) {
    this.#context = context
    this.#metrics = metrics
    const { caches, state } = context
    state.podDecisions.onForget = (uid, decision) => {
      const pod = this.#starting.get(uid)
      if (pod !== undefined) pod.decision = decision
    }
    caches.pods.onChange((change) => {
      const { kind, object } = change
      if (kind === 'deleted' || !state.isWellFormed(object)) {
        this.#drop(object)
        return
      }
      if (!looksTheSame(change) || !this.#labels.has(keyOf(object.metadata))) this.#showState(object)
      this.#wait(object)
    })
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
    await inSlices(this.#refresh(), { ...this.#context, sliceMs })
    return { kind: 'after', delayMs: periodMs }
  }

  *#refresh(): Generator<undefined, void, undefined> {
    const { caches } = this.#context
    for (const [uid, { key }] of this.#starting) {
      const [namespace = '', name = ''] = key.split('/')
      const pod = caches.pods.get({ namespace, name })
      if (pod !== undefined && uidOf(pod) === uid) this.#wait(pod)
      yield
    }
  }

  #nodeChanged({ metadata }: Node): void {
    // Those that were not seen yet will be, with their node as it is then.
    for (const pod of this.#context.state.podsOn(metadata.name))
      if (this.#labels.has(keyOf(pod.metadata))) this.#showState(pod)
  }

  #claimChanged(claim: NodeClaim): void {
    const node = this.#context.state.nodeOf(claim)
    if (node !== undefined) this.#nodeChanged(node)
  }

  #drop(pod: Pod): void {
    const key = keyOf(pod.metadata)
    this.#starting.delete(uidOf(pod))
    this.#labels.delete(key)
    for (const gauge of Object.values<KeptGauge>({ ...this.#metrics.pods })) gauge.drop(key)
  }

  #showState(pod: Pod): void {
    const gauge = this.#metrics.pods?.state
    if (gauge === undefined) return
    const { caches, state } = this.#context
    const name = pod.spec.nodeName ?? ''
    const node = name === '' ? undefined : caches.nodes.get({ name })
    const isManaged = node !== undefined && state.claimOf(node) !== undefined
    const labels = podLabels(pod, { node, isManaged })
    const key = keyOf(pod.metadata)
    if (areSame(this.#labels.get(key), labels)) return
    this.#labels.set(key, labels)
    gauge.show(key, [{ labels, value: 1 }])
  }

  /** How long the pod has been waiting for what it has not got, and had been for what it has got now. */
  #wait(pod: Pod): void {
    const uid = uidOf(pod)
    const isPending = pod.status?.phase === 'Pending'
    let starting = this.#starting.get(uid)
    if (starting === undefined && isPending) {
      const createdMs = Date.parse(pod.metadata.creationTimestamp ?? '')
      starting = { key: keyOf(pod.metadata), createdMs, isPending, isBound: false }
      this.#starting.set(uid, starting)
    }
    if (starting === undefined) return
    const decision = starting.decision ?? this.#context.state.podDecisions.get(uid)
    if (isPending) this.#pending(pod, starting, decision)
    else if (starting.isPending) this.#leftPending(pod, starting, decision)
    if (isTerminal(pod)) this.#ended(uid, starting)
    else if (!isPending && isReady(pod)) this.#started(pod, uid, starting, decision)
    else this.#unstarted(starting, decision)
  }

  #pending(pod: Pod, starting: StartingPod, { schedulableMs }: PodDecision): void {
    if (starting.isBound) return
    const { pods } = this.#metrics
    const { key, createdMs } = starting
    const scheduled = conditionOf(pod, 'PodScheduled')
    starting.isBound = scheduled?.status === 'True' || (pod.spec.nodeName ?? '') !== ''
    if (!starting.isBound) {
      this.#showAge(pods?.unbound, starting, createdMs)
      this.#showAge(pods?.provisioningUnbound, starting, schedulableMs)
      return
    }
    pods?.unbound.freeze(key)
    pods?.provisioningUnbound.freeze(key)
  }

  #leftPending(pod: Pod, starting: StartingPod, { schedulableMs }: PodDecision): void {
    const { pods, podBound, podProvisioningBound } = this.#metrics
    const { key, createdMs } = starting
    starting.isPending = false
    pods?.unbound.drop(key)
    pods?.provisioningUnbound.drop(key)
    const boundMs = transitionMs(conditionOf(pod, 'PodScheduled'))
    if (boundMs === undefined) return
    podBound.observe(seconds(createdMs, boundMs))
    if (schedulableMs !== undefined) podProvisioningBound.observe(seconds(schedulableMs, boundMs))
  }

  #unstarted(starting: StartingPod, { ackMs, decidedMs, schedulableMs }: PodDecision): void {
    const { pods } = this.#metrics
    this.#showAge(pods?.unstarted, starting, starting.createdMs)
    this.#showAge(pods?.provisioningUnstarted, starting, schedulableMs)
    this.#showAge(pods?.undecided, starting, decidedMs === undefined ? ackMs : undefined)
  }

  #started(pod: Pod, uid: string, starting: StartingPod, { schedulableMs }: PodDecision): void {
    const { podStartup, podProvisioningStartup } = this.#metrics
    this.#ended(uid, starting)
    const readyMs = transitionMs(conditionOf(pod, 'Ready'))
    if (readyMs === undefined) return
    podStartup.observe(seconds(starting.createdMs, readyMs))
    if (schedulableMs !== undefined) podProvisioningStartup.observe(seconds(schedulableMs, readyMs))
  }

  #ended(uid: string, { key }: StartingPod): void {
    this.#starting.delete(uid)
    const { pods } = this.#metrics
    for (const gauge of [pods?.unstarted, pods?.provisioningUnstarted, pods?.undecided]) gauge?.drop(key)
  }

  #showAge(gauge: KeptGauge | undefined, { key }: StartingPod, sinceMs: number | undefined): void {
    if (sinceMs === undefined) gauge?.drop(key)
    else
      gauge?.showAge(key, sinceMs, () => {
        const [namespace = '', name = ''] = key.split('/')
        return { name, namespace }
      })
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
