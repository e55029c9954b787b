/** Cost reports of the model, as `tenon cost` computes them (ask.md 11). */
import { type CostDimension, type CostReport, CostSums, type PricedInstance } from '@tenon/ask/cost'
import { amountsOf } from './facts.ts'
import type { FleetRows } from './fleet-rows.ts'
import { isInstance } from './rows.ts'
import type { NodeRow } from './view.ts'

/** One instance per step, so that a large cluster blocks nothing. */
export function* costing(
  fleet: Pick<FleetRows, 'nodes' | 'objects' | 'pods'>,
  by: CostDimension,
): Generator<undefined, CostReport, undefined> {
  const sums = new CostSums(by)
  for (const row of fleet.nodes.rows()) {
    const instance = instanceOf(fleet, row)
    if (instance !== undefined) sums.add(instance)
    yield
  }
  return sums.report()
}

/** @returns undefined for a claim before its launch, which is no instance yet. */
function instanceOf(
  { objects, pods }: Pick<FleetRows, 'objects' | 'pods'>,
  row: NodeRow,
): PricedInstance | undefined {
  if (!isInstance(row)) return undefined
  const { name, node, nodeClaim, nodePool, instanceType, zone, pricePerHour } = row
  const claim = nodeClaim === undefined ? undefined : objects.claim(nodeClaim)
  const object = node === undefined ? claim : objects.node(node)
  return {
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
  }
}
