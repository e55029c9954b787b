/** Kinds of pods, and what keeps them on their nodes (scheduling.md 2, lifecycle.md 4). */
import {
  annotations,
  disruptedTaint,
  kinds,
  matchesSelector,
  type ObjectMeta,
  parseDuration,
  type Pod,
  type PodDisruptionBudget,
  tolerates,
  type WindowsState,
} from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { podFields } from '../kept-fields.ts'
import { withoutNulls } from '../readable.ts'

function isOwnedBy(pod: Pod, apiVersion: string, kind: string): boolean {
  return (pod.metadata.ownerReferences ?? []).some(
    (owner) => owner.apiVersion === apiVersion && owner.kind === kind,
  )
}

export const isDaemonPod = (pod: Pod) => isOwnedBy(pod, 'apps/v1', 'DaemonSet')
/** Static pods, mirrored by their kubelet. */
export const isMirrorPod = (pod: Pod) => isOwnedBy(pod, 'v1', 'Node')
const isStatefulSetPod = (pod: Pod) => isOwnedBy(pod, 'apps/v1', 'StatefulSet')

export const isTerminal = (pod: Pod) => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
export const isTerminating = (pod: Pod) => pod.metadata.deletionTimestamp !== undefined
export const isActive = (pod: Pod) => !isTerminal(pod) && !isTerminating(pod)
export const isPodReady = ({ status }: Pod): boolean =>
  (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True')
/** A pod that is Ready or has ended; a bound one may not be. */
export const isSettled = (pod: Pod): boolean => isTerminal(pod) || isPodReady(pod)

/**
 * A pending pod that the scheduler found no node for (scheduling.md 2). The condition stays when a pod is deleted or ends,
 * so that is checked, too.
 */
export function isProvisionable(pod: Pod): boolean {
  return (
    (pod.spec.nodeName ?? '') === '' &&
    isActive(pod) &&
    (pod.spec.schedulingGates ?? []).length === 0 &&
    (pod.status?.conditions ?? []).some((c) => c.type === 'PodScheduled' && c.reason === 'Unschedulable') &&
    !isDaemonPod(pod) &&
    !isMirrorPod(pod)
  )
}

/** A pod that needs another node when its node is removed. */
export function isReschedulable(pod: Pod): boolean {
  return (
    (isActive(pod) || (isStatefulSetPod(pod) && isTerminating(pod))) && !isDaemonPod(pod) && !isMirrorPod(pod)
  )
}

export function toleratesDisruption(pod: Pod): boolean {
  return (pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, disruptedTaint))
}

export const windowsAnnotation = 'tenon.sh/disruption-windows'

/** The disruption windows of pods; undefined for a pod without any. */
interface Windows {
  of(pod: Pod, nowMs: number): WindowsState | undefined
}

type DoNotDisrupt =
  | { readonly kind: 'inactive' }
  /** `by` is the annotation that protects it for longest. */
  | { readonly kind: 'active'; readonly untilMs: number; readonly by: string }
  | { readonly kind: 'elapsed' }
  | { readonly kind: 'invalid'; readonly value: string }

/**
 * Whether a pod is protected: by annotation `karpenter.sh/do-not-disrupt` (lifecycle.md 4.4), or as it is outside its
 * disruption windows (wanted.md 5).
 */
export function doNotDisrupt(pod: Pod, nowMs: number, windows?: Windows): DoNotDisrupt {
  const own = annotatedDoNotDisrupt(pod, nowMs)
  const { changeMs, isOpen = true } = windows?.of(pod, nowMs) ?? {}
  if (isOpen) return own
  const untilMs = changeMs ?? Number.POSITIVE_INFINITY
  return own.kind === 'active' && own.untilMs >= untilMs
    ? own
    : { kind: 'active', untilMs, by: windowsAnnotation }
}

function annotatedDoNotDisrupt(pod: Pod, nowMs: number): DoNotDisrupt {
  const by = annotations.doNotDisrupt
  const value = pod.metadata.annotations?.[by]
  if (value === undefined) return { kind: 'inactive' }
  if (value === 'true') return { kind: 'active', untilMs: Number.POSITIVE_INFINITY, by }
  const durationMs = parseDuration(value)
  if (durationMs === undefined || durationMs <= 0) return { kind: 'invalid', value }
  const start = pod.status?.startTime
  if (start === undefined) return { kind: 'active', untilMs: Number.POSITIVE_INFINITY, by }
  const untilMs = Date.parse(start) + durationMs
  return nowMs < untilMs ? { kind: 'active', untilMs, by } : { kind: 'elapsed' }
}

