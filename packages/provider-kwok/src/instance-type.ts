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

/** What is kept back on every instance: 100m of cpu, 10Mi of memory. */
export const kubeReserved: Resources = { cpu: 100, memory: 10 * 1024 ** 2 }

const sizeInName = /^\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)$/

/** What a catalogue says of a type; everything else follows from it. */
export interface Shape {
  readonly name: string
  readonly arch: string
  readonly operatingSystems: readonly string[]
  readonly capacity: Resources
  readonly offerings: readonly Offering[]
}

/** A requirement that one of `values` is met. */
export function is(key: string, ...values: readonly string[]): Requirement {
  return { key, operator: 'In', values }
}

/** The type with its labels; zones and capacity types are those of its offerings. */
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

/** `m5` of `m5.2xlarge`, `n2` of `n2-standard-4`; of a name without a division its first character. */
function familyOf(name: string): string {
  const end = name.search(/[.-]/)
  return end > 0 ? name.slice(0, end) : name.slice(0, 1)
}

/** Label keys beyond the core's: those of KWOK's own types, and every other one that offerings differ by. */
export function choosableLabels(types: readonly InstanceType[]): readonly string[] {
  const offered = types.flatMap(({ offerings }) =>
    offerings.flatMap(({ requirements }) => requirements.map(({ key }) => key)),
  )
  const keys = new Set([...Object.values(kwokLabels), ...offered])
  return [...keys].filter((key) => !wellKnownLabels.includes(key))
}
