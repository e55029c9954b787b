import {
  type DaemonSet,
  karpenterKinds,
  kinds,
  type Namespace,
  type Node,
  type NodeClaim,
  type NodeClass,
  type NodePool,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type PodDisruptionBudget,
  type VolumeAttachment,
} from '@tenon/api'
import type { Cache, CacheRegistry } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'

/** Local copies of everything the operator reads, with the indexes it looks things up by. */
export interface Caches {
  readonly pods: Cache<Pod>
  readonly nodes: Cache<Node>
  readonly nodeClaims: Cache<NodeClaim>
  readonly nodePools: Cache<NodePool>
  readonly namespaces: Cache<Namespace>
  readonly daemonSets: Cache<DaemonSet>
  readonly podDisruptionBudgets: Cache<PodDisruptionBudget>
  readonly volumeAttachments: Cache<VolumeAttachment>
  readonly persistentVolumeClaims: Cache<PersistentVolumeClaim>
  readonly persistentVolumes: Cache<PersistentVolume>
  readonly nodeClasses: readonly Cache<NodeClass>[]
}

/** Names of the indexes of {@link Caches}. */
export const indexes = {
  byNode: 'node',
  byProviderId: 'providerID',
  byOwner: 'owner',
  byNodePool: 'nodePool',
} as const

/** Takes the operator's caches from the registry, which starts each of them once. */
export function openCaches(registry: CacheRegistry, provider: CloudProvider): Caches {
  const caches: Caches = {
    pods: registry.cache(kinds.pod, { transform: withoutBulk }),
    nodes: registry.cache(kinds.node, { transform: withoutBulk }),
    nodeClaims: registry.cache(karpenterKinds.nodeClaim),
    nodePools: registry.cache(karpenterKinds.nodePool),
    namespaces: registry.cache(kinds.namespace),
    daemonSets: registry.cache(kinds.daemonSet, { transform: withoutBulk }),
    podDisruptionBudgets: registry.cache(kinds.podDisruptionBudget),
    volumeAttachments: registry.cache(kinds.volumeAttachment),
    persistentVolumeClaims: registry.cache(kinds.persistentVolumeClaim),
    persistentVolumes: registry.cache(kinds.persistentVolume),
    nodeClasses: provider.nodeClasses.map((type) => registry.cache(type)),
  }
  const optional = (value: string | undefined) => (value === undefined || value === '' ? [] : [value])
  caches.pods.addIndex(indexes.byNode, (pod) => optional(pod.spec.nodeName))
  caches.pods.addIndex(indexes.byOwner, (pod) =>
    (pod.metadata.ownerReferences ?? []).map((owner) => owner.uid),
  )
  caches.nodes.addIndex(indexes.byProviderId, (node) => optional(node.spec?.providerID))
  caches.nodeClaims.addIndex(indexes.byProviderId, (claim) => optional(claim.status?.providerID))
  caches.nodeClaims.addIndex(indexes.byNodePool, (claim) =>
    optional(claim.metadata.labels?.['karpenter.sh/nodepool']),
  )
  caches.volumeAttachments.addIndex(indexes.byNode, (attachment) => [attachment.spec.nodeName])
  return caches
}

/** Field ownership is of no use here and often the largest part of an object. */
function withoutBulk<T extends Pod | Node | DaemonSet>(object: T): T {
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
