/** Whether a pod keeps its node from being disrupted (ask.md 2). */
import { controllerOf, counted, labels, type Pod } from '@tenon/api'
import {
  budgetsOf,
  doNotDisrupt,
  isDaemonPod,
  isMirrorPod,
  keyOf,
  ownCost,
  windowsAnnotation,
  windowsProblem,
} from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import type { Study } from '../study/study.ts'

/** How a pod affects the disruption of its node. */
export interface PodHold {
  readonly kind:
    | 'doNotDisrupt'
    | 'podDisruptionBudget'
    | 'noController'
    | 'localStorage'
    | 'gracePeriod'
    | 'daemon'
    | 'resize'
    | 'deletionCost'
  readonly message: string
  /** Whether it keeps the node from being disrupted now. */
  readonly blocks: boolean
  /** When it ends by itself, RFC 3339. */
  readonly until?: string
  /** A PodDisruptionBudget, as `namespace/name`. */
  readonly name?: string
  /** Of a PodDisruptionBudget; absent if its status is not set yet. */
  readonly disruptionsAllowed?: number
}

/** The default grace period; only longer ones are mentioned. */
const usualGraceSeconds = 30

export function holdsOf({ operator, snapshot }: Study, pod: Pod): readonly PodHold[] {
  if (isDaemonPod(pod))
    return [hold('daemon', 'It belongs to a DaemonSet: it ends with its node and keeps no node')]
  if (isMirrorPod(pod))
    return [hold('daemon', 'It is a static pod of its kubelet: it ends with its node and keeps no node')]
  const budgets = operator.caches.podDisruptionBudgets.list()
  const graceSeconds = pod.spec.terminationGracePeriodSeconds ?? usualGraceSeconds
  return [
    ...protection(pod, snapshot.takenAtMs, operator.state.windows),
    ...ignoredWindows(pod),
    ...budgetHolds(pod, budgetsOf(pod, budgets)),
    ...(controllerOf(pod) === undefined
      ? [hold('noController', 'It has no controller: once it is evicted, nothing creates it again')]
      : []),
    ...localStorage(operator, pod),
    ...pendingResize(pod),
    ...deletionCost(pod),
    ...(graceSeconds > usualGraceSeconds
      ? [hold('gracePeriod', `An eviction gives it ${graceSeconds} s (spec.terminationGracePeriodSeconds)`)]
      : []),
  ]
}

const hold = (kind: PodHold['kind'], message: string): PodHold => ({ kind, message, blocks: false })

/** Disruption windows that cannot be read. */
function ignoredWindows({ metadata }: Pod): readonly PodHold[] {
  const { field, fix, message } = windowsProblem(metadata, windowsAnnotation) ?? {}
  return field === undefined ? [] : [hold('doNotDisrupt', `${field}: ${message}; ${fix}`)]
}

function protection(
  pod: Pod,
  nowMs: number,
  windows: Study['operator']['state']['windows'],
): readonly PodHold[] {
  const found = doNotDisrupt(pod, nowMs, windows)
  const annotation = 'Annotation karpenter.sh/do-not-disrupt'
  if (found.kind === 'inactive') return []
  if (found.kind === 'elapsed') return [hold('doNotDisrupt', `${annotation} no longer protects it`)]
  if (found.kind === 'invalid')
    return [
      hold('doNotDisrupt', `${annotation} is ignored: "${found.value}" is neither "true" nor a duration`),
    ]
  const isLimited = Number.isFinite(found.untilMs)
  const message = isLimited
    ? `Annotation ${found.by} protects it for a time`
    : `Annotation ${found.by} protects it`
  return [
    { ...hold('doNotDisrupt', message), blocks: true, ...(isLimited && { until: rfc3339(found.untilMs) }) },
  ]
}

function budgetHolds(pod: Pod, covering: ReturnType<typeof budgetsOf>): readonly PodHold[] {
  const isSeveral = covering.length > 1
  return covering.map((budget) => {
    const name = keyOf(budget.metadata)
    const allowed = budget.status?.disruptionsAllowed
    const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status
    const isExempt = budget.spec.unhealthyPodEvictionPolicy === 'AlwaysAllow' && ready === 'False'
    const allows =
      allowed === undefined ? 'has not been counted yet' : `allows ${counted(allowed, 'disruption')} now`
    return {
      kind: 'podDisruptionBudget',
      message: isSeveral
        ? `PodDisruptionBudget ${name} ${allows}; the pod has ${covering.length}, which eviction does not support`
        : `PodDisruptionBudget ${name} ${allows}`,
      blocks: isSeveral || (allowed === 0 && !isExempt),
      name,
      ...(allowed !== undefined && { disruptionsAllowed: allowed }),
    }
  })
}

/** An in-place resize that the kubelet has deferred, or rejected as infeasible. */
function pendingResize({ spec, status }: Pod): readonly PodHold[] {
  const reason = status?.conditions?.find(({ type }) => type === 'PodResizePending')?.reason
  const node = `node ${spec.nodeName ?? ''}`
  if (reason === 'Deferred')
    return [
      hold(
        'resize',
        `Its resize in place is deferred: ${node} has no room for what it asks for now. It is resized once others ` +
          'leave the node, and counts with the larger amount until then; change the requests of its workload to have ' +
          'it made again where there is room',
      ),
    ]
  if (reason === 'Infeasible')
    return [
      hold(
        'resize',
        `Its resize in place is infeasible: ${node} is too small for what it asks for now, and it counts with what it ` +
          'has; change the requests of its workload to have it made again on a larger node',
      ),
    ]
  return []
}

/** Its cost of deletion, if Tenon has set it. */
function deletionCost(pod: Pod): readonly PodHold[] {
  const own = ownCost(pod)
  if (own === undefined) return []
  const message = `Its node is among those that consolidation would remove next: scaling in deletes it before pods with a pod-deletion-cost above ${own.cost}, since ${rfc3339(own.atMs)}`
  return [hold('deletionCost', message)]
}

/** Volumes on the disk of the node: the pod can run nowhere else. */
function localStorage({ caches }: Pick<Study['operator'], 'caches'>, pod: Pod): readonly PodHold[] {
  const { namespace = '' } = pod.metadata
  return (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) => {
    if (persistentVolumeClaim === undefined) return []
    const name = persistentVolumeClaim.claimName
    const claim = caches.persistentVolumeClaims.get({ namespace, name })
    const volume = caches.persistentVolumes.get({ name: claim?.spec.volumeName ?? '' })
    const terms = volume?.spec.nodeAffinity?.required?.nodeSelectorTerms ?? []
    const isLocal = terms.some(({ matchExpressions = [] }) =>
      matchExpressions.some(({ key }) => key === labels.hostname),
    )
    return isLocal
      ? [
          hold(
            'localStorage',
            `PersistentVolumeClaim ${namespace}/${name} is on the disk of this node: the pod can run on no other`,
          ),
        ]
      : []
  })
}
