/** Storage objects as the caches hold them. */
import type { CsiNode, Pod } from '@tenon/api'
import { attachedClaims, type VolumeLookups } from '@tenon/engine'
import { type Caches, indexes } from '../../state/caches.ts'
import { limitsOf } from '../../state/nodes/attach-limits.ts'
import type { NodeStorage } from '../../state/nodes/state-node.ts'
import { isTerminal } from '../../state/pods/pods.ts'

/** What tells of volumes, and of nodes that attach them. */
export type VolumeCaches = Pick<
  Caches,
  'csiNodes' | 'nodes' | 'persistentVolumeClaims' | 'persistentVolumes' | 'pods' | 'storageClasses'
>

export function volumeLookups(caches: Omit<VolumeCaches, 'csiNodes'>): VolumeLookups {
  return {
    claim: (namespace, name) => caches.persistentVolumeClaims.get({ namespace, name }),
    volume: (name) => caches.persistentVolumes.get({ name }),
    storageClass: (name) => caches.storageClasses.get({ name }),
    volumesOfClass: (name) => caches.persistentVolumes.byIndex(indexes.byStorageClass, name),
    podsUsing: (namespace, name) =>
      caches.pods
        .byIndex(indexes.byVolumeClaim, `${namespace}/${name}`)
        .filter((pod) => (pod.spec.nodeName ?? '') !== '' && !isTerminal(pod)),
    node: (name) => caches.nodes.get({ name }),
  }
}

/**
 * Volumes of a node's pods and how many of each driver it can attach; `pods` must be well-formed.
 * @param expected limits that count as long as the node does not tell its own.
 */
export function nodeStorage(
  csiNode: CsiNode | undefined,
  pods: readonly Pod[],
  lookups: VolumeLookups,
  expected: Readonly<Record<string, number>> = {},
): NodeStorage {
  const volumeLimits = csiNode === undefined ? expected : { ...expected, ...limitsOf(csiNode) }
  // Without a limit nobody asks what is attached.
  if (Object.keys(volumeLimits).length === 0) return {}
  const inUse = new Map<string, Set<string>>()
  for (const pod of pods) {
    if (isTerminal(pod) || (pod.spec.volumes ?? []).length === 0) continue
    for (const [driver, claims] of Object.entries(attachedClaims(pod, lookups))) {
      const known = inUse.get(driver) ?? new Set()
      for (const claim of claims) known.add(claim)
      inUse.set(driver, known)
    }
  }
  return {
    volumeLimits,
    volumesInUse: Object.fromEntries([...inUse].map(([driver, claims]) => [driver, [...claims].toSorted()])),
  }
}
