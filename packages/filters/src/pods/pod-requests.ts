import { perRequests, type Pod, podRequests, type ResizedRequests, type Resources } from '@tenon/api'
import type { Amount, ResourceTable } from './resource-table.ts'

/** What a container without requests counts for in scoring. */
const assumedForScoring = { cpu: 100, memory: 200 * 1024 * 1024 }

/** The requests of a pod, and its CPU (thousandths) and memory (bytes) in scoring. */
export interface PodResources {
  /** Without zero amounts. */
  readonly requests: readonly Amount[]
  readonly scored: { readonly cpu: number; readonly memory: number }
}

/**
 * Computes requests of pods by the slots of a table; once for pods that share their containers.
 * @param resized how kube-scheduler counts pods that are resized in place.
 */
export function requestsBySlot(
  table: ResourceTable,
  resized: ResizedRequests = 'sumOfMaxima',
): (pod: Pick<Pod, 'spec' | 'status'>) => PodResources {
  return perRequests(({ spec, status }) => {
    const { cpu = 0, memory = 0 } = podRequests(spec, status, resized, assumedForScoring)
    return { requests: bySlot(podRequests(spec, status, resized), table), scored: { cpu, memory } }
  })
}

function bySlot(requests: Resources, table: ResourceTable): readonly Amount[] {
  return Object.entries(requests)
    .filter(([name, amount]) => name !== 'pods' && amount > 0)
    .map(([name, amount]) => ({ slot: table.slotOf(name), amount }))
    .toSorted((a, b) => a.slot - b.slot)
}
