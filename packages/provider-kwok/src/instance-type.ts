/** Builds an instance type from its catalogue entry (operations.md 12.2). */
import {
  formatResource,
  type InstanceType,
  labels,
  type Offering,
  type Requirement,
  type Resources,
  wellKnownLabels,
} from '@tenon/api'

/** Labels that KWOK instance types add. */
const kwokLabels = {
  size: 'karpenter.kwok.sh/instance-size',
  family: 'karpenter.kwok.sh/instance-family',
  cpu: 'karpenter.kwok.sh/instance-cpu',
  memory: 'karpenter.kwok.sh/instance-memory',
} as const

/** Reserved on every instance: 100m of CPU, 10Mi of memory. */
export const kubeReserved: Resources = { cpu: 100, memory: 10 * 1024 ** 2 }

const sizeInName = /^\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)$/

/** The fields of a type in a catalogue, from which all others follow. */
export interface Shape {
  readonly name: string
  readonly arch: string
  readonly operatingSystems: readonly string[]
  readonly capacity: Resources
  readonly offerings: readonly Offering[]
}

/** A requirement for one of `values`. */
export function is(key: string, ...values: readonly string[]): Requirement {
  return { key, operator: 'In', values }
}

/** The type with its labels; zones and capacity types come from its offerings. */
export function instanceTypeOf({ name, arch, operatingSystems, capacity, offerings }: Shape): InstanceType {
  const cpu = formatResource('cpu', capacity['cpu'] ?? 0)
  const offered = (key: string): readonly string[] => [
    ...new Set(
      offerings.flatMap(({ requirements }) => requirements.find((each) => each.key === key)?.values ?? []),
    ),
  ]
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.arch, arch),
      is(labels.os, ...operatingSystems),
      is(labels.zone, ...offered(labels.zone)),
      is(labels.capacityType, ...offered(labels.capacityType)),
      is(kwokLabels.size, sizeInName.exec(name)?.[1] ?? cpu),
      is(kwokLabels.family, familyOf(name)),
      is(kwokLabels.cpu, cpu),
      is(kwokLabels.memory, formatResource('memory', capacity['memory'] ?? 0)),
    ],
    offerings,
    capacity,
    overhead: { kubeReserved, systemReserved: {}, evictionThreshold: {} },
  }
}

/** `m5` of `m5.2xlarge`, `n2` of `n2-standard-4`; of a name without separators its first character. */
function familyOf(name: string): string {
  const end = name.search(/[.-]/)
  return end > 0 ? name.slice(0, end) : name.slice(0, 1)
}

/** Label keys in addition to those of the core: KWOK's own, and all others in which offerings differ. */
export function choosableLabels(types: readonly InstanceType[]): readonly string[] {
  const offered = types.flatMap(({ offerings }) =>
    offerings.flatMap(({ requirements }) => requirements.map(({ key }) => key)),
  )
  const keys = new Set([...Object.values(kwokLabels), ...offered])
  return [...keys].filter((key) => !wellKnownLabels.includes(key))
}
