/** `metrics.pod`: where pods are, and how long they wait until they are bound and Ready (operations.md 9.2). */
import type { Node, NodeClaim, Pod, PodCondition } from '@tenon/api'
import type { Change, ReconcileResult } from '@tenon/kube'
import { type Clock, inSlices, type Turns } from '@tenon/runtime'
import type { SingletonSpec } from '../../controller.ts'
import { sliceMs } from '../../slice.ts'
import type { ClusterMetrics } from './cluster-metrics.ts'
import {
  areSame,
  type FollowedPods,
  nodeLabelsOf,
  seconds,
  type StartingPod,
  uidOf,
} from './followed-pods.ts'
import { isPodReady, isTerminal, keyOf } from '../../state/pods/pods.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes' | 'pods'>
  readonly state: Pick<ClusterState, 'isWellFormed' | 'nodeOf' | 'podDecisions' | 'podsOn'>
  readonly clock: Clock
  readonly turns: Turns
  readonly followed: FollowedPods
  readonly metrics: Pick<
    ClusterMetrics,
    'podBound' | 'podProvisioningBound' | 'podProvisioningStartup' | 'podStartup' | 'pods'
  >
}

const periodMs = 30_000

/** Tracks every pod. Series are computed at each scrape, and every 30 s. */
export class PodMetrics implements SingletonSpec {
  readonly name = 'metrics.pod'
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
    const { caches, followed, metrics, state } = deps
    state.podDecisions.forgotten.add(({ uid, decision }) => {
      const pod = followed.starting.get(uid)
      if (pod !== undefined) pod.decision = decision
    })
    const isShowing = metrics.pods !== undefined
    caches.pods.onChange((change) => {
      const { kind, object } = change
      if (kind === 'deleted' || !state.isWellFormed(object)) {
        this.#drop(object)
        return
      }
      // A pod that was malformed before is not shown yet, although its labels are unchanged.
      if (isShowing && !(followed.isShown(object) && looksTheSame(change))) followed.change(object)
      this.#wait(object)
    })
    if (!isShowing) return
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
    const { clock, followed, metrics, turns } = this.#deps
    const gauge = metrics.pods?.state
    if (gauge !== undefined) await inSlices(followed.bringUpToDate(gauge), { clock, turns, sliceMs })
    return { kind: 'after', delayMs: periodMs }
  }

  #nodeChanged({ metadata }: Node): void {
    // Others will be shown with their node as it is then.
    const { followed, state } = this.#deps
    for (const pod of state.podsOn(metadata.name)) if (followed.isShown(pod)) followed.change(pod)
  }

  #claimChanged(claim: NodeClaim): void {
    const node = this.#deps.state.nodeOf(claim)
    if (node !== undefined) this.#nodeChanged(node)
  }

  #drop(pod: Pod): void {
    const { followed, metrics } = this.#deps
    followed.forget(pod)
    metrics.pods?.state.drop(keyOf(pod.metadata))
  }

  /** Tracks the waiting times of the pod. */
  #wait(pod: Pod): void {
    const uid = uidOf(pod)
    const isPending = pod.status?.phase === 'Pending'
    let starting = this.#deps.followed.starting.get(uid)
    if (starting === undefined && isPending) {
      const { name, namespace = '', creationTimestamp = '' } = pod.metadata
      const createdMs = Date.parse(creationTimestamp)
      starting = { labels: { name, namespace }, createdMs, isPending, wasUnbound: !isBound(pod) }
      this.#deps.followed.starting.set(uid, starting)
    }
    if (starting === undefined) return
    if (isPending) this.#pending(pod, uid, starting)
    else if (starting.isPending) this.#leftPending(pod, uid, starting)
    if (isTerminal(pod)) this.#deps.followed.starting.delete(uid)
    else if (!isPending && isPodReady(pod)) this.#started(pod, uid, starting)
  }

  #pending(pod: Pod, uid: string, starting: StartingPod): void {
    if (starting.bound !== undefined || !isBound(pod)) return
    const { schedulableMs } = this.#deps.followed.decisionOf(uid, starting)
    starting.bound = { atMs: this.#deps.clock.now(), schedulableMs }
  }

  #leftPending(pod: Pod, uid: string, starting: StartingPod): void {
    const { podBound, podProvisioningBound } = this.#deps.metrics
    starting.isPending = false
    const boundMs = transitionMs(conditionOf(pod, 'PodScheduled'))
    if (boundMs === undefined) return
    podBound.observe(seconds(starting.createdMs, boundMs))
    const { schedulableMs } = this.#deps.followed.decisionOf(uid, starting)
    if (schedulableMs !== undefined) podProvisioningBound.observe(seconds(schedulableMs, boundMs))
  }

  #started(pod: Pod, uid: string, starting: StartingPod): void {
    const { podStartup, podProvisioningStartup } = this.#deps.metrics
    this.#deps.followed.starting.delete(uid)
    const readyMs = transitionMs(conditionOf(pod, 'Ready'))
    if (readyMs === undefined) return
    podStartup.observe(seconds(starting.createdMs, readyMs))
    const { schedulableMs } = this.#deps.followed.decisionOf(uid, starting)
    if (schedulableMs !== undefined) podProvisioningStartup.observe(seconds(schedulableMs, readyMs))
  }
}

/** Whether the labels of the pod stay, as nearly always while it runs. */
function looksTheSame(change: Change<Pod>): boolean {
  if (change.kind !== 'updated') return false
  const { old, object } = change
  return (
    old.spec === object.spec &&
    old.metadata.ownerReferences === object.metadata.ownerReferences &&
    old.status?.phase === object.status?.phase &&
    isPodReady(old) === isPodReady(object)
  )
}

function isBound(pod: Pod): boolean {
  return (pod.spec.nodeName ?? '') !== '' || conditionOf(pod, 'PodScheduled')?.status === 'True'
}

function conditionOf({ status }: Pod, type: string): PodCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type)
}

/** When the condition became True; undefined otherwise. */
function transitionMs(condition: PodCondition | undefined): number | undefined {
  const ms = condition?.status === 'True' ? Date.parse(condition.lastTransitionTime ?? '') : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
