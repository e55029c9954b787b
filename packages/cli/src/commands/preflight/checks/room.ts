/** Checks that the controller's own pods fit on nodes that it does not manage. */
import {
  kinds,
  labels,
  type Node,
  ownValue,
  parseResources,
  type Pod,
  podRequests,
  type Resources,
  untoleratedTaint,
} from '@tenon/api'
import { type Check, type CheckOutcome, few, type Installation } from '../check.ts'

/** As in the values of the chart. */
const tolerations = [{ key: 'CriticalAddonsOnly', operator: 'Exists' as const }]

export const room: Check = {
  name: 'room',
  run: async ({ kube, installation, autoscalers }, signal) => {
    const [nodes, pods] = await Promise.all([
      kube.list(kinds.node, { signal }),
      kube.list(kinds.pod, { signal }),
    ])
    const own =
      autoscalers instanceof Error ? [] : autoscalers.filter(({ kind }) => kind !== 'clusterAutoscaler')
    // Running pods make room for their successors.
    const others = pods.filter(
      ({ metadata }) =>
        !own.some(
          ({ namespace, name }) => metadata.namespace === namespace && metadata.name.startsWith(`${name}-`),
        ),
    )
    return judge(nodes, others, installation)
  },
}

function judge(nodes: readonly Node[], pods: readonly Pod[], installation: Installation): CheckOutcome {
  const { replicas, requests } = installation
  const unmanaged = nodes.filter(({ metadata }) => ownValue(metadata.labels, labels.nodePool) === undefined)
  const usable = unmanaged.filter(isUsable)
  const roomy = usable.filter((node) => hasRoom(node, pods, requests))
  const wanted = `${replicas} pod${replicas === 1 ? '' : 's'} of the controller`
  if (roomy.length >= replicas)
    return {
      summary: `room for ${wanted} on ${few(roomy.map(({ metadata }) => metadata.name))}`,
      findings: [],
    }
  const why =
    unmanaged.length === 0
      ? `every node (${nodes.length}) is one of a NodePool`
      : usable.length === 0
        ? `no node outside of NodePools is ready and free of taints (${few(unmanaged.map(({ metadata }) => metadata.name))})`
        : `${roomy.length} of ${usable.length} nodes outside of NodePools have ${amounts(requests)} left, and each pod needs a node of its own`
  return {
    summary: '',
    findings: [
      {
        status: 'fail',
        message: `there is no room for ${wanted}: ${why}`,
        fix: `keep ${replicas === 1 ? 'a node' : `${replicas} nodes`} with ${amounts(requests)} free outside of NodePools, such as a small node group of the cloud`,
      },
    ],
  }
}

function isUsable(node: Node): boolean {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
  return (
    ready?.status === 'True' &&
    node.spec?.unschedulable !== true &&
    untoleratedTaint(
      (node.spec?.taints ?? []).filter(({ effect }) => effect !== 'PreferNoSchedule'),
      tolerations,
    ) === undefined
  )
}

function hasRoom(node: Node, pods: readonly Pod[], requests: Resources): boolean {
  const free = new Map(Object.entries(parseResources(node.status?.allocatable ?? {})))
  for (const { spec, status } of pods) {
    if (spec?.nodeName !== node.metadata.name) continue
    if (status?.phase === 'Succeeded' || status?.phase === 'Failed') continue
    for (const [name, amount] of Object.entries(podRequests(spec, status)))
      free.set(name, (free.get(name) ?? 0) - amount)
  }
  const wanted = { ...requests, pods: 1 }
  return Object.entries(wanted).every(([name, amount]) => (free.get(name) ?? 0) >= amount)
}

function amounts({ cpu = 0, memory = 0 }: Resources): string {
  return `${cpu / 1000} CPU and ${Math.ceil(memory / 2 ** 20)} MiB`
}
