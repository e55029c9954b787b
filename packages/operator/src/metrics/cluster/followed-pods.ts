/** What the families of pods show: where pods are, and how long they have been waiting (operations.md 9.2). */
import type { Node, NodeClaim, Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { PodFigures } from './cluster-metrics.ts'
import type { KeptGauge } from '../kept-gauge.ts'
import type { LiveSeries } from '../live-gauge.ts'
import type { PodDecision, PodDecisions } from '../../state/pods/pod-decisions.ts'
import { keyOf } from '../../state/pods/pods.ts'
import { areSame, podLabels } from './pod-labels.ts'
import type { Caches } from '../../state/caches.ts'

interface Dependencies {
  readonly caches: { readonly nodes: Pick<Caches['nodes'], 'get'> }
  readonly state: {
    readonly podDecisions: Pick<PodDecisions, 'get'>
    claimOf(node: Node): NodeClaim | undefined
  }
  readonly clock: Pick<Clock, 'now'>
}

/** A pod that this process saw in phase Pending, until it has become ready or has ended. */
export interface StartingPod {
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

/** Made before the families and before who follows pods: the one reads what the other notes. */
export class FollowedPods implements PodFigures {
  readonly #deps: Dependencies
  /** By UID. */
  readonly starting = new Map<string, StartingPod>()
  /** What is shown of each pod, by key. */
  readonly #labels = new Map<string, Readonly<Record<string, string>>>()
  /** Pods that may have to show something else, by UID. */
  readonly #changed = new Map<string, Pod>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Whether something is shown of where the pod is. */
  isShown(pod: Pod): boolean {
    return this.#labels.has(keyOf(pod.metadata))
  }

  /** The pod may have to show something else. */
  change(pod: Pod): void {
    this.#changed.set(uidOf(pod), pod)
  }

  /** The pod is gone. */
  forget(pod: Pod): void {
    const uid = uidOf(pod)
    this.starting.delete(uid)
    this.#changed.delete(uid)
    this.#labels.delete(keyOf(pod.metadata))
  }

  /** What was decided about a pod. */
  decisionOf(uid: string, { decision }: StartingPod): PodDecision {
    return decision ?? this.#deps.state.podDecisions.get(uid)
  }

  *unbound(): Generator<LiveSeries, void, undefined> {
    for (const [, { labels, createdMs, isPending, wasUnbound, bound }] of this.#allStarting())
      if (isPending && wasUnbound) yield this.#age(labels, createdMs, bound?.atMs)
  }

  *provisioningUnbound(): Generator<LiveSeries, void, undefined> {
    for (const [uid, pod] of this.#allStarting()) {
      const { labels, isPending, wasUnbound, bound } = pod
      if (!isPending || !wasUnbound) continue
      const { schedulableMs } = bound ?? this.decisionOf(uid, pod)
      if (schedulableMs !== undefined) yield this.#age(labels, schedulableMs, bound?.atMs)
    }
  }

  *unstarted(): Generator<LiveSeries, void, undefined> {
    for (const [, { labels, createdMs }] of this.#allStarting()) yield this.#age(labels, createdMs)
  }

  *provisioningUnstarted(): Generator<LiveSeries, void, undefined> {
    for (const [uid, pod] of this.#allStarting()) {
      const { schedulableMs } = this.decisionOf(uid, pod)
      if (schedulableMs !== undefined) yield this.#age(pod.labels, schedulableMs)
    }
  }

  *undecided(): Generator<LiveSeries, void, undefined> {
    for (const [uid, pod] of this.#allStarting()) {
      const { ackMs, decidedMs } = this.decisionOf(uid, pod)
      if (decidedMs === undefined && ackMs !== undefined) yield this.#age(pod.labels, ackMs)
    }
  }

  /** A copy: a pod that comes back under its name while this is read would be in it twice. */
  #allStarting(): readonly (readonly [string, StartingPod])[] {
    return [...this.starting]
  }

  #age(labels: StartingPod['labels'], sinceMs: number, untilMs?: number): LiveSeries {
    // As shared labels, the text of which is made once for all series of the pod.
    return { labels: {}, shared: labels, value: seconds(sinceMs, untilMs ?? this.#deps.clock.now()) }
  }

  /** Shows of each pod that has changed where it is. */
  *bringUpToDate(gauge: KeptGauge): Generator<undefined, void, undefined> {
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
}

export const uidOf = ({ metadata }: Pod): string => metadata.uid ?? keyOf(metadata)

/** Seconds between two moments in Unix milliseconds, none below zero. */
export function seconds(fromMs: number, untilMs: number): number {
  return Math.max(0, untilMs - fromMs) / 1000
}
