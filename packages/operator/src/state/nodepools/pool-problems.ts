/** Validation of NodePools beyond their CRD (api.md 3.6). */
import {
  capacityTypes,
  isLabelValue,
  labels,
  labelValueProblem,
  nodeClassLabel,
  type NodePool,
  normalizedLabel,
  qualifiedNameProblem,
  type Requirement,
  type Taint,
  wellKnownLabels,
} from '@tenon/api'
import type { PoolRules } from '@tenon/provider'
import { perObject } from '@tenon/runtime'
import { modeAnnotation, modeProblem, observeMode } from './observed-pools.ts'
import { unreadableText } from '../readable.ts'
import {
  allowsAbsence,
  anyValue,
  has,
  oneOf,
  requirementsOf,
  valueSet,
  type ValueSet,
} from '@tenon/engine/objects'

const restrictedDomain = 'karpenter.sh'
const maxInt64 = 9_223_372_036_854_775_807n
const operators: ReadonlySet<string> = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist'])
const effects: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute', ''])
const boundOperators: ReadonlySet<string> = new Set(['Gt', 'Lt', 'Gte', 'Lte'])

export function poolProblems(pool: NodePool, rules: PoolRules): readonly PoolProblem[] {
  const unreadableAt = unreadableText(pool)
  if (unreadableAt !== undefined) return [{ field: 'the NodePool cannot be read', message: unreadableAt }]
  const { metadata, spec } = pool.spec.template
  const ofRequirements = spec.requirements.map((requirement, i) => requirementProblems(requirement, i, rules))
  const unreadable = new Set(ofRequirements.flatMap((problems, i) => (problems.length === 0 ? [] : [i])))
  return [
    ...nameProblems(pool),
    ...modeProblems(pool),
    ...Object.entries(metadata?.labels ?? {}).flatMap(([key, value]) => labelProblems(key, value, rules)),
    ...taintProblems(spec.taints, spec.startupTaints),
    ...ofRequirements.flat(),
    ...contradictions(pool, unreadable, rules.labelAliases),
  ]
}

const problemsUnder = perObject((rules: PoolRules) =>
  perObject((pool: NodePool): readonly string[] =>
    poolProblems(pool, rules).map(
      ({ field, message, fix }) => `${field}: ${message}${fix === undefined ? '' : `; ${fix}`}`,
    ),
  ),
)

/**
 * {@link poolProblems} as sentences, memoized. Nothing is launched, replaced or removed for an invalid pool. This is
 * computed from the object, as its condition lags behind.
 */
export function validatePool(pool: NodePool, rules: PoolRules): readonly string[] {
  return problemsUnder(rules)(pool)
}

/** The names of pool and node class become label values of nodes. */
function nameProblems({ metadata, spec }: NodePool): readonly PoolProblem[] {
  const { name: nodeClass } = spec.template.spec.nodeClassRef
  return [
    ...nameProblem('metadata.name', metadata.name),
    ...nameProblem('spec.template.spec.nodeClassRef.name', nodeClass),
  ]
}

/** A misspelt mode must not launch or remove nodes. */
function modeProblems(pool: NodePool): readonly PoolProblem[] {
  const message = modeProblem(pool)
  const field = `metadata.annotations["${modeAnnotation}"]`
  return message === undefined
    ? []
    : [{ field, message, fix: `use "${observeMode}", or remove the annotation` }]
}

export function nameProblem(field: string, name: string): readonly Required<PoolProblem>[] {
  if (isLabelValue(name)) return []
  const message = `the name "${name}" of ${name.length} characters cannot be the value of a label, which nodes carry`
  return [
    { field, message, fix: 'use a name of at most 63 characters; objects cannot be renamed, create it anew' },
  ]
}

function labelProblems(key: string, value: string, rules: PoolRules): readonly PoolProblem[] {
  const field = `spec.template.metadata.labels["${key}"]`
  if (key === labels.nodePool) return [{ field, message: 'the label is set by the controller; remove it' }]
  const message = qualifiedNameProblem(key) ?? labelValueProblem(value) ?? restrictionProblem(key, rules)
  return message === undefined ? [] : [{ field, message }]
}

function taintProblems(
  taints: readonly Taint[] = [],
  startupTaints: readonly Taint[] = [],
): readonly PoolProblem[] {
  const seen = new Set<string>()
  const check = (list: string, taint: Taint, i: number): readonly PoolProblem[] => {
    const at = `spec.template.spec.${list}[${i}]`
    const identity = `${taint.key}:${taint.effect}`
    const problems = taintPartProblems(at, taint)
    const twice = { field: at, message: `taint ${identity} appears twice among taints and startupTaints` }
    const isTwice = seen.has(identity)
    seen.add(identity)
    return isTwice ? [...problems, twice] : problems
  }
  return [
    ...taints.flatMap((taint, i) => check('taints', taint, i)),
    ...startupTaints.flatMap((taint, i) => check('startupTaints', taint, i)),
  ]
}

