/** What kube-scheduler says about pods that it does not bind. */
import { isConditionTrue, kinds, type Pod } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isActive } from '../../state/pods/pods.ts'

/** The scheduler's message about the pod, from the API server; undefined if it does not refuse the pod any more. */
export async function refusalOf(
  client: KubeClient,
  pod: Pod,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { name, namespace = '', uid } = pod.metadata
  // RBAC allows this process to list pods, and not to get them.
  const [now] = await client
    .list(kinds.pod, { namespace, fieldSelector: `metadata.name=${name}`, signal })
    .catch((error: unknown): Pod[] => {
      if (!isKubeError(error)) throw error
      // The next pass asks again.
      return []
    })
  if (now === undefined || now.metadata.uid !== uid || (now.spec.nodeName ?? '') !== '' || !isActive(now))
    return undefined
  const condition = now.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status !== 'False' || condition.reason !== 'Unschedulable') return undefined
  return condition.message ?? ''
}

/** Whether the pod waits for members of its group that have no open node: its own node is not the reason then (gangs.md 5.4). */
export function isOfShortGroup(state: ClusterState, pod: Pod): boolean {
  const { podGroups } = state
  const ref = podGroups.of(pod)
  if (ref === undefined) return false
  const placed = podGroups.members(ref.id).filter((member) => hasOpenNode(state, member))
  return placed.length < (podGroups.get(ref)?.minCount ?? 0)
}

function hasOpenNode(state: ClusterState, { metadata: { uid = '' }, spec }: Pod): boolean {
  if ((spec.nodeName ?? '') !== '') return true
  const plan = state.plans.get(uid)
  const node = plan && state.nominations.nodeFor(plan.target)
  const claim = node && state.claimOf(node)
  return node !== undefined && (claim === undefined || isConditionTrue(claim, 'Initialized'))
}

/** Reasons of kube-scheduler's own filters, which decisions know, too. */
const knownReasons = [
  /^Insufficient /,
  /^Too many pods/,
  /untolerated taint/,
  /^node\(s\) were (unschedulable|not ready)/,
  /didn't match /,
  /didn't satisfy /,
  /didn't have free ports/,
  /didn't find available persistent volumes/,
  /had volume node affinity conflict/,
  /had no available volume zone/,
  /exceed max volume count/,
  /did not have enough free storage/,
  /no available disk|conflicting disk|disk conflict/,
  /unbound immediate PersistentVolumeClaims/,
  /cannot allocate all claims/,
  /node\(s\) unavailable due to /,
]

interface SchedulerMessage {
  /** Number of nodes that the scheduler tried. */
  readonly nodes: number
  /** Reasons that none of its own filters gives. */
  readonly unknownReasons: readonly string[]
}

/** @returns undefined for a text that is not of the form `0/5 nodes are available: 2 Insufficient cpu, 3 …`. */
export function readSchedulerMessage(text: string): SchedulerMessage | undefined {
  const [, count = '', rest = ''] = /^0\/(\d+) nodes are available: ?(.*)$/s.exec(text) ?? []
  if (count === '') return undefined
  // What follows is about preemption, which counts the same nodes again.
  const [ofFilters = ''] = rest.split(/\.? preemption: /)
  const reasons = ofFilters
    .replace(/\.$/, '')
    .split(/, (?=\d+ )/)
    .flatMap((part) => /^\d+ (.*)$/s.exec(part)?.[1] ?? [])
  const unknownReasons = reasons.filter((reason) => !knownReasons.some((known) => known.test(reason)))
  return { nodes: Number(count), unknownReasons }
}
