/** Copies labels and annotations of a Machine to its Node (cluster-api.md 18). */
import { kinds, type Node, ownValue, type Taint } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import type { ClusterApiNames } from '@tenon/provider-cluster-api'
import type { FullMachine } from '../kinds.ts'

function isSynced(key: string, { group }: ClusterApiNames): boolean {
  const domain = key.split('/')[0] ?? ''
  if (domain === 'node-role.kubernetes.io') return true
  return ['node-restriction.kubernetes.io', `node.${group}`].some(
    (managed) => domain === managed || domain.endsWith(`.${managed}`),
  )
}

/**
 * Copies labels of managed domains, and Cluster API's own annotations, to a Node. Removes labels that the Machine no
 * longer has.
 */
export function syncNode(workload: LocalApi, names: ClusterApiNames, machine: FullMachine, node: Node): void {
  const { labels = {}, name, namespace = '', ownerReferences = [] } = machine.metadata
  const synced = Object.entries(labels).filter(([key]) => isSynced(key, names))
  const owner = ownerReferences.find(({ controller }) => controller === true)
  const listKey = `${names.group}/labels-from-machine`
  const keys = synced.map(([key]) => key).toSorted()
  const annotations: Readonly<Record<string, string>> = {
    [names.clusterName]: machine.spec?.clusterName ?? '',
    [`${names.group}/cluster-namespace`]: namespace,
    ...(machine.kind === 'Machine' && { [names.machine]: name }),
    [listKey]: keys.join(','),
    ...(owner !== undefined && {
      [`${names.group}/owner-kind`]: owner.kind,
      [`${names.group}/owner-name`]: owner.name,
    }),
  }
  const before = ownValue(node.metadata.annotations, listKey) ?? ''
  const lost = before.split(',').filter((key) => key !== '' && !keys.includes(key))
  const gone = lost.filter((key) => ownValue(node.metadata.labels, key) !== undefined)
  const isSame =
    gone.length === 0 &&
    synced.every(([key, value]) => ownValue(node.metadata.labels, key) === value) &&
    Object.entries(annotations).every(([key, value]) => ownValue(node.metadata.annotations, key) === value)
  if (isSame) return
  workload.patch(kinds.node, undefined, node.metadata.name, {
    metadata: {
      labels: { ...Object.fromEntries(gone.map((key) => [key, null])), ...Object.fromEntries(synced) },
      annotations,
    },
  })
}

const outdated: Taint = { key: 'node.cluster.x-k8s.io/outdated-revision', effect: 'PreferNoSchedule' }

/** Removes the uninitialized taint. */
export function markSeen(workload: LocalApi, { uninitialized }: ClusterApiNames, nodeName: string): void {
  const node = workload.get(kinds.node, undefined, nodeName)
  const { taints = [] } = node?.spec ?? {}
  const wanted = taints.filter(({ key }) => key !== uninitialized)
  if (node === undefined || wanted.length === taints.length) return
  const { resourceVersion } = node.metadata
  workload.patch(kinds.node, undefined, nodeName, { metadata: { resourceVersion }, spec: { taints: wanted } })
}

/** Taints nodes of outdated templates with PreferNoSchedule. */
export function markRevision(workload: LocalApi, nodeName: string, isCurrent: boolean): void {
  const node = workload.get(kinds.node, undefined, nodeName)
  const { taints = [] } = node?.spec ?? {}
  const others = taints.filter(({ key }) => key !== outdated.key)
  const isMarked = others.length < taints.length
  if (node === undefined || isMarked === !isCurrent) return
  const { resourceVersion } = node.metadata
  const wanted = isCurrent ? others : [...others, outdated]
  workload.patch(kinds.node, undefined, nodeName, { metadata: { resourceVersion }, spec: { taints: wanted } })
}
