/** Whether any instance type fits a NodePool, and if not, why. */
import {
  counted,
  formatResource,
  type InstanceType,
  labels,
  nearest,
  type NodePool,
  ownValue,
  parseResources,
  type Requirement,
  wellKnownLabels,
} from '@tenon/api'
import {
  allowsAbsence,
  has,
  labelRequirements,
  merged,
  overlaps,
  parseRequirements,
  type Requirements,
} from '@tenon/engine'
import type { OfflineTypes } from '@tenon/provider'
import type { Finding } from './problem.ts'

const listed = 6
const at = 'spec.template.spec.requirements'

/** Labels that every type has with all of its values, so that another value is a mistake. */
const closedKeys: ReadonlySet<string> = new Set([
  labels.instanceType,
  labels.zone,
  labels.region,
  labels.arch,
  labels.os,
])

/** Findings about requirements, template labels and limits of a valid pool. */
export function catalogueFindings(
  pool: NodePool,
  { offered: types, known }: OfflineTypes,
  provider: string,
): readonly Finding[] {
  const { metadata, spec } = pool.spec.template
  const set = labelRequirements(metadata?.labels ?? {})
  const wanted = merged(parseRequirements(spec.requirements), set)
  const fitting = types.filter((type) => isOffered(type, wanted))
  if (fitting.length === 0) return emptyFindings(pool, types, provider)
  return [
    ...unknownKeys(pool, types, provider),
    ...unknownValues(spec.requirements, known, provider),
    ...minValuesFindings(spec.requirements, fitting),
    ...limitFindings(pool, fitting),
  ]
}

/** Whether an offering of the type meets the requirements. */
function isOffered({ requirements, offerings }: InstanceType, wanted: Requirements): boolean {
  return (
    overlaps(parseRequirements(requirements), wanted) &&
    offerings.some((offering) => overlaps(parseRequirements(offering.requirements), wanted))
  )
}

interface Part {
  readonly field: string
  readonly text: string
  readonly requirements: Requirements
}

/** The requirements of a pool one by one, with their paths. */
function partsOf(pool: NodePool): readonly Part[] {
  const { metadata, spec } = pool.spec.template
  const stated = spec.requirements.map(
    (requirement, i): Part => ({
      field: `${at}[${i}]`,
      text: words(requirement),
      requirements: parseRequirements([requirement]),
    }),
  )
  const labelled = Object.entries(metadata?.labels ?? {}).map(
    ([key, value]): Part => ({
      field: `spec.template.metadata.labels["${key}"]`,
      text: `label ${key}=${value}`,
      requirements: labelRequirements({ [key]: value }),
    }),
  )
  return [...stated, ...labelled]
}

function emptyFindings(pool: NodePool, types: readonly InstanceType[], provider: string): readonly Finding[] {
  const parts = partsOf(pool).map((part) => ({
    ...part,
    count: namesOf(types.filter((type) => isOffered(type, part.requirements))).size,
  }))
  const impossible = parts.filter(({ count }) => count === 0)
  if (impossible.length > 0) {
    return impossible.map(({ field, text, requirements }): Finding => {
      const [key = ''] = requirements.keys()
      return {
        severity: 'error',
        field,
        message: `no instance type of ${provider} has ${text}`,
        ...knownFix(key, types),
      }
    })
  }
  const counts = parts
    .filter(({ count }) => count < namesOf(types).size)
    .map(({ text, count }) => `${text} (${counted(count, 'type')})`)
  const message = `no instance type of ${provider} has all of: ${counts.join('; ')}`
  return [{ severity: 'error', field: at, message, fix: 'widen one of them' }]
}

/** Labels that only a provider sets, but this one does not: nodes would be drifted from the start. */
function unknownKeys(pool: NodePool, types: readonly InstanceType[], provider: string): readonly Finding[] {
  return partsOf(pool).flatMap(({ field, requirements }): readonly Finding[] => {
    const [set] = requirements.values()
    if (set === undefined || allowsAbsence(set) || !field.startsWith(at)) return []
    if (!wellKnownLabels.includes(set.key) || isKnownKey(set.key, types)) return []
    const message = `no instance type of ${provider} has label ${set.key}, which its nodes would lack`
    return [{ severity: 'error', field, message, fix: 'remove the requirement' }]
  })
}

