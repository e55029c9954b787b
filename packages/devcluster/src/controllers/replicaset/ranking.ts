import type { Pod } from '@tenon/api'
import { conditionOf, containerStates, isReady } from '../objects/pods.ts'

const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost'

const podsPerStep = 1_000
const phases = { Pending: 0, Unknown: 1, Running: 2, Succeeded: 3, Failed: 3 }

interface Ranked {
  readonly pod: Pod
  readonly bound: number
  readonly phase: number
  readonly ready: number
  readonly cost: number
  /** Pods of the same workload on the same node. */
  readonly doubled: number
  readonly readyAge: number
  readonly restarts: number
  readonly age: number
}

/**
 * Pods in the order in which a scale-down deletes them: unbound before bound, pending before running, not ready before
 * ready, lower deletion cost, nodes with more replicas, ready for less time, more restarts, younger. Durations are
 * compared by magnitude, as in Kubernetes. Yields from time to time.
 * @param related active pods of the workload by node, including other revisions
 */
export function* rankForDeletion(
  pods: readonly Pod[],
  related: ReadonlyMap<string, number>,
  nowMs: number,
): Generator<undefined, Pod[], undefined> {
  const ranked: Ranked[] = []
  for (const pod of pods) {
    ranked.push(rankOf(pod, related, nowMs))
    if (ranked.length % podsPerStep === 0) yield
  }
  return ranked.sort(compare).map(({ pod }) => pod)
}

function rankOf(pod: Pod, related: ReadonlyMap<string, number>, nowMs: number): Ranked {
  const nodeName = pod.spec.nodeName ?? ''
  const ready = isReady(pod)
  return {
    pod,
    bound: nodeName === '' ? 0 : 1,
    phase: phases[pod.status?.phase ?? 'Pending'],
    ready: ready ? 1 : 0,
    cost: Number.parseInt(pod.metadata.annotations?.[deletionCostAnnotation] ?? '0', 10) || 0,
    doubled: related.get(nodeName) ?? 0,
    readyAge: ready ? magnitude(nowMs, conditionOf(pod, 'Ready')?.lastTransitionTime) : 0,
    restarts: Math.max(0, ...containerStates(pod).map((container) => container.restartCount ?? 0)),
    age: magnitude(nowMs, pod.metadata.creationTimestamp),
  }
}

function compare(a: Ranked, b: Ranked): number {
  return (
    a.bound - b.bound ||
    a.phase - b.phase ||
    a.ready - b.ready ||
    a.cost - b.cost ||
    b.doubled - a.doubled ||
    a.readyAge - b.readyAge ||
    b.restarts - a.restarts ||
    a.age - b.age ||
    (a.pod.metadata.name < b.pod.metadata.name ? -1 : 1)
  )
}

/** Ages of equal magnitude count as equal, so that a few seconds do not decide. */
function magnitude(nowMs: number, since: string | undefined): number {
  const ageMs = nowMs - (Date.parse(since ?? '') || 0)
  return Math.floor(Math.log2(Math.max(1, ageMs / 1000)))
}
