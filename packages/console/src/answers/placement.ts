/** Which pods are on which nodes, for the zoomed-in map. */
import { ownValue } from '@tenon/api'
import type { PodOnNode } from '../model/view.ts'

export interface PlacedPod {
  readonly namespace: string
  readonly name: string
  readonly cpuMillis: number
  readonly memoryBytes: number
}

/** Pods of these nodes that have not terminated; the largest first. */
export function placedOn(
  nodes: ReadonlySet<string>,
  podsOn: (node: string) => readonly PodOnNode[],
): Readonly<Record<string, readonly PlacedPod[]>> {
  return Object.fromEntries(
    [...nodes].map((node) => {
      const pods = podsOn(node).map(({ namespace, name, requests }) => ({
        namespace,
        name,
        cpuMillis: ownValue(requests, 'cpu') ?? 0,
        memoryBytes: ownValue(requests, 'memory') ?? 0,
      }))
      return [node, pods.toSorted((a, b) => b.cpuMillis - a.cpuMillis || (a.name < b.name ? -1 : 1))]
    }),
  )
}