function taintPartProblems(at: string, { key, value, effect }: Taint): readonly PoolProblem[] {
  const parts: readonly (readonly [part: string, message: string | undefined])[] = [
    ['key', qualifiedNameProblem(key)],
    ['value', value === undefined || value === '' ? undefined : labelValueProblem(value)],
    [
      'effect',
      effects.has(effect) ? undefined : `"${effect}" is not NoSchedule, PreferNoSchedule or NoExecute`,
    ],
  ]
  return parts.flatMap(([part, message]) =>
    message === undefined ? [] : [{ field: `${at}.${part}`, message }],
  )
}

function requirementProblems(requirement: Requirement, i: number, rules: PoolRules): readonly PoolProblem[] {
  const at = `spec.template.spec.requirements[${i}]`
  const key = normalizedLabel(requirement.key)
  if (key === labels.nodePool)
    return [{ field: `${at}.key`, message: `${key} cannot be required; a pool always has its own name` }]
  const named = (part: string, message: string | undefined): readonly PoolProblem[] =>
    message === undefined ? [] : [{ field: `${at}${part}`, message: `label ${key}: ${message}` }]
  return [
    ...named('.key', qualifiedNameProblem(key)),
    ...named('.key', restrictionProblem(key, rules)),
    ...(requirement.values ?? []).flatMap((value, index) =>
      named(`.values[${index}]`, labelValueProblem(value)),
    ),
    ...named('', operatorProblem(requirement)),
    ...named('.values', closedSetProblem(key, requirement)),
  ]
}

function operatorProblem({ operator, values = [], minValues }: Requirement): string | undefined {
  if (!operators.has(operator) && !boundOperators.has(operator)) return `operator ${operator} is unknown`
  if (operator === 'In' && values.length === 0) return 'operator In needs at least one value'
  if (operator === 'In' && minValues !== undefined && values.length < minValues) {
    return `minValues ${minValues} needs at least that many values`
  }
  if (boundOperators.has(operator) && (values.length !== 1 || !isBound(values[0] ?? ''))) {
    return `operator ${operator} needs a single integer of 0 or more`
  }
  return undefined
}

function isBound(value: string): boolean {
  return /^\+?\d+$/.test(value) && BigInt(value.replace('+', '')) <= maxInt64
}

function closedSetProblem(
  key: string,
  { operator, values = [], minValues }: Requirement,
): string | undefined {
  const allowed = closedValues.get(key)
  if (allowed === undefined || operator !== 'In') return undefined
  const usable = values.filter((value) => allowed.includes(value)).length
  if (usable >= Math.max(1, minValues ?? 1)) return undefined
  return `none of its values can be used; known values are ${allowed.join(', ')}`
}

function restrictionProblem(key: string, rules: PoolRules): string | undefined {
  if (wellKnownLabels.includes(key) || rules.wellKnownLabels.includes(key)) return undefined
  const slash = key.indexOf('/')
  const domain = slash < 0 ? '' : key.slice(0, slash)
  for (const restricted of [restrictedDomain, ...(rules.restrictedDomains ?? [])]) {
    if (domain === restricted || domain.endsWith(`.${restricted}`))
      return `labels of domain ${restricted} are reserved`
  }
  if (key === labels.hostname) return 'it differs for every node and cannot be set'
  return rules.restrictedLabels?.includes(key) === true ? 'it is reserved by the provider' : undefined
}

const at = 'spec.template.spec.requirements'

export interface PoolProblem {
  /** Path in the NodePool; keys of maps are quoted in brackets. */
  readonly field: string
  readonly message: string
  /** What to write instead, unless the message says so. */
  readonly fix?: string
}

/** Constraint of one field of a template on a label. */
interface Statement {
  readonly field: string
  /** For messages, without the key. */
  readonly text: string
  readonly set: ValueSet
}

/** Labels with a fixed set of values. */
const closedValues: ReadonlyMap<string, readonly string[]> = new Map([
  [labels.capacityType, [capacityTypes.onDemand, capacityTypes.spot, capacityTypes.reserved]],
])
/** Labels that every node has. */
const alwaysPresent: ReadonlySet<string> = new Set([
  labels.zone,
  labels.instanceType,
  labels.arch,
  labels.os,
  labels.capacityType,
])
/** Labels whose values are never integers, so Gt and Lt match none. */
const neverIntegers: ReadonlySet<string> = new Set([labels.arch, labels.os])
const maxListed = 5

/**
 * Labels for which labels and requirements of a template contradict each other, or admit fewer values than minValues.
 * Nodes of such a pool cannot be launched, or are drifted from the start. One problem for each label.
 * @param unreadable indexes of malformed requirements, which are skipped.
 * @param labelAliases canonical label keys by alias of the provider.
 */
function contradictions(
  pool: NodePool,
  unreadable: ReadonlySet<number>,
  labelAliases: Readonly<Record<string, string>> = {},
): readonly PoolProblem[] {
  const statements = statementsOf(pool, unreadable, new Map(Object.entries(labelAliases)))
  const byKey = Map.groupBy(statements, ({ set }) => set.key)
  return [...byKey.values()].flatMap((each) => {
    const problem = contradictionOf(each) ?? shortageOf(each)
    return problem === undefined ? [] : [problem]
  })
}

