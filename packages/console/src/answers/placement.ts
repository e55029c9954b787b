/** Which pods are on which nodes: for the map, from near. */
import { kinds, type Pod } from '@tenon/api'
import { ofKind, type Snapshot } from '@tenon/ask'
import { podRequests } from '@tenon/engine'

export interface PlacedPod {
  readonly namespace: string
  readonly name: string
  readonly cpuMillis: number
  readonly memoryBytes: number
}

/** Pods that have not ended, of these nodes; the largest first. */
export function podsOn(
  snapshot: Snapshot,
  nodes: ReadonlySet<string>,
): Readonly<Record<string, readonly PlacedPod[]>> {
  const placed = new Map<string, PlacedPod[]>()
  for (const pod of ofKind(snapshot, kinds.pod)) {
    const { nodeName = '' } = pod.spec
    if (!nodes.has(nodeName) || hasEnded(pod)) continue
    const { cpu = 0, memory = 0 } = podRequests(pod.spec)
    const { namespace = '', name } = pod.metadata
    const own = placed.get(nodeName) ?? []
    own.push({ namespace, name, cpuMillis: cpu, memoryBytes: memory })
    placed.set(nodeName, own)
  }
  for (const pods of placed.values())
    pods.sort((a, b) => b.cpuMillis - a.cpuMillis || (a.name < b.name ? -1 : 1))
  return Object.fromEntries(placed)
}

function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}
