/** The instances of the model with their prices and pods, as `tenon cost` adds them up (ask.md 11). */
import { amountsOf } from './facts.ts'
import type { PricedInstance } from '@tenon/ask'
import type { FleetRows } from './fleet-rows.ts'

export function instancesOf({ nodes, objects, pods }: FleetRows): readonly PricedInstance[] {
  return nodes.rows().flatMap((row) => {
    const { name, node, nodeClaim, nodePool, instanceType, zone, pricePerHour } = row
    const claim = nodeClaim === undefined ? undefined : objects.claim(nodeClaim)
    // Before its launch a claim is no instance.
    if (node === undefined && (claim?.status?.providerID ?? '') === '') return []
    const object = node === undefined ? claim : objects.node(node)
    return [
      {
        name,
        ...(nodePool !== undefined && { nodePool }),
        ...(instanceType !== undefined && { type: instanceType }),
        ...(zone !== undefined && { zone }),
        pricePerHour,
        allocatable: amountsOf(object?.status?.allocatable),
        pods:
          node === undefined
            ? []
            : Array.from(pods.on(node), ({ namespace, name: pod, owner, requests }) => ({
                namespace,
                name: pod,
                owner,
                requests,
              })),
      },
    ]
  })
}
