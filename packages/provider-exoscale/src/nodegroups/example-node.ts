/** What the first node of a group will be: from its published instance type and its nodepool. */
import { formatResources, labels, type Node, ownValue, type Taint } from '@tenon/api'
import { publishedTypes } from '../catalogue/published-catalogue.ts'
import { publishedInstanceTypes } from '../catalogue/published-types.ts'
import type { FoundNodepool, KnownPool } from './known-pool.ts'

const nodepoolLabel = 'node.exoscale.net/nodepool-id'
const effects: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])

/**
 * Undefined if the members' type is unknown, or its size is not published. The kubelet may leave less for pods than the
 * allocatable here; the first real node corrects that.
 */
export function exampleNode(pool: KnownPool, zone: string): Node | undefined {
  const published = publishedTypes.find(({ id, isSizePublished }) => id === pool.typeId && isSizePublished)
  const type = publishedInstanceTypes(zone).find(({ name }) => name === published?.name)
  if (type === undefined) return undefined
  const { kubeReserved, systemReserved } = type.overhead
  const allocatable = Object.fromEntries(
    Object.entries(type.capacity).map(([name, amount]) => [
      name,
      amount - (ownValue(kubeReserved, name) ?? 0) - (ownValue(systemReserved, name) ?? 0),
    ]),
  )
  const { nodepool } = pool
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `first-node-of-${pool.id}`,
      labels: {
        [labels.instanceType]: type.name,
        [labels.zone]: zone,
        [labels.region]: zone,
        [labels.arch]: 'amd64',
        [labels.os]: 'linux',
        ...nodepool?.labels,
        ...(nodepool !== undefined && { [nodepoolLabel]: nodepool.nodepoolId }),
      },
    },
    spec: { taints: taintsOf(nodepool) },
    status: {
      capacity: formatResources(type.capacity),
      allocatable: formatResources(allocatable),
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}

function taintsOf(nodepool: FoundNodepool | undefined): readonly Taint[] {
  return Object.entries(nodepool?.taints ?? {}).flatMap(([key, { value, effect = '' }]) =>
    isEffect(effect) ? [{ key, effect, ...(value !== undefined && { value }) }] : [],
  )
}

function isEffect(text: string): text is Taint['effect'] {
  return effects.has(text)
}
