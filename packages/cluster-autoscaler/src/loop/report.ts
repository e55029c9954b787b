/** The part of the status report about the cluster and its groups. */
import type { NodeGroup } from '@tenon/provider'
import type { NodeGroupIndex } from '../model.ts'
import type { ClusterStateRegistry } from '../registry/cluster-state.ts'
import type { Readiness } from '../registry/readiness.ts'
import type { GroupReport, NodeCounts, RunningReport } from '../status/status-report.ts'

export function reportOf(
  nowMs: number,
  { groups, faults, holds }: Pick<NodeGroupIndex, 'groups' | 'faults' | 'holds'>,
  registry: ClusterStateRegistry,
  candidatesByGroup: ReadonlyMap<string, number>,
): Omit<RunningReport, 'quotas'> {
  const candidates = [...candidatesByGroup.values()].reduce((sum, count) => sum + count, 0)
  return {
    kind: 'running',
    message: '',
    cluster: {
      isHealthy: registry.isClusterHealthy(),
      counts: countsOf(registry.totals()),
      isScalingUp: registry.isScalingUp(),
      candidates,
    },
    groups: [...groups.values()].map((group) =>
      groupReport(group, nowMs, registry, {
        candidates: candidatesByGroup.get(group.id) ?? 0,
        isAtFault: faults.has(group.id),
      }),
    ),
    faults,
    holds,
  }
}

function groupReport(
  { id, targetSize, minSize, maxSize }: NodeGroup,
  nowMs: number,
  registry: ClusterStateRegistry,
  { candidates, isAtFault }: { readonly candidates: number; readonly isAtFault: boolean },
): GroupReport {
  const backoff = registry.backoffOf(id, nowMs)
  return {
    id,
    isHealthy: registry.isGroupHealthy(id) && !isAtFault,
    counts: countsOf(registry.readinessOf(id)),
    targetSize,
    minSize,
    maxSize,
    isScalingUp: registry.hasLiveRequest(id),
    ...(backoff !== undefined && { backoff: { code: backoff.code, message: backoff.message } }),
    candidates,
  }
}

/** @param readiness undefined if there is neither a node nor an instance without a node. */
function countsOf(readiness: Readiness | undefined): NodeCounts {
  const count = (list: keyof Readiness) => readiness?.[list].length ?? 0
  return {
    registered: count('registered'),
    ready: count('ready'),
    notStarted: count('notStarted'),
    suspended: count('suspended'),
    beingDeleted: count('deleted'),
    unready: count('unready'),
    resourceUnready: 0,
    longUnregistered: count('longUnregistered'),
    unregistered: count('unregistered'),
  }
}
