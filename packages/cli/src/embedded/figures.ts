/** Reads the state of a cluster from the embedded API and the simulated cloud. */
import { karpenterKinds, kinds, labels, type Node, type Pod, parseResource, parseResources } from '@tenon/api'
import type { SimulatedInstance } from '@tenon/provider'
import type { Cluster } from './cluster.ts'
import type { ClaimRow, ClusterFigures, NodeRow } from './picture.ts'

export function figuresOf({ server, cloud }: Cluster): ClusterFigures {
  const { local } = server
  const pods = local.list(kinds.pod)
  const byNode = Map.groupBy(pods, (pod) => pod.spec.nodeName ?? '')
  const instances = cloud.instances()
  const prices = new Map(instances.map((instance) => [instance.name, instance.pricePerHour]))
  const nodes = local.list(kinds.node)
  const known = new Set(nodes.map((node) => node.spec?.providerID))
  return {
    pods: {
      pending: pods.filter((pod) => pod.status?.phase === 'Pending').length,
      running: pods.filter((pod) => pod.status?.phase === 'Running').length,
      other: pods.filter((pod) => pod.status?.phase !== 'Pending' && pod.status?.phase !== 'Running').length,
    },
    nodes: nodes.map((node) =>
      nodeRow(node, byNode.get(node.metadata.name) ?? [], prices.get(node.metadata.name)),
    ),
    claimsStarting: hasClaims(local)
      ? local
          .list(karpenterKinds.nodeClaim)
          .filter((claim) => !known.has(claim.status?.providerID ?? ''))
          .map(
            (claim): ClaimRow => ({
              name: claim.metadata.name,
              type: claim.metadata.labels?.[labels.instanceType] ?? '',
              waitingFor:
                claim.status?.conditions?.find((condition) => condition.type === 'Ready')?.message ??
                'launch',
            }),
          )
      : [],
    pricePerHour: priceOfInstances(instances),
    priceUnit: priceUnitOf(cloud),
    unpriced: instances.filter(({ pricePerHour }) => pricePerHour === undefined).length,
    instances: instances.length,
  }
}

/** The currency of a cloud's prices. */
export function priceUnitOf({ priceUnit = 'EUR' }: Cluster['cloud']): string {
  return priceUnit
}

/** Price per hour of the instances whose price is known. */
export function priceOfInstances(instances: readonly SimulatedInstance[]): number {
  return instances.reduce((sum, { pricePerHour = 0 }) => sum + pricePerHour, 0)
}

function hasClaims(local: Cluster['server']['local']): boolean {
  return local.definitions().some((each) => each.kind === karpenterKinds.nodeClaim.kind)
}

function nodeRow(node: Node, pods: readonly Pod[], pricePerHour: number | undefined): NodeRow {
  const running = pods.filter((pod) => pod.status?.phase !== 'Succeeded' && pod.status?.phase !== 'Failed')
  const isReady =
    node.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true
  return {
    name: node.metadata.name,
    type: node.metadata.labels?.[labels.instanceType] ?? '',
    state: node.metadata.deletionTimestamp === undefined ? (isReady ? 'Ready' : 'NotReady') : 'Deleting',
    pods: running.length,
    cpuUsed: running.reduce((sum, pod) => sum + cpuOf(pod), 0),
    cpuTotal: parseResource('cpu', node.status?.allocatable?.['cpu'] ?? '0'),
    pricePerHour,
  }
}

function cpuOf(pod: Pod): number {
  return pod.spec.containers.reduce(
    (sum, container) => sum + (parseResources(container.resources?.requests)['cpu'] ?? 0),
    0,
  )
}
