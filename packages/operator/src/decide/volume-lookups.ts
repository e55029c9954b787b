/** Storage objects as the caches hold them. */
import type { CsiNode, Pod } from '@tenon/api'
import { attachedClaims, type VolumeLookups } from '@tenon/engine'
import type { Caches } from '../observe/caches.ts'
import type { NodeStorage } from '../state/state-node.ts'
import { isTerminal } from '../state/pods.ts'

export function volumeLookups(caches: Caches): VolumeLookups {
  return {
    claim: (namespace, name) => caches.persistentVolumeClaims.get({ namespace, name }),
    volume: (name) => caches.persistentVolumes.get({ name }),
    storageClass: (name) => caches.storageClasses.get({ name }),
  }
}

const limits = new WeakMap<CsiNode, Readonly<Record<string, number>> | 'none'>()

/** How many volumes of each driver the node can attach, read once from each object; undefined without any limit. */
function limitsOf(csiNode: CsiNode): Readonly<Record<string, number>> | undefined {
  let known = limits.get(csiNode)
  if (known === undefined) {
    const counts = (csiNode.spec.drivers ?? []).flatMap(({ name, allocatable }) =>
      allocatable?.count === undefined ? [] : [[name, allocatable.count] as const],
    )
    known = counts.length === 0 ? 'none' : Object.fromEntries(counts)
    limits.set(csiNode, known)
  }
  return known === 'none' ? undefined : known
}

/** Volumes of a node's pods and how many of each driver it can attach; `pods` must be well-formed. */
export function nodeStorage(
  caches: Caches,
  nodeName: string,
  pods: readonly Pod[],
  lookups: VolumeLookups,
): NodeStorage {
  const csiNode = caches.csiNodes.get({ name: nodeName })
  const volumeLimits = csiNode && limitsOf(csiNode)
  // Without a limit nobody asks what is attached.
  if (volumeLimits === undefined) return {}
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