function statementsOf(
  { spec: { template } }: NodePool,
  unreadable: ReadonlySet<number>,
  aliases: ReadonlyMap<string, string>,
): readonly Statement[] {
  const canonical = (key: string): string => aliases.get(key) ?? key
  const { nodeClassRef: ref, requirements } = template.spec
  const ofClass: Statement = {
    field: 'spec.template.spec.nodeClassRef.name',
    text: `the name ${ref.name} of the node class`,
    set: oneOf(nodeClassLabel(ref), ref.name),
  }
  const labelled = Object.entries(template.metadata?.labels ?? {}).map(
    ([key, value]): Statement => ({
      field: `spec.template.metadata.labels["${key}"]`,
      text: `the value "${value}" of the template's label`,
      set: oneOf(canonical(key), value),
    }),
  )
  const required = requirements.flatMap((requirement, i): readonly Statement[] => {
    if (unreadable.has(i)) return []
    const set = boundedSet({ ...requirement, key: canonical(requirement.key) })
    return [{ field: `${at}[${i}]`, text: requirementText(requirement), set }]
  })
  return [ofClass, ...labelled, ...required]
}

/** A bound outside of 64 bits matches no value; the engine reads it as the absence of the label. */
function boundedSet(requirement: Requirement): ValueSet {
  const set = valueSet(requirement)
  const hasBound = requirement.values?.length === 1 && !['In', 'NotIn'].includes(requirement.operator)
  return hasBound && !set.complement ? { ...set, complement: true, gte: 1n, lte: 0n } : set
}

function requirementText({ operator, values = [] }: Requirement): string {
  const more = values.length - maxListed
  const listed = values.slice(0, maxListed).join(', ') + (more > 0 ? ` and ${more} more` : '')
  return values.length === 0 ? operator : `${operator} [${listed}]`
}

/** The first statement that contradicts those before it. */
function contradictionOf(statements: readonly Statement[]): PoolProblem | undefined {
  for (const [i, statement] of statements.entries()) {
    const before = statements.slice(0, i)
    if (isPossible([...before, statement])) continue
    const { field, text, set } = statement
    if (!isPossible([statement]))
      return { field, message: `label ${set.key}: no node satisfies ${text}`, fix: impossibleFix(set) }
    const other = before.find((each) => !isPossible([each, statement]))
    const said = (other === undefined ? before : [other]).map((each) => `${each.text} (${each.field})`)
    const message = `label ${set.key}: no node satisfies both ${text} and ${said.join(' and ')}`
    return { field, message, fix: 'change or remove one of them' }
  }
  return undefined
}

function impossibleFix({ key }: ValueSet): string {
  if (closedValues.has(key)) return `known values are ${closedValues.get(key)?.join(', ')}`
  return alwaysPresent.has(key)
    ? 'every node has this label; name its values with In or NotIn'
    : 'change or remove it'
}

/** Whether a node can satisfy all of these, with a value or without the label. */
function isPossible(statements: readonly Statement[]): boolean {
  const [set] = requirementsOf(statements.map((each) => each.set)).values()
  if (set === undefined) return true
  if (allowsAbsence(set) && !alwaysPresent.has(set.key)) return true
  const closed = closedValues.get(set.key)
  if (closed !== undefined) return closed.some((value) => has(set, value))
  if (neverIntegers.has(set.key) && isBounded(set)) return false
  return anyValue(set) !== undefined
}

const isBounded = ({ gte, lte }: ValueSet): boolean => gte !== undefined || lte !== undefined

/** minValues that exceeds the number of admitted values. */
function shortageOf(statements: readonly Statement[]): PoolProblem | undefined {
  const [set] = requirementsOf(statements.map((each) => each.set)).values()
  const stated = statements.find((each) => each.set.minValues === set?.minValues)
  if (set?.minValues === undefined || stated === undefined) return undefined
  const admitted = countOf(set)
  if (admitted === undefined || admitted >= BigInt(set.minValues)) return undefined
  return {
    field: `${stated.field}.minValues`,
    message: `label ${set.key}: minValues ${set.minValues} cannot be met, as labels and requirements admit ${admitted} of its values`,
    fix: admitted === 0n ? 'remove minValues' : `write ${admitted} at most, or admit more values`,
  }
}

/** Number of values in the set; undefined if unbounded. */
function countOf(set: ValueSet): bigint | undefined {
  const closed = closedValues.get(set.key)
  if (closed !== undefined) return BigInt(closed.filter((value) => has(set, value)).length)
  if (!set.complement) return BigInt(set.values.size)
  if (set.lte === undefined) return undefined
  const least = set.gte === undefined || set.gte < 0n ? 0n : set.gte
  const excluded = [...set.values].filter((value) => BigInt(value).toString() === value).length
  return set.lte - least + 1n - BigInt(excluded)
}
