/** Whether the pods of workloads run again after some were evicted (adoption.md 2). */
import {
  apiVersionOf,
  controllerOf,
  isRecord,
  kinds,
  type KubeObject,
  type LabelSelector,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { isActive, isReschedulable, keyOf } from '@tenon/operator/objects'
import { inParallel } from '../preflight/in-parallel.ts'
import type { Workload } from './marks.ts'

/** Concurrent requests. */
const atOnce = 8
type Reads = Pick<KubeClient, 'get' | 'list'>

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
    /** That of a ReplicationController has labels alone. */
    readonly selector?: LabelSelector | Readonly<Record<string, string>>
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
const replicationControllerKind = controller('', 'ReplicationController', 'replicationcontrollers')
/** Controllers that say how many pods they want; those of others are expected in the number there was. */
const scaled: readonly ResourceType<Controller>[] = [
  controller('apps', 'ReplicaSet', 'replicasets'),
  controller('apps', 'StatefulSet', 'statefulsets'),
  replicationControllerKind,
  jobKind,
]

/** The workloads of pods that move, with the number of Ready pods that each has in the cluster. */
export async function workloadsOf(
  client: Reads,
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
  return await inParallel([...found.values()], atOnce, async (workload) => {
    const { pods: all } = await stateOf(client, workload, signal)
    return { ...workload, ready: all.filter(isReady).length }
  })
}

/** Workloads whose pods are not all back. Pods on `node` do not count. */
export async function missingOf(
  client: Reads,
  workloads: readonly Workload[],
  node: string,
  signal: AbortSignal,
): Promise<readonly Missing[]> {
  const missing = await inParallel(workloads, atOnce, async (workload): Promise<readonly Missing[]> => {
    const state = await stateOf(client, workload, signal)
    const pods = state.pods.filter(({ spec }) => spec.nodeName !== node)
    const ready = pods.filter(isReady).length
    const wanted = Math.min(workload.ready, state.wanted)
    if (ready >= wanted) return []
    return [
      {
        workload,
        ready,
        wanted,
        waiting: pods.filter((pod) => isActive(pod) && !isReady(pod)).map(waitingText),
      },
    ]
  })
  return missing.flat()
}

/** Looks for the pods of workloads again and again: at those that were not back before, and at last at all. */
export class BackLooks {
  readonly #client: Reads
  #asked: readonly Workload[] | undefined

  constructor(client: Reads) {
    this.#client = client
  }

  /** As {@link missingOf}; undefined while no eviction has begun. */
  async missing(
    workloads: readonly Workload[] = [],
    node: string,
    signal: AbortSignal,
  ): Promise<readonly Missing[]> {
    const missing = await missingOf(this.#client, this.#asked ?? workloads, node, signal)
    const isWhole = this.#asked === undefined
    this.#asked = missing.length === 0 ? undefined : missing.map(({ workload }) => workload)
    // One that was back may have lost pods since.
    return missing.length > 0 || isWhole ? missing : await this.missing(workloads, node, signal)
  }
}

export function missingText({ workload, ready, wanted, waiting }: Missing): string {
  const { kind, namespace, name } = workload
  const counts = `${kind} ${namespace}/${name} has ${ready} of ${wanted} Ready pods`
  return waiting.length === 0
    ? `${counts}, and no other pod is there`
    : `${waiting.slice(0, 3).join('; ')} (${counts})`
}

/** The pods of a workload, and how many its controller wants now: it may have been scaled or deleted meanwhile. */
async function stateOf(
  client: Reads,
  { apiVersion, kind, namespace, name, uid }: Omit<Workload, 'ready'>,
  signal: AbortSignal,
): Promise<{ readonly wanted: number; readonly pods: readonly Pod[] }> {
  const type = scaled.find((each) => each.kind === kind && apiVersionOf(each) === apiVersion)
  const wanting = type && (await client.get(type, { namespace, name }, { signal }))
  const isGone = type !== undefined && wanting?.metadata.uid !== uid
  if (isGone) return { wanted: 0, pods: [] }
  // Only of controllers of other kinds the selector is not known.
  const labelSelector = wanting && selectorOf(type, wanting)
  const pods = await client.list(kinds.pod, { namespace, ...(labelSelector && { labelSelector }), signal })
  return {
    wanted: wanting === undefined ? Number.POSITIVE_INFINITY : wantedPods(wanting),
    pods: pods.filter((pod) => controllerOf(pod)?.uid === uid),
  }
}

function selectorOf(type: ResourceType, { spec }: Controller): LabelSelector | undefined {
  const { selector } = spec ?? {}
  if (!isRecord(selector) || Object.keys(selector).length === 0) return undefined
  return type === replicationControllerKind ? { matchLabels: selector } : selector
}

function wantedPods({ kind, spec, status }: Controller): number {
  if (kind !== jobKind.kind) return spec?.replicas ?? 1
  const hasEnded = (status?.conditions ?? []).some(
    (each) => ['Complete', 'Failed'].includes(each.type) && each.status === 'True',
  )
  if (hasEnded || spec?.suspend === true) return 0
  const left = (spec?.completions ?? Number.POSITIVE_INFINITY) - (status?.succeeded ?? 0)
  return Math.min(spec?.parallelism ?? 1, left)
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
