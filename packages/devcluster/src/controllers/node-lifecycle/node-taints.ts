import type { Node, NodeCondition, Taint } from '@tenon/api'

const key = (name: string) => `node.kubernetes.io/${name}`
const notReadyTaint = key('not-ready')
const unreachableTaint = key('unreachable')
export const outOfServiceTaint = key('out-of-service')

const pressures: readonly (readonly [condition: string, taint: string])[] = [
  ['MemoryPressure', key('memory-pressure')],
  ['DiskPressure', key('disk-pressure')],
  ['PIDPressure', key('pid-pressure')],
  ['NetworkUnavailable', key('network-unavailable')],
]
const owned: readonly { readonly key: string; readonly effect: Taint['effect'] }[] = [
  { key: notReadyTaint, effect: 'NoSchedule' },
  { key: unreachableTaint, effect: 'NoSchedule' },
  { key: notReadyTaint, effect: 'NoExecute' },
  { key: unreachableTaint, effect: 'NoExecute' },
  { key: key('unschedulable'), effect: 'NoSchedule' },
  ...pressures.map(([, taint]) => ({ key: taint, effect: 'NoSchedule' as const })),
]

export function nodeCondition(node: Node, type: string): NodeCondition | undefined {
  return node.status?.conditions?.find((condition) => condition.type === type)
}

/**
 * The taints that a node should have for its conditions; others are kept. Returns the node's own list if nothing
 * changes.
 */
export function taintsFor(node: Node, now: string): readonly Taint[] {
  const present = node.spec?.taints ?? []
  const wanted = wantedTaints(node)
  const same = (a: { key: string; effect: string }, b: { key: string; effect: string }) =>
    a.key === b.key && a.effect === b.effect
  const missing = wanted.filter((taint) => !present.some((each) => same(each, taint)))
  const kept = present.filter(
    (taint) => !owned.some((each) => same(each, taint)) || wanted.some((each) => same(each, taint)),
  )
  if (missing.length === 0 && kept.length === present.length) return present
  return [...kept, ...missing.map((taint) => ({ ...taint, timeAdded: now }))]
}

function wantedTaints(node: Node): Taint[] {
  const taints: Taint[] = []
  const ready = nodeCondition(node, 'Ready')?.status
  if (ready === undefined) {
    // Without a condition yet: keep the not-ready taint of the kubelet or admission.
    taints.push(...(node.spec?.taints ?? []).filter((taint) => taint.key === notReadyTaint))
  } else if (ready !== 'True') {
    const name = ready === 'False' ? notReadyTaint : unreachableTaint
    taints.push({ key: name, effect: 'NoSchedule' }, { key: name, effect: 'NoExecute' })
  }
  for (const [condition, taint] of pressures) {
    if (nodeCondition(node, condition)?.status === 'True') taints.push({ key: taint, effect: 'NoSchedule' })
  }
  if (node.spec?.unschedulable) taints.push({ key: key('unschedulable'), effect: 'NoSchedule' })
  return taints
}

const kubeletConditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']

/** The conditions of a silent node. */
export function unknownConditions(node: Node, now: string): readonly NodeCondition[] {
  const conditions = node.status?.conditions ?? []
  const known = new Set(conditions.map((condition) => condition.type))
  const never = kubeletConditions
    .filter((type) => !known.has(type))
    .map((type) => ({
      type,
      status: 'Unknown' as const,
      reason: 'NodeStatusNeverUpdated',
      message: 'Kubelet never posted node status.',
      lastHeartbeatTime: node.metadata.creationTimestamp ?? now,
      lastTransitionTime: now,
    }))
  const silent = conditions.map((condition) =>
    kubeletConditions.includes(condition.type) && condition.status !== 'Unknown'
      ? {
          ...condition,
          status: 'Unknown' as const,
          reason: 'NodeStatusUnknown',
          message: 'Kubelet stopped posting node status.',
          lastTransitionTime: now,
        }
      : condition,
  )
  return [...silent, ...never]
}
