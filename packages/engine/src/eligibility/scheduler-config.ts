/** Reads the scheduler configuration document: default spread constraints (operations.md 4), scoring (wanted.md 8). */
import { isRecord, ownValue, type TopologySpreadConstraint } from '@tenon/api'
import type { FitScoring } from '../input/input.ts'
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

/** What the document says, or everything that is wrong with it. */
export type SchedulerConfig =
  | {
      readonly defaultConstraints: readonly TopologySpreadConstraint[]
      /** Absent where the document has none, or what kube-scheduler does by default. */
      readonly fitScoring?: FitScoring
    }
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
const integerIn = (least: number, most: number) =>
  plain(
    `an integer from ${least} to ${most}`,
    (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most,
  )
const shapePoints = listOf(onlyFields({ utilization: integerIn(0, 100), score: integerIn(0, 10) }))
const shape: Shape = (value, at) => {
  shapePoints(value, at)
  if (!Array.isArray(value)) return
  const rising = plain('of a higher utilization than the one before', () => false)
  if (value.length === 0) plain('a list of at least one point', () => false)(value, at)
  for (const [i, point] of value.entries()) {
    const before: unknown = value[i - 1]
    if (isRecord(point) && isRecord(before) && Number(point['utilization']) <= Number(before['utilization']))
      within(at, 'index', i, point, rising)
  }
}
const resourceName = plain(
  'the name of a resource such as cpu or nvidia.com/gpu',
  (value) => typeof value === 'string' && isQualifiedName(value),
)
const resources = listOf(onlyFields({ name: resourceName, weight: optional(integerIn(1, 100)) }))
const strategyFields = {
  type: oneOf('LeastAllocated', 'MostAllocated', 'RequestedToCapacityRatio'),
  resources: optional(resources),
  requestedToCapacityRatio: optional(onlyFields({ shape })),
}
const ratioStrategy = onlyFields({ ...strategyFields, requestedToCapacityRatio: onlyFields({ shape }) })
const otherStrategy = onlyFields(strategyFields)
const scoringStrategy: Shape = (value, at) => {
  const isRatio = isRecord(value) && value['type'] === 'RequestedToCapacityRatio'
  ;(isRatio ? ratioStrategy : otherStrategy)(value, at)
}
const schedulerConfig = optional(
  onlyFields({
    podTopologySpread: optional(onlyFields({ defaultConstraints: optional(constraints) })),
    nodeResourcesFit: optional(onlyFields({ scoringStrategy: optional(scoringStrategy) })),
  }),
)

/** A document without problems. */
type Document = {
  readonly podTopologySpread?: {
    readonly defaultConstraints?: readonly TopologySpreadConstraint[] | null
  } | null
  readonly nodeResourcesFit?: {
    readonly scoringStrategy?: {
      readonly type: FitScoring['type']
      readonly resources?: readonly { readonly name: string; readonly weight?: number | null }[] | null
      readonly requestedToCapacityRatio?: { readonly shape: NonNullable<FitScoring['shape']> } | null
    } | null
  } | null
} | null

/**
 * The configuration of a parsed YAML or JSON document. Unknown fields are problems, an empty
 * document is a configuration that sets nothing.
 */
export function parseSchedulerConfig(document: unknown): SchedulerConfig {
  const problems = misfits(document, schedulerConfig)
  if (problems.length > 0) return { problems }
  const config = document as Document | undefined
  return {
    defaultConstraints: config?.podTopologySpread?.defaultConstraints ?? [],
    ...fitScoringOf(config?.nodeResourcesFit?.scoringStrategy ?? undefined),
  }
}

function fitScoringOf(strategy: NonNullable<NonNullable<Document>['nodeResourcesFit']>['scoringStrategy']): {
  readonly fitScoring?: FitScoring
} {
  if (strategy === undefined || strategy === null) return {}
  const named = (strategy.resources ?? []).map(({ name, weight }) => ({ name, weight: weight ?? 1 }))
  if (strategy.type === 'LeastAllocated' && named.length === 0) return {}
  const points =
    strategy.type === 'RequestedToCapacityRatio' ? strategy.requestedToCapacityRatio?.shape : undefined
  return {
    fitScoring: {
      type: strategy.type,
      resources: named.length > 0 ? named : cpuAndMemory,
      ...(points && { shape: points }),
    },
  }
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

/** What counts where the strategy names no resources. */
const cpuAndMemory = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
]

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}
