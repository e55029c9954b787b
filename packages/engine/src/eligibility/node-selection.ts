/** The node selector and node affinity of a pod: whether they are valid (scheduling.md 2.1, check 2), and their zone. */
import {
  capacityTypes,
  labels,
  type NodeSelectorRequirement,
  ownValue,
  type Pod,
  type PodSpec,
  type Requirement,
} from '@tenon/api'
import { canonicalKey, type EligibilityPolicy, isRestricted } from './lookups.ts'
import type { SelectionProblem } from './problems.ts'
import { intersection, oneOf, valueSet, type ValueSet } from '../requirements/requirement.ts'
import { requiredAlternatives, requirementsOf } from '../requirements/requirements.ts'
import type { PodVolumes } from '../input/input.ts'

const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const prefixPart = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const requiredTerms =
  'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
const maxInt64 = 9_223_372_036_854_775_807n
const boundOperators: ReadonlySet<string> = new Set(['Gt', 'Lt', 'Gte', 'Lte'])
/** Keys of which all values are known. */
const closedValues: ReadonlyMap<string, readonly string[]> = new Map([
  [labels.capacityType, Object.values(capacityTypes)],
])

/** Problems of the node selector and of every required node affinity term. */
export function selectionProblems(spec: PodSpec, policy: EligibilityPolicy): readonly SelectionProblem[] {
  const problems: SelectionProblem[] = []
  const { nodeSelector } = spec
  for (const key in nodeSelector) {
    const expression = { key, operator: 'In', values: [ownValue(nodeSelector, key) as string] } as const
    check(expression, () => `spec.nodeSelector["${key}"]`, policy, problems)
  }
  const terms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  for (const [t, term] of terms.entries()) {
    for (const [f, field] of (term.matchFields ?? []).entries())
      if (!namesNodes(field))
        problems.push({ kind: 'matchFields', field: `${requiredTerms}[${t}].matchFields[${f}]` })
    for (const [e, expression] of (term.matchExpressions ?? []).entries())
      if (!isAboutHosts(expression, policy))
        check(expression, () => `${requiredTerms}[${t}].matchExpressions[${e}]`, policy, problems)
  }
  return problems
}

/** `matchFields` supports node names only; they are treated like host names. */
function namesNodes({ key, operator, values = [] }: NodeSelectorRequirement): boolean {
  return key === 'metadata.name' && (operator === 'In' || operator === 'NotIn') && values.length > 0
}

/**
 * Host names in node affinity do not make a pod ineligible: `NotIn` does not exclude a new node, and another
 * term may match one (reports.md 2).
 */
function isAboutHosts({ key }: Requirement, policy: EligibilityPolicy): boolean {
  return canonicalKey(key, policy) === labels.hostname
}

/** Problems of a requirement that is not part of a pod. */
export function requirementProblems(
  requirement: Requirement,
  field: string,
  policy: EligibilityPolicy,
): readonly SelectionProblem[] {
  const problems: SelectionProblem[] = []
  check(requirement, () => field, policy, problems)
  return problems
}

/** `fieldOf` builds the path of a field; it is only called for a problem, as most pods have none. */
function check(
  expression: Requirement,
  fieldOf: () => string,
  policy: EligibilityPolicy,
  problems: SelectionProblem[],
): void {
  const key = canonicalKey(expression.key, policy)
  const values = expression.values ?? []
  if (!policy.wellKnownLabels.has(key)) {
    if (!isQualifiedName(key)) problems.push({ kind: 'invalidKey', field: fieldOf(), key })
    else if (isRestricted(key, policy)) problems.push({ kind: 'restrictedLabel', field: fieldOf(), key })
  }
  for (const value of values)
    if (!isLabelValue(value)) problems.push({ kind: 'invalidValue', field: fieldOf(), key, value })
  const { operator } = expression
  if (boundOperators.has(operator) && !isBound(values))
    problems.push({ kind: 'notAnInteger', field: fieldOf(), key, operator })
  if (operator !== 'In') return
  const known = closedValues.get(key)
  if (values.length === 0) problems.push({ kind: 'noValues', field: fieldOf(), key })
  else if (known !== undefined && !values.some((value) => known.includes(value)))
    problems.push({ kind: 'unknownValues', field: fieldOf(), key, values, known })
}

function isBound(values: readonly string[]): boolean {
  const [value = ''] = values
  return values.length === 1 && /^\+?\d+$/.test(value) && BigInt(value) <= maxInt64
}

/** Whether `key` is a qualified name, `[prefix/]name`, as Kubernetes requires for labels. */
export function isQualifiedName(key: string): boolean {
  const slash = key.indexOf('/')
  const name = key.slice(slash + 1)
  if (name.length > 63 || !namePart.test(name)) return false
  if (slash < 0) return true
  const prefix = key.slice(0, slash)
  return prefix.length <= 253 && prefixPart.test(prefix)
}

function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= 63 && namePart.test(value))
}

/**
 * The only zone that a valid pod can use, reported before anything is placed (scheduling.md 12.4); `flexible` for several
 * or any zone, `none` if there is none.
 * @param topologyZones zones that the pod's topology rules allow; undefined for all.
 */
export function effectiveZone(
  pod: Pod,
  volumes: PodVolumes | undefined,
  topologyZones?: ReadonlySet<string>,
): string {
  const terms = requiredAlternatives(pod.spec).map((term) => term.get(labels.zone))
  const affinity = terms.length === 1 ? terms[0] : union(terms)
  const storage = union(
    (volumes?.alternatives ?? []).map((term) =>
      requirementsOf(term.map((expression) => valueSet(expression))).get(labels.zone),
    ),
  )
  const topology = topologyZones === undefined ? undefined : oneOf(labels.zone, ...topologyZones)
  const bounds = [affinity, storage, topology].filter((set) => set !== undefined)
  const [first, ...others] = bounds
  if (first === undefined) return 'flexible'
  const zones = others.reduce(intersection, first)
  if (zones.complement || zones.values.size > 1) return 'flexible'
  const [only] = zones.values
  return only ?? 'none'
}

/** Zones of any of the alternatives; undefined (= all) when one alternative does not list its zones. */
function union(alternatives: readonly (ValueSet | undefined)[]): ValueSet | undefined {
  const listed = alternatives.filter((set) => set !== undefined && !set.complement)
  if (listed.length < alternatives.length || listed.length === 0) return undefined
  return oneOf(labels.zone, ...listed.flatMap((set) => [...(set?.values ?? [])]))
}
