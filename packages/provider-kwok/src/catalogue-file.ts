/** Reads instance types from a file in the format of Karpenter's KWOK provider (operations.md 12.2). */
import {
  type InstanceType,
  isKnownPrice,
  isQuantity,
  labels,
  mostPricePerHour,
  normalizedLabel,
  type Offering,
  parseResource,
  type Requirement,
  type RequirementOperator,
  type Resources,
  setOwn,
  ownValue,
} from '@tenon/api'
import { DeviceFieldError, readBindings, readTemplates } from './devices/template-file.ts'
import { instanceTypeOf, is, kubeReserved } from './instance-type.ts'

/** The types of a file, and its problems, one sentence each. */
export interface CatalogueReading {
  readonly types: readonly InstanceType[]
  readonly problems: readonly string[]
}

const defaultPods = 110
const operators: ReadonlySet<string> = new Set<RequirementOperator>([
  'In',
  'NotIn',
  'Exists',
  'DoesNotExist',
  'Gt',
  'Lt',
  'Gte',
  'Lte',
])

/** An invalid field; the message names it. */
class FieldError extends Error {}

/** Reads a JSON array of instance types. Invalid items are left out and listed as problems. */
export function readCatalogue(text: string): CatalogueReading {
  let items: unknown
  try {
    items = JSON.parse(text)
  } catch (error) {
    return { types: [], problems: [`it is not valid JSON: ${(error as Error).message}`] }
  }
  if (!Array.isArray(items)) return { types: [], problems: ['give a JSON array of instance types'] }
  const types = new Map<string, InstanceType>()
  const problems: string[] = []
  for (const [index, item] of (items as readonly unknown[]).entries()) {
    const fields = fieldsOf(item)
    const name = fields?.get('name')
    const at = typeof name === 'string' && name !== '' ? `instance type ${name}` : `item ${index}`
    try {
      if (fields === undefined) throw new FieldError('give an object with name, resources and offerings')
      const type = typeOf(fields, (problem) => problems.push(`${at}: ${problem}`))
      if (types.has(type.name)) throw new FieldError('another item before it has the same name')
      types.set(type.name, type)
    } catch (error) {
      if (!(error instanceof FieldError || error instanceof DeviceFieldError)) throw error
      problems.push(`${at} is skipped: ${error.message}`)
    }
  }
  return { types: [...types.values()], problems }
}

type Fields = ReadonlyMap<string, unknown>

function typeOf(fields: Fields, report: (problem: string) => void): InstanceType {
  const name = textOf(fields, 'name')
  const arch = textOf(fields, 'architecture')
  const operatingSystems = textsOf(fields.get('operatingsystems'), 'operatingSystems')
  if (operatingSystems.length === 0) throw new FieldError('operatingSystems: name at least one')
  const capacity = capacityOf(fields.get('resources'))
  const listed = fields.get('offerings')
  if (!Array.isArray(listed)) throw new FieldError('offerings: give an array')
  const offerings = (listed as readonly unknown[]).flatMap((item, index) => {
    try {
      return [offeringOf(fieldsOf(item))]
    } catch (error) {
      if (!(error instanceof FieldError)) throw error
      report(`offerings[${index}] is skipped: ${error.message}`)
      return []
    }
  })
  if (offerings.length === 0) throw new FieldError('offerings: none of them can be used')
  const templates = fields.get('resourceslicetemplates')
  const bindings = fields.get('attributebindings')
  return {
    ...instanceTypeOf({ name, arch, operatingSystems, capacity, offerings }),
    ...(templates !== undefined && { resourceSliceTemplates: readTemplates(templates) }),
    ...(bindings !== undefined && { attributeBindings: readBindings(bindings) }),
  }
}

function capacityOf(resources: unknown): Resources {
  const amounts: Record<string, number> = { pods: defaultPods }
  const listed = typeof resources === 'object' && resources !== null ? resources : {}
  for (const [resource, quantity] of Object.entries(listed) as [string, unknown][]) {
    const text = typeof quantity === 'number' ? String(quantity) : quantity
    if (typeof text !== 'string' || !isQuantity(text) || parseResource(resource, text) < 0)
      throw new FieldError(`resources.${resource}: give a quantity such as 500m, 4Gi or 2`)
    setOwn(amounts, resource, parseResource(resource, text))
  }
  for (const [resource, reserved] of Object.entries(kubeReserved)) {
    if ((ownValue(amounts, resource) ?? 0) <= reserved)
      throw new FieldError(`resources.${resource}: give more than the 100m cpu and 10Mi memory kept back`)
  }
  return amounts
}

/** `Available` is ignored, as a file cannot say when an offering is available again. */
function offeringOf(fields: Fields | undefined): Offering {
  if (fields === undefined) throw new FieldError('give an object with Price and Requirements')
  const price = fields.get('price') ?? undefined
  if (price !== undefined && !isKnownPrice(price))
    throw new FieldError(`Price: give a number from 0 to ${mostPricePerHour}, or none if it is not known`)
  const reserved = fields.get('reservationcapacity')
  if (reserved !== undefined && (typeof reserved !== 'number' || reserved < 0 || !Number.isInteger(reserved)))
    throw new FieldError('ReservationCapacity: use an integer of 0 or more')
  const requirements = [...requirementsOf(fields.get('requirements')), ...flatRequirements(fields)]
  for (const key of [labels.zone, labels.capacityType]) {
    if (requirements.find((each) => each.key === key && each.operator === 'In')?.values?.length !== 1)
      throw new FieldError(`Requirements: give ${key} In with one value`)
  }
  return {
    requirements,
    pricePerHour: price,
    available: true,
    ...(typeof reserved === 'number' && { reservationCapacity: reserved }),
  }
}

/** `zone` and `capacityType`, which older files have instead of requirements. */
function flatRequirements(fields: Fields): readonly Requirement[] {
  if (fields.has('requirements')) return []
  const pairs = [
    [labels.zone, fields.get('zone')],
    [labels.capacityType, fields.get('capacitytype')],
  ] as const
  return pairs.flatMap(([key, value]) => (typeof value === 'string' ? [is(key, value)] : []))
}

function requirementsOf(value: unknown): readonly Requirement[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new FieldError('Requirements: give an array')
  return (value as readonly unknown[]).map((item) => {
    const fields = fieldsOf(item)
    if (fields === undefined) throw new FieldError('Requirements: give objects with key, operator and values')
    const operator = textOf(fields, 'operator')
    if (!operators.has(operator))
      throw new FieldError(`Requirements: operator ${operator}: give ${[...operators].join(', ')}`)
    const values = fields.get('values')
    return {
      key: normalizedLabel(textOf(fields, 'key')),
      operator: operator as RequirementOperator,
      ...(values !== undefined && values !== null && { values: textsOf(values, 'values') }),
    }
  })
}

function textOf(fields: Fields, field: string): string {
  const value = fields.get(field)
  if (typeof value === 'string' && value !== '') return value
  throw new FieldError(`${field}: give a text`)
}

function textsOf(value: unknown, field: string): readonly string[] {
  if (Array.isArray(value) && (value as readonly unknown[]).every((each) => typeof each === 'string'))
    return value as readonly string[]
  throw new FieldError(`${field}: give an array of texts`)
}

/** The fields of an object, by lower-case name. */
function fieldsOf(value: unknown): Fields | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return new Map(Object.entries(value).map(([key, each]) => [key.toLowerCase(), each as unknown]))
}
