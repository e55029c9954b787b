/** Whether a pod may be moved (cluster-autoscaler.md 6.4). */
import { isRequestPod, type OwnerReference, type Pod } from '@tenon/api'
import type { Lookups } from '../../model.ts'
import type { DrainOptions } from '../../options/options.ts'
import type { DisruptionBudgets } from './disruption-budgets.ts'
import {
  controllerReference,
  isDaemonSetPod,
  isFinished,
  isLongTerminating,
  isMirrorPod,
  localVolumes,
  safeToEvict,
} from '../../pods/pod-traits.ts'

export type BlockingReason =
  | 'ControllerNotFound'
  | 'MinReplicasReached'
  | 'NotReplicated'
  | 'UnmovableKubeSystemPod'
  | 'NotSafeToEvictAnnotation'
  | 'LocalStorageRequested'
  | 'NotEnoughPdb'
  | 'KeptForRequest'

export type DrainVerdict =
  /** Ignored: it ends with its node, or should have ended already. */
  | { readonly kind: 'skip' }
  /** A DaemonSet pod, which needs no other node. */
  | { readonly kind: 'daemonSet' }
  /** It has ended and needs no other node. */
  | { readonly kind: 'finished' }
  /** It needs another node. */
  | { readonly kind: 'move' }
  /** It neither moves nor blocks, but the node waits for its end. */
  | { readonly kind: 'await' }
  | { readonly kind: 'block'; readonly reason: BlockingReason }

/** What the rules need besides the pod. */
export interface DrainContext {
  readonly nowMs: number
  readonly options: DrainOptions
  readonly controllerOf: Lookups['controllerOf']
  readonly budgets: DisruptionBudgets
}

type Rule = (pod: Pod, context: DrainContext) => DrainVerdict | undefined

const skip: DrainVerdict = { kind: 'skip' }
const daemonSet: DrainVerdict = { kind: 'daemonSet' }
const finished: DrainVerdict = { kind: 'finished' }
const move: DrainVerdict = { kind: 'move' }
const awaited: DrainVerdict = { kind: 'await' }

const scaled: ReadonlySet<string> = new Set(['ReplicationController', 'ReplicaSet'])
const replicated: ReadonlySet<string> = new Set([...scaled, 'Job', 'StatefulSet'])

/** The first result decides; the order is fixed by Cluster Autoscaler. */
const rules: readonly Rule[] = [
  (pod) => (isRequestPod(pod) ? block('KeptForRequest') : undefined),
  (pod) => (isMirrorPod(pod) ? skip : undefined),
  (pod, { nowMs }) => (isLongTerminating(pod, nowMs) ? skip : undefined),
  missingController,
  (pod) => (isDaemonSetPod(pod) ? daemonSet : undefined),
  (pod) => (safeToEvict(pod) === 'true' ? move : undefined),
  (pod) => (isFinished(pod) ? finished : undefined),
  (pod) => (safeToEvict(pod) === 'on-completion' ? awaited : undefined),
  unreplicated,
  systemPod,
  (pod) => (safeToEvict(pod) === 'false' ? block('NotSafeToEvictAnnotation') : undefined),
  (pod, { options }) =>
    options.skipNodesWithLocalStorage && localVolumes(pod).length > 0
      ? block('LocalStorageRequested')
      : undefined,
  (pod, { budgets }) => (budgets.isExhausted(pod) ? block('NotEnoughPdb') : undefined),
]

export function drainVerdict(pod: Pod, context: DrainContext): DrainVerdict {
  for (const rule of rules) {
    const verdict = rule(pod, context)
    if (verdict !== undefined) return verdict
  }
  return move
}

function block(reason: BlockingReason): DrainVerdict {
  return { kind: 'block', reason }
}

/** Rule 3. */
function missingController(pod: Pod, context: DrainContext): DrainVerdict | undefined {
  if (!context.options.skipNodesWithCustomControllerPods) return undefined
  const reference = controllerReference(pod)
  if (reference === undefined || !isLookedUp(reference)) return undefined
  const controller = context.controllerOf(reference.kind, pod.metadata.namespace ?? 'default', reference.name)
  if (controller === undefined) return block('ControllerNotFound')
  if (!scaled.has(reference.kind)) return undefined
  // The API's default of replicas is 1.
  return (controller.replicas ?? 1) < context.options.minReplicaCount
    ? block('MinReplicasReached')
    : undefined
}

function isLookedUp({ kind, apiVersion }: OwnerReference): boolean {
  if (kind === 'StatefulSet' || kind === 'DaemonSet') return apiVersion.startsWith('apps/')
  return scaled.has(kind) || kind === 'Job'
}

/** Rule 8. */
function unreplicated(pod: Pod, { options }: DrainContext): DrainVerdict | undefined {
  const reference = controllerReference(pod)
  if (reference === undefined) return block('NotReplicated')
  return options.skipNodesWithCustomControllerPods && !replicated.has(reference.kind)
    ? block('NotReplicated')
    : undefined
}

/** Rule 9. For a pod that is old enough, later rules are skipped (trap 18). */
function systemPod(pod: Pod, { options, budgets, nowMs }: DrainContext): DrainVerdict | undefined {
  if (!options.skipNodesWithSystemPods || pod.metadata.namespace !== 'kube-system') return undefined
  if (budgets.covers(pod)) return undefined
  const created = Date.parse(pod.metadata.creationTimestamp ?? '')
  return nowMs > created + options.blockingSystemPodDisruptionTimeoutMs
    ? move
    : block('UnmovableKubeSystemPod')
}