/** Whether the pod may be evicted at all (lifecycle.md 4.2). */
export function isEvictable(pod: Pod, nowMs: number, windows?: Windows): boolean {
  return (
    isActive(pod) &&
    !toleratesDisruption(pod) &&
    !isMirrorPod(pod) &&
    doNotDisrupt(pod, nowMs, windows).kind !== 'active'
  )
}

type Budgets = readonly PodDisruptionBudget[]

/** By list, namespace and labels; cached pods of one workload share the labels object. */
const coverings = new WeakMap<Budgets, Map<string, WeakMap<object, Budgets>>>()

/** PDBs of a pod, memoized: neither the list nor the labels may be changed later. */
export function budgetsOf({ metadata: { namespace = '', labels } }: Pod, budgets: Budgets): Budgets {
  if (budgets.length === 0) return budgets
  const find = (): Budgets =>
    budgets.filter(
      (pdb) => (pdb.metadata.namespace ?? '') === namespace && matchesSelector(pdb.spec.selector, labels),
    )
  if (labels === undefined) return find()
  const byNamespace = coverings.get(budgets) ?? new Map<string, WeakMap<object, Budgets>>()
  coverings.set(budgets, byNamespace)
  const byLabels = byNamespace.get(namespace) ?? new WeakMap<object, Budgets>()
  byNamespace.set(namespace, byLabels)
  const known = byLabels.get(labels) ?? find()
  byLabels.set(labels, known)
  return known
}

function isFullyBlocking(pdb: PodDisruptionBudget): boolean {
  const { maxUnavailable, minAvailable } = pdb.spec
  return maxUnavailable === 0 || maxUnavailable === '0%' || minAvailable === '100%'
}

/** Whether a PDB never allows an eviction (lifecycle.md 11.1, "fully blocking"). */
export function isHeldByBudget(pod: Pod, budgets: Budgets, nowMs: number, windows?: Windows): boolean {
  return isBlocked(pod, budgets, nowMs, isFullyBlocking, windows)
}

/** Whether a PDB allows no eviction now (lifecycle.md 11.1, "zero disruptions"). */
export function isPausedByBudget(pod: Pod, budgets: Budgets, nowMs: number, windows?: Windows): boolean {
  return isBlocked(pod, budgets, nowMs, (pdb) => pdb.status?.disruptionsAllowed === 0, windows)
}

function isBlocked(
  pod: Pod,
  budgets: readonly PodDisruptionBudget[],
  nowMs: number,
  isClosed: (pdb: PodDisruptionBudget) => boolean,
  windows?: Windows,
): boolean {
  const covering = budgetsOf(pod, budgets)
  const [only] = covering
  if (only === undefined || !isEvictable(pod, nowMs, windows)) return false
  if (covering.length > 1) return true
  if (!isClosed(only)) return false
  const ready = pod.status?.conditions?.find((condition) => condition.type === 'Ready')
  return !(only.spec.unhealthyPodEvictionPolicy === 'AlwaysAllow' && ready?.status === 'False')
}

/** A reschedulable pod that may be evicted (scheduling.md 2). */
export function isCurrentlyReschedulable(
  pod: Pod,
  budgets: readonly PodDisruptionBudget[],
  nowMs: number,
  windows?: Windows,
): boolean {
  return (
    isReschedulable(pod) &&
    (!isActive(pod) || doNotDisrupt(pod, nowMs, windows).kind !== 'active') &&
    !isHeldByBudget(pod, budgets, nowMs, windows)
  )
}

/** Of pods of one ReplicaSet, those with a lower number are deleted first. */
export const deletionCostAnnotation = 'controller.kubernetes.io/pod-deletion-cost'

/** What evicting a pod costs, from -10 to 10; an ordinary pod costs 1 (disruption.md 4). */
export function evictionCost(pod: Pod): number {
  const deletionCost = Number(pod.metadata.annotations?.[deletionCostAnnotation] ?? 0)
  const cost =
    1 + (Number.isFinite(deletionCost) ? deletionCost / 2 ** 27 : 0) + (pod.spec.priority ?? 0) / 2 ** 25
  return Math.min(10, Math.max(-10, cost))
}

/** `namespace/name`. */
export function keyOf(metadata: ObjectMeta): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`
}

/**
 * The pods of a node, read from the API server. Whatever removes a node calls this first: the cache may be minutes old,
 * or filled from a wrong list (reports-2.md 1, 2).
 * @throws KubeError.
 */
export async function podsOnNode(
  client: Pick<KubeClient, 'list'>,
  nodeName: string,
  signal?: AbortSignal,
): Promise<readonly Pod[]> {
  const pods = await client.list(kinds.pod, {
    fieldSelector: `spec.nodeName=${nodeName}`,
    fields: podFields,
    ...(signal && { signal }),
  })
  return pods.map(withoutNulls)
}
