/** Why a migration may not evict a pod (adoption.md 2). */
import {
  controllerOf,
  kinds,
  ownValue,
  type Pod,
  type PodDisruptionBudget,
  readWindows,
  tolerates,
  windowsState,
} from '@tenon/api'
import { claimKeys, localClaims, safeToEvict } from '@tenon/ask/report'
import type { KubeClient } from '@tenon/kube'
import {
  budgetsOf,
  doNotDisrupt,
  isActive,
  isHeldByBudget,
  isReschedulable,
  keyOf,
  windowsAnnotation,
} from '@tenon/operator/objects'
import { inParallel } from '../preflight/in-parallel.ts'

/** Concurrent requests. */
const atOnce = 8
/** What a cordon becomes for the scheduler. */
const cordonTaint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const

export interface HoldFacts {
  readonly budgets: readonly PodDisruptionBudget[]
  /** `namespace/name` of PersistentVolumeClaims on volumes of one node. */
  readonly local: ReadonlySet<string>
  /** `namespace/name` of pods that no node would take, and why. */
  readonly homeless: ReadonlyMap<string, string>
  readonly nowMs: number
}

/** Facts about all pods of the cluster. */
export async function listHoldFacts(
  client: Pick<KubeClient, 'list'>,
  homeless: HoldFacts['homeless'],
  nowMs: number,
  signal: AbortSignal,
): Promise<HoldFacts> {
  const [budgets, claims, volumes] = await Promise.all([
    client.list(kinds.podDisruptionBudget, { signal }),
    client.list(kinds.persistentVolumeClaim, { signal }),
    client.list(kinds.persistentVolume, { signal }),
  ])
  return { budgets, local: localClaims(claims, volumes), homeless, nowMs }
}

/** Facts about some pods, read afresh before each node: budgets and annotations change while a migration runs. */
export async function readHoldFacts(
  client: Pick<KubeClient, 'get' | 'list'>,
  pods: readonly Pod[],
  homeless: HoldFacts['homeless'],
  nowMs: number,
  signal: AbortSignal,
): Promise<HoldFacts> {
  const namespaces = [...new Set(pods.map(({ metadata }) => metadata.namespace ?? 'default'))]
  const budgets = await inParallel(namespaces, atOnce, (namespace) =>
    client.list(kinds.podDisruptionBudget, { namespace, signal }),
  )
  const bound = await inParallel([...new Set(pods.flatMap(claimKeys))], atOnce, async (key) => {
    const [namespace = '', name = ''] = key.split('/')
    const claim = await client.get(kinds.persistentVolumeClaim, { namespace, name }, { signal })
    const volume = claim?.spec?.volumeName ?? ''
    return {
      claim,
      volume:
        volume === '' ? undefined : await client.get(kinds.persistentVolume, { name: volume }, { signal }),
    }
  })
  const local = localClaims(
    bound.flatMap(({ claim }) => claim ?? []),
    bound.flatMap(({ volume }) => volume ?? []),
  )
  return { budgets: budgets.flat(), local, homeless, nowMs }
}

/** A clause such as `it has no controller…`; undefined if the pod may be evicted, or need not be. */
export function holdOf(pod: Pod, { budgets, local, homeless, nowMs }: HoldFacts): string | undefined {
  if (!isActive(pod) || !isReschedulable(pod)) return undefined
  if (controllerOf(pod) === undefined) return 'it has no controller that would start it again'
  const protection = doNotDisrupt(pod, nowMs)
  if (protection.kind === 'active') return `annotation ${protection.by}`
  if (ownValue(pod.metadata.annotations, safeToEvict) === 'false') return `annotation ${safeToEvict}: "false"`
  const windows = ownValue(pod.metadata.annotations, windowsAnnotation)
  const reading = windows === undefined ? undefined : readWindows(windows)
  if (reading !== undefined && 'windows' in reading && !windowsState(reading.windows, nowMs).isOpen)
    return `annotation ${windowsAnnotation}: it is outside of ${windows ?? ''}`
  const covering = budgetsOf(pod, budgets).map((budget) => ({ budget, name: keyOf(budget.metadata) }))
  if (covering.length > 1)
    return `several PodDisruptionBudgets cover it, so that no eviction is possible: ${covering.map(({ name }) => name).join(', ')}`
  const [only] = covering
  if (only !== undefined && (isHeldByBudget(pod, budgets, nowMs) || neverAllows(only.budget)))
    return `PodDisruptionBudget ${only.name} never allows an eviction`
  if (claimKeys(pod).some((key) => local.has(key))) return 'it has a volume of this node'
  if ((pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, cordonTaint)))
    return 'it tolerates cordoned nodes, so that it would come back'
  const homelessness = homeless.get(keyOf(pod.metadata))
  return homelessness === undefined ? undefined : `no node would take it: ${homelessness}`
}

/** A budget that needs every pod that there is; one that waits for pods to become healthy may allow more later. */
function neverAllows({ status }: PodDisruptionBudget): boolean {
  const { desiredHealthy, expectedPods = 0 } = status ?? {}
  return expectedPods > 0 && desiredHealthy !== undefined && desiredHealthy >= expectedPods
}