function isKnownKey(key: string, types: readonly InstanceType[]): boolean {
  const isAbout = (each: Requirement) => each.key === key
  return types.some(
    ({ requirements, offerings }) =>
      requirements.some(isAbout) || offerings.some((offering) => offering.requirements.some(isAbout)),
  )
}

/** A type of several zones counts once. */
function namesOf(types: readonly InstanceType[]): ReadonlySet<string> {
  return new Set(types.map(({ name }) => name))
}

function knownFix(key: string, types: readonly InstanceType[]): { readonly fix?: string } {
  const values = valuesOf(key, types)
  return values.length === 0 ? {} : { fix: `there are ${some(values)}` }
}

/** Every value of a label among types and their offerings. */
function valuesOf(key: string, types: readonly InstanceType[]): readonly string[] {
  const stated = types.flatMap(({ requirements, offerings }) => [
    ...requirements,
    ...offerings.flatMap((offering) => offering.requirements),
  ])
  const values = stated
    .filter((each) => each.key === key && each.operator === 'In')
    .flatMap((each) => each.values ?? [])
  return [...new Set(values)].toSorted()
}

function unknownValues(
  requirements: readonly Requirement[],
  types: readonly InstanceType[],
  provider: string,
): readonly Finding[] {
  return requirements.flatMap((requirement, i) => {
    const [key = ''] = parseRequirements([requirement]).keys()
    if (!closedKeys.has(key) || (requirement.operator !== 'In' && requirement.operator !== 'NotIn')) return []
    const known = valuesOf(key, types)
    return (requirement.values ?? []).flatMap((value, j): readonly Finding[] =>
      known.includes(value)
        ? []
        : [
            {
              severity: 'warning',
              field: `${at}[${i}].values[${j}]`,
              message: `no instance type of ${provider} has ${key} ${value}`,
              fix: valueFix(value, known),
            },
          ],
    )
  })
}

function valueFix(value: string, known: readonly string[]): string {
  const near = nearest(value, known)
  return near === undefined ? `there are ${some(known)}` : `did you mean ${near}?`
}

function minValuesFindings(
  requirements: readonly Requirement[],
  fitting: readonly InstanceType[],
): readonly Finding[] {
  return requirements.flatMap((requirement, i): readonly Finding[] => {
    const { minValues } = requirement
    if (minValues === undefined) return []
    const [set] = parseRequirements([requirement]).values()
    const values = set === undefined ? [] : valuesOf(set.key, fitting).filter((value) => has(set, value))
    if (set === undefined || values.length >= minValues) return []
    const message = `only ${values.length} values of ${set.key} are left among the instance types that satisfy the rest, fewer than minValues`
    return [{ severity: 'error', field: `${at}[${i}].minValues`, message }]
  })
}

/** With limits below the smallest type nothing can be launched. A type without capacity is of unknown size. */
function limitFindings(pool: NodePool, fitting: readonly InstanceType[]): readonly Finding[] {
  const limits = parseResources(pool.spec.limits ?? {})
  const sized = fitting.filter(({ capacity }) => Object.keys(capacity).length > 0)
  return Object.entries(limits).flatMap(([name, limit]): readonly Finding[] => {
    const least = Math.min(
      ...sized.map(({ capacity }) => ownValue(capacity, name) ?? (name === 'nodes' ? 1 : 0)),
    )
    if (sized.length === 0 || least <= limit) return []
    const smallest = formatResource(name, least)
    return [
      {
        severity: 'warning',
        field: `spec.limits.${name}`,
        message: `no node fits below this limit: the smallest instance type has ${smallest}`,
      },
    ]
  })
}

function words({ key, operator, values = [] }: Requirement): string {
  return `${key} ${operator}${values.length === 0 ? '' : ` [${some(values)}]`}`
}

function some(values: readonly string[]): string {
  const more = values.length - listed
  return values.slice(0, listed).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
