/** Derives instance types from the nodes of a cluster. */
import { type InstanceType, labels, type Node, ownValue, parseResources } from '@tenon/api'

const shown = [labels.instanceType, labels.arch, labels.os] as const

/** One type per instance-type label, in the zones of its nodes, with unknown prices. */
export function typesOfNodes(nodes: readonly Node[]): readonly InstanceType[] {
  const byName = Map.groupBy(nodes, ({ metadata }) => metadata.labels?.[labels.instanceType] ?? '')
  byName.delete('')
  return Array.from(byName, ([name, alike]) => typeOf(name, alike)).toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  )
}

function typeOf(name: string, [first, ...others]: readonly Node[]): InstanceType {
  const nodes = first === undefined ? [] : [first, ...others]
  const valuesOf = (key: string): readonly string[] =>
    [...new Set(nodes.flatMap(({ metadata }) => ownValue(metadata.labels, key) ?? []))].toSorted()
  const places = new Map(
    nodes.map(({ metadata }) => {
      const zone = metadata.labels?.[labels.zone] ?? ''
      const capacityType = metadata.labels?.[labels.capacityType] ?? 'on-demand'
      return [`${zone}/${capacityType}`, { zone, capacityType }]
    }),
  )
  const capacity = parseResources(first?.status?.capacity)
  const allocatable = parseResources(first?.status?.allocatable ?? first?.status?.capacity)
  const reserved = Object.entries(capacity).map(([resource, amount]) => [
    resource,
    Math.max(0, amount - (ownValue(allocatable, resource) ?? amount)),
  ])
  return {
    name,
    requirements: [...shown, labels.zone, labels.capacityType].flatMap((key) => {
      const values =
        key === labels.capacityType
          ? [...new Set([...places.values()].map((each) => each.capacityType))]
          : valuesOf(key)
      return values.length === 0 ? [] : [{ key, operator: 'In' as const, values }]
    }),
    offerings: Array.from(places.values(), ({ zone, capacityType }) => ({
      requirements: [
        ...(zone === '' ? [] : [{ key: labels.zone, operator: 'In' as const, values: [zone] }]),
        { key: labels.capacityType, operator: 'In' as const, values: [capacityType] },
      ],
      pricePerHour: undefined,
      available: true,
    })),
    capacity,
    overhead: { kubeReserved: Object.fromEntries(reserved), systemReserved: {}, evictionThreshold: {} },
  }
}
