import type { NodeEntry, PodFacts, ResourceTable } from '@tenon/filters'
import type { PendingResize } from './pod-status.ts'

/** Whether a kubelet admits a pod, or why not, as in its status. */
export type Admission =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'rejected'; readonly reason: string; readonly message: string }

/** Whether a node admits a pod in addition to its own: node affinity, host ports and resources. */
export function admitPod(facts: PodFacts, entry: NodeEntry, table: ResourceTable): Admission {
  if (facts.nodes !== undefined && !facts.nodes.matches(entry.name, entry.labels)) {
    const why = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    return { kind: 'rejected', reason: 'NodeAffinity', message: why }
  }
  if (!entry.hasFreePorts(facts)) {
    const why = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    return { kind: 'rejected', reason: 'NodePorts', message: why }
  }
  if (entry.pods.size >= entry.podsAllowed) return outOf('pods', 1, entry.pods.size, entry.podsAllowed)
  const { requestMappings = [] } = facts.pod.status?.extendedResourceClaimStatus ?? {}
  for (const { slot, amount } of facts.requests) {
    // Devices serve it.
    if (requestMappings.some(({ resourceName }) => resourceName === table.nameOf(slot))) continue
    const used = entry.requested[slot] ?? 0
    const capacity = entry.allocatable[slot] ?? 0
    if (amount > capacity - used) return outOf(table.nameOf(slot), amount, used, capacity)
  }
  return { kind: 'admitted' }
}

/** Why a pod of the node cannot be resized to what it wants; undefined if it can. */
export function resizeRefusal(
  has: PodFacts,
  wants: PodFacts,
  entry: NodeEntry,
  table: ResourceTable,
): PendingResize | undefined {
  const own = new Map(has.requests.map(({ slot, amount }) => [slot, amount]))
  const grown = wants.requests.filter(({ slot, amount }) => amount > (own.get(slot) ?? 0))
  for (const { slot, amount } of grown) {
    const capacity = entry.allocatable[slot] ?? 0
    if (amount <= capacity) continue
    const numbers = `requested: ${amount}, capacity: ${capacity}`
    const message = `Node didn't have enough capacity: ${table.nameOf(slot)}, ${numbers}`
    return { reason: 'Infeasible', message }
  }
  for (const { slot, amount } of grown) {
    const [capacity, used] = [
      entry.allocatable[slot] ?? 0,
      (entry.requested[slot] ?? 0) - (own.get(slot) ?? 0),
    ]
    if (amount <= capacity - used) continue
    return { reason: 'Deferred', message: lackOf(table.nameOf(slot), amount, used, capacity) }
  }
  return undefined
}

function outOf(resource: string, requested: number, used: number, capacity: number): Admission {
  const message = lackOf(resource, requested, used, capacity)
  return { kind: 'rejected', reason: `OutOf${resource}`, message }
}

function lackOf(resource: string, requested: number, used: number, capacity: number): string {
  const numbers = `requested: ${requested}, used: ${used}, capacity: ${capacity}`
  return `Node didn't have enough resource: ${resource}, ${numbers}`
}
