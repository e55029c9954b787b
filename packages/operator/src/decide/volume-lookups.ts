/** Storage objects as the caches hold them. */
import type { Pod } from '@tenon/api'
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

/** Volumes of a node's pods and how many of each driver it can attach; `pods` must be well-formed. */
export function nodeStorage(
  caches: Caches,
  nodeName: string,
  pods: readonly Pod[],
  lookups: VolumeLookups,
): NodeStorage {
  const drivers = caches.csiNodes.get({ name: nodeName })?.spec.drivers ?? []
  const volumeLimits: Record<string, number> = {}
  let isLimited = false
  for (const { name, allocatable } of drivers) {
    if (allocatable?.count === undefined) continue
    volumeLimits[name] = allocatable.count
    isLimited = true
  }
  // Without a limit nobody asks what is attached.
  if (!isLimited) return {}
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
