/** Checks of a NodePool that its CRD cannot make (api.md 3.6). */
import {
  isLabelValue,
  labels,
  labelValueProblem,
  type NodePool,
  normalizedLabel,
  qualifiedNameProblem,
  type Requirement,
  type Taint,
  wellKnownLabels,
} from '@tenon/api'
import type { PoolRules } from '@tenon/provider'
import { perObject } from '@tenon/runtime'
import { modeAnnotation, modeProblem, observeMode } from './mode.ts'
import { unreadableText } from '../readable.ts'
import { closedValues, contradictions, type PoolProblem } from './pool-contradictions.ts'

const restrictedDomain = 'karpenter.sh'
const maxInt64 = 9_223_372_036_854_775_807n
const operators: ReadonlySet<string> = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist'])
const effects: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute', ''])
const boundOperators: ReadonlySet<string> = new Set(['Gt', 'Lt', 'Gte', 'Lte'])

/** Every problem of the pool; none when it can be used. */
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
 * {@link poolProblems} as sentences that begin with the field. A pool with problems takes no part:
 * nothing is launched, replaced or removed for it. Asked of the object rather than of its condition,
 * which follows a change a moment later.
 */
export function validatePool(pool: NodePool, rules: PoolRules): readonly string[] {
  return problemsUnder(rules)(pool)
}

/** Every node carries the names of its pool and its node class as label values. */
function nameProblems({ metadata, spec }: NodePool): readonly PoolProblem[] {
  const { name: nodeClass } = spec.template.spec.nodeClassRef
  return [
    ...nameProblem('metadata.name', metadata.name),
    ...nameProblem('spec.template.spec.nodeClassRef.name', nodeClass),
  ]
}

/** A mode that is misspelt must not mean that nodes are launched and removed. */
function modeProblems(pool: NodePool): readonly PoolProblem[] {
  const message = modeProblem(pool)
  const field = `metadata.annotations["${modeAnnotation}"]`
  return message === undefined
    ? []
    : [{ field, message, fix: `use "${observeMode}", or remove the annotation` }]
}

/** What is wrong with a name that becomes the value of a label. */
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
