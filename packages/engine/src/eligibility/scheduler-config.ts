/** Reads the scheduler configuration document: default spread constraints (operations.md 4). */
import { isRecord, ownValue, type TopologySpreadConstraint } from '@tenon/api'
import { isQualifiedName } from './node-selection.ts'
import {
  fields,
  type Inspection,
  listOf,
  misfits,
  oneOf,
  optional,
  plain,
  positiveInteger,
  type Shape,
  type ShapeProblem,
  within,
} from './shape-check.ts'

/** The constraints, or everything that is wrong with the document. */
export type SchedulerConfig =
  | { readonly defaultConstraints: readonly TopologySpreadConstraint[] }
  | { readonly problems: readonly ShapeProblem[] }

const constraintFields: Readonly<Record<string, Shape>> = {
  maxSkew: positiveInteger,
  topologyKey: plain(
    'a label key such as topology.kubernetes.io/zone',
    (value) => typeof value === 'string' && isQualifiedName(value),
  ),
  whenUnsatisfiable: oneOf('DoNotSchedule', 'ScheduleAnyway'),
  minDomains: optional(positiveInteger),
  nodeAffinityPolicy: optional(oneOf('Honor', 'Ignore')),
  nodeTaintsPolicy: optional(oneOf('Honor', 'Ignore')),
  labelSelector: plain('left out: it is deduced for every pod', isAbsent),
  matchLabelKeys: plain('left out: the selector is deduced for every pod', isAbsent),
}
const constraint = onlyFields(constraintFields)
const constraints: Shape = (value, at) => {
  listOf(constraint)(value, at)
  if (Array.isArray(value)) refuseDuplicates(value, at)
}
const schedulerConfig = optional(
  onlyFields({
    podTopologySpread: optional(onlyFields({ defaultConstraints: optional(constraints) })),
  }),
)

/**
 * The configuration of a parsed YAML or JSON document. Unknown fields are problems, an empty
 * document is a configuration without constraints.
 */
export function parseSchedulerConfig(document: unknown): SchedulerConfig {
  const problems = misfits(document, schedulerConfig)
  if (problems.length > 0) return { problems }
  const config = document as {
    readonly podTopologySpread?: { readonly defaultConstraints?: readonly TopologySpreadConstraint[] }
  } | null
  return { defaultConstraints: config?.podTopologySpread?.defaultConstraints ?? [] }
}

/** One clause per problem, with its field. */
export function renderSchedulerConfigProblems(problems: readonly ShapeProblem[]): string {
  return problems
    .map(({ field, expected }) => `${field === '' ? 'the document' : field} must be ${expected}`)
    .join('; ')
}

/** An object without other fields than these. */
function onlyFields(shapes: Readonly<Record<string, Shape>>): Shape {
  const known = Object.keys(shapes)
  const named = fields(shapes)
  const unknown = plain(`left out: the known fields here are ${known.join(', ')}`, () => false)
  return (value, at) => {
    if (isRecord(value)) {
      for (const name of Object.keys(value))
        if (!known.includes(name)) within(at, 'field', name, ownValue(value, name), unknown)
    }
    named(value, at)
  }
}

function refuseDuplicates(list: readonly unknown[], at: Inspection): void {
  const seen = new Set<string>()
  const duplicate = plain('the only one with its topologyKey and whenUnsatisfiable', () => false)
  for (const [i, one] of list.entries()) {
    if (!isRecord(one)) continue
    const identity = `${String(one['topologyKey'])} ${String(one['whenUnsatisfiable'])}`
    if (seen.has(identity)) within(at, 'index', i, one, duplicate)
    seen.add(identity)
  }
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}
