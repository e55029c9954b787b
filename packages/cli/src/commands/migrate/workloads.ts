/** Whether the pods of workloads run again after some were evicted (adoption.md 2). */
import { apiVersionOf, controllerOf, kinds, type KubeObject, type Pod, type ResourceType } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { isActive, isReschedulable, keyOf } from '@tenon/operator/objects'
import type { Workload } from './marks.ts'

/** A workload that has fewer Ready pods than before. */
export interface Missing {
  readonly workload: Workload
  readonly ready: number
  readonly wanted: number
  /** Its pods that do not run yet, with why not. */
  readonly waiting: readonly string[]
}

interface Controller extends KubeObject {
  readonly spec?: {
    readonly replicas?: number
    readonly parallelism?: number
    readonly completions?: number
    readonly suspend?: boolean
  }
  readonly status?: {
    readonly succeeded?: number
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

function controller(group: string, kind: string, plural: string): ResourceType<Controller> {
  return { group, version: 'v1', kind, plural, namespaced: true }
}

const jobKind = controller('batch', 'Job', 'jobs')
/** Controllers that say how many pods they want; those of others are expected in the number there was. */
const scaled: readonly ResourceType<Controller>[] = [
  controller('apps', 'ReplicaSet', 'replicasets'),
  controller('apps', 'StatefulSet', 'statefulsets'),
  controller('', 'ReplicationController', 'replicationcontrollers'),
  jobKind,
]

/** The workloads of pods that move, with the number of Ready pods that each has in the cluster. */
export async function workloadsOf(
  client: Pick<KubeClient, 'list'>,
  pods: readonly Pod[],
  signal: AbortSignal,
): Promise<readonly Workload[]> {
  const found = new Map<string, Omit<Workload, 'ready'>>()
  for (const pod of pods) {
    const owner = controllerOf(pod)
    if (owner === undefined || !isReschedulable(pod)) continue
    const { apiVersion, kind, name, uid } = owner
    found.set(uid, { apiVersion, kind, name, uid, namespace: pod.metadata.namespace ?? 'default' })
  }
  const podsOf = await podsByOwner(client, [...found.values()], signal)
  return Array.from(found.values(), (workload) => ({
    ...workload,
    ready: (podsOf.get(workload.uid) ?? []).filter(isReady).length,
  }))
}

/**
 * Workloads whose pods are not all back. Pods on `node` do not count.
 * @param workloads undefined if no eviction has begun.
 */
export async function missingOf(
  client: Pick<KubeClient, 'get' | 'list'>,
  workloads: readonly Workload[] | undefined,
  node: string,
  signal: AbortSignal,
): Promise<readonly Missing[]> {
  const podsOf = await podsByOwner(client, workloads ?? [], signal)
  const missing: Missing[] = []
  for (const workload of workloads ?? []) {
    const pods = (podsOf.get(workload.uid) ?? []).filter(({ spec }) => spec.nodeName !== node)
    const ready = pods.filter(isReady).length
    if (ready >= workload.ready) continue
    const wanted = Math.min(workload.ready, await wantedPods(client, workload, signal))
    if (ready >= wanted) continue
    const waiting = pods.filter((pod) => isActive(pod) && !isReady(pod)).map(waitingText)
    missing.push({ workload, ready, wanted, waiting })
  }
  return missing
}

export function missingText({ workload, ready, wanted, waiting }: Missing): string {
  const { kind, namespace, name } = workload
  const counts = `${kind} ${namespace}/${name} has ${ready} of ${wanted} Ready pods`
  return waiting.length === 0
    ? `${counts}, and no other pod is there`
    : `${waiting.slice(0, 3).join('; ')} (${counts})`
}

/** How many pods the controller wants now: it may have been scaled or deleted meanwhile. */
async function wantedPods(
  client: Pick<KubeClient, 'get'>,
  { apiVersion, kind, namespace, name, uid }: Workload,
  signal: AbortSignal,
): Promise<number> {
  const type = scaled.find((each) => each.kind === kind && apiVersionOf(each) === apiVersion)
  if (type === undefined) return Number.POSITIVE_INFINITY
  const wanting = await client.get(type, { namespace, name }, { signal })
  if (wanting === undefined || wanting.metadata.uid !== uid) return 0
  const { spec, status } = wanting
  if (type !== jobKind) return spec?.replicas ?? 1
  const hasEnded = (status?.conditions ?? []).some(
    (each) => ['Complete', 'Failed'].includes(each.type) && each.status === 'True',
  )
  if (hasEnded || spec?.suspend === true) return 0
  const left = (spec?.completions ?? Number.POSITIVE_INFINITY) - (status?.succeeded ?? 0)
  return Math.min(spec?.parallelism ?? 1, left)
}

async function podsByOwner(
  client: Pick<KubeClient, 'list'>,
  workloads: readonly Pick<Workload, 'namespace'>[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly Pod[]>> {
  const namespaces = [...new Set(workloads.map(({ namespace }) => namespace))]
  const lists = await Promise.all(
    namespaces.map((namespace) => client.list(kinds.pod, { namespace, signal })),
  )
  return Map.groupBy(lists.flat(), (pod) => controllerOf(pod)?.uid ?? '')
}

function isReady(pod: Pod): boolean {
  return isActive(pod) && conditionIn(pod, 'Ready')?.status === 'True'
}

function waitingText(pod: Pod): string {
  const { nodeName = '' } = pod.spec
  const name = `pod ${keyOf(pod.metadata)}`
  if (nodeName === '') {
    const why = conditionIn(pod, 'PodScheduled')?.message ?? ''
    return `${name} has no node${why === '' ? '' : `: ${why}`}`
  }
  const why = conditionIn(pod, 'Ready')?.message ?? ''
  return `${name} is not Ready on node ${nodeName}${why === '' ? '' : `: ${why}`}`
}

function conditionIn({ status }: Pod, type: string) {
  return status?.conditions?.find((condition) => condition.type === type)
}
