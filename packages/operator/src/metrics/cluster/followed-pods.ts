/** State of pods for their metrics: where they are, and how long they have been waiting (operations.md 9.2). */
import { labels as labelKeys, type Node, ownValue, type Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { PodFigures } from './cluster-metrics.ts'
import type { KeptGauge, LiveSeries } from '../gauges.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { PodDecision } from '../../state/pods/pod-decisions.ts'
import { isPodReady, keyOf } from '../../state/pods/pods.ts'
import type { Caches } from '../../state/caches.ts'

/** A pod that this process saw in phase Pending, until it is Ready or has ended. */
export interface StartingPod {
  readonly labels: { readonly name: string; readonly namespace: string }
  readonly createdMs: number
  /** Whether it is still in phase Pending. */
  isPending: boolean
  readonly wasUnbound: boolean
  /** When it was seen bound: waiting times stop there. */
  bound?: { readonly atMs: number; readonly schedulableMs: number | undefined }
  /** The decision about it, once the state has forgotten it. */
  decision?: PodDecision
}

/** Written by PodMetrics, and read by the metric families, which are created before. */
export class FollowedPods implements PodFigures {
  readonly #nodes: Pick<Caches['nodes'], 'get'>
  readonly #state: Pick<ClusterState, 'claimOf' | 'podDecisions'>
  readonly #clock: Pick<Clock, 'now'>
  /** By UID. */
  readonly starting = new Map<string, StartingPod>()
  /** Labels shown for each pod, by key. */
  readonly #labels = new Map<string, Readonly<Record<string, string>>>()
  /** Pods whose labels may have changed, by UID. */
  readonly #changed = new Map<string, Pod>()

  constructor(
    nodes: Pick<Caches['nodes'], 'get'>,
    state: Pick<ClusterState, 'claimOf' | 'podDecisions'>,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#nodes = nodes
    this.#state = state
    this.#clock = clock
  }

  isShown(pod: Pod): boolean {
    return this.#labels.has(keyOf(pod.metadata))
  }

  change(pod: Pod): void {
    this.#changed.set(uidOf(pod), pod)
  }

  forget(pod: Pod): void {
    const uid = uidOf(pod)
    this.starting.delete(uid)
    this.#changed.delete(uid)
    this.#labels.delete(keyOf(pod.metadata))
  }

  decisionOf(uid: string, { decision }: StartingPod): PodDecision {
    return decision ?? this.#state.podDecisions.get(uid)
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

  /** A copy: a pod that is recreated during a scrape would appear twice. */
  #allStarting(): readonly (readonly [string, StartingPod])[] {
    return [...this.starting]
  }

  #age(labels: StartingPod['labels'], sinceMs: number, untilMs?: number): LiveSeries {
    // Text of shared labels is rendered once for all series of the pod.
    return { labels: {}, shared: labels, value: seconds(sinceMs, untilMs ?? this.#clock.now()) }
  }

  *bringUpToDate(gauge: KeptGauge): Generator<undefined, void, undefined> {
    if (gauge.isClosed) {
      this.#changed.clear()
      this.#labels.clear()
      return
    }
    for (const [uid, pod] of this.#changed) {
      this.#changed.delete(uid)
      this.#showState(gauge, pod)
      yield
    }
  }

  #showState(gauge: KeptGauge, pod: Pod): void {
    const name = pod.spec.nodeName ?? ''
    const node = name === '' ? undefined : this.#nodes.get({ name })
    const isManaged = node !== undefined && this.#state.claimOf(node) !== undefined
    const labels = podLabels(pod, { node, isManaged })
    const key = keyOf(pod.metadata)
    if (areSame(this.#labels.get(key), labels)) return
    this.#labels.set(key, labels)
    gauge.show(key, [{ labels, value: 1 }])
  }
}

export const uidOf = ({ metadata }: Pod): string => metadata.uid ?? keyOf(metadata)

/** Seconds between two times in Unix milliseconds, at least 0. */
export function seconds(fromMs: number, untilMs: number): number {
  return Math.max(0, untilMs - fromMs) / 1000
}

interface PodNode {
  readonly node: Node | undefined
  readonly isManaged: boolean
}

/** Labels of `karpenter_pods_state`; unknown values are empty. */
function podLabels(pod: Pod, { node, isManaged }: PodNode): Readonly<Record<string, string>> {
  const { metadata, spec, status } = pod
  const nodeName = spec.nodeName ?? ''
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    owner: ownerPath(pod),
    node: nodeName,
    scheduled: String(nodeName !== ''),
    ...nodeLabelsOf(node),
    phase: status?.phase ?? '',
    ready: String(isPodReady(pod)),
    managed: String(isManaged),
  }
}

/** Labels of the node in series of pods. */
export function nodeLabelsOf(node: Node | undefined): Readonly<Record<string, string>> {
  const tags = node?.metadata.labels ?? {}
  return {
    nodepool: tags[labelKeys.nodePool] ?? '',
    zone: tags[labelKeys.zone] ?? '',
    arch: tags[labelKeys.arch] ?? '',
    capacity_type: tags[labelKeys.capacityType] ?? '',
    instance_type: tags[labelKeys.instanceType] ?? '',
  }
}

/** API path of the first owner, assuming a regular plural. */
function ownerPath({ metadata }: Pod): string {
  const [owner] = metadata.ownerReferences ?? []
  if (owner === undefined) return ''
  return `/apis/${owner.apiVersion}/namespaces/${metadata.namespace ?? ''}/${owner.kind.toLowerCase()}s/${owner.name}`
}

export function areSame(
  a: Readonly<Record<string, string>> | undefined,
  b: Readonly<Record<string, string>>,
): boolean {
  if (a === undefined) return false
  for (const name in b) if (ownValue(a, name) !== ownValue(b, name)) return false
  return true
}
