/** DaemonSet pods as they would run on a node. */
import type { DaemonSet, Node, Pod, Toleration } from '@tenon/api'
import { checkNodeItself, type PodReader, Snapshot, VolumeIndex } from '@tenon/filters'

/** Tolerations that the DaemonSet controller adds to every pod. */
const tolerations: readonly Toleration[] = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
]

/** The pod of a DaemonSet on a node; undefined if it runs none there. */
export function daemonPodOn(daemonSet: DaemonSet, node: Node, reader: PodReader): Pod | undefined {
  const { metadata, spec } = daemonSet.spec.template
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${daemonSet.metadata.name}-${node.metadata.name}`,
      uid: `${daemonSet.metadata.uid}-${node.metadata.name}`,
      ...(daemonSet.metadata.namespace !== undefined && { namespace: daemonSet.metadata.namespace }),
      ...(metadata?.labels !== undefined && { labels: metadata.labels }),
      ...(metadata?.annotations !== undefined && { annotations: metadata.annotations }),
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'DaemonSet',
          name: daemonSet.metadata.name,
          uid: daemonSet.metadata.uid ?? '',
          controller: true,
        },
      ],
    },
    spec: { ...spec, tolerations: [...(spec.tolerations ?? []), ...tolerations] },
  }
  const alone = new Snapshot({ reader, volumes: new VolumeIndex(), namespaces: new Map() })
  return checkNodeItself(reader.factsOf(pod), alone.setNode(node)) === undefined ? pod : undefined
}
