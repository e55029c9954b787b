/** Checks of a NodePool that its CRD cannot make (api.md 3.6). */
import {
  labels,
  type NodePool,
  normalizedLabel,
  type Requirement,
  type Taint,
  wellKnownLabels,
} from '@tenon/api'

const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const prefixPart = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const restrictedDomain = 'karpenter.sh'
const closedValues: Readonly<Record<string, readonly string[]>> = {
  [labels.capacityType]: ['on-demand', 'spot', 'reserved'],
}
const boundOperators: ReadonlySet<string> = new Set(['Gt', 'Lt', 'Gte', 'Lte'])

/** Every problem of the pool, each naming its field; none when the pool can be used. */
export function validatePool(pool: NodePool, providerLabels: readonly string[]): readonly string[] {
  const known = new Set([...wellKnownLabels, ...providerLabels])
  const { metadata, spec } = pool.spec.template
  return [
    ...Object.entries(metadata?.labels ?? {}).flatMap(([key, value]) => labelProblems(key, value, known)),
    ...taintProblems(spec.taints, spec.startupTaints),
    ...spec.requirements.flatMap((requirement, i) => requirementProblems(requirement, i, known)),
  ]
}

function labelProblems(key: string, value: string, known: ReadonlySet<string>): readonly string[] {
  const at = `spec.template.metadata.labels["${key}"]`
  if (key === labels.nodePool) return [`${at}: the label is set by the controller; remove it`]
  const problem = qualifiedNameProblem(key) ?? valueProblem(value) ?? restrictionProblem(key, known)
  return problem === undefined ? [] : [`${at}: ${problem}`]
}

function taintProblems(
  taints: readonly Taint[] = [],
  startupTaints: readonly Taint[] = [],
): readonly string[] {
  const seen = new Set<string>()
  const check = (field: string, taint: Taint, i: number): readonly string[] => {
    const at = `spec.template.spec.${field}[${i}]`
    const problems: string[] = []
    const key = qualifiedNameProblem(taint.key)
    if (key !== undefined) problems.push(`${at}.key: ${key}`)
    const value =
      taint.value === undefined || taint.value === '' ? undefined : qualifiedNameProblem(taint.value)
    if (value !== undefined) problems.push(`${at}.value: ${value}`)
    const identity = `${taint.key}:${taint.effect}`
    if (seen.has(identity))
      problems.push(`${at}: taint ${identity} appears twice among taints and startupTaints`)
    seen.add(identity)
    return problems
  }
  return [
    ...taints.flatMap((taint, i) => check('taints', taint, i)),
    ...startupTaints.flatMap((taint, i) => check('startupTaints', taint, i)),
  ]
}

function requirementProblems(
  requirement: Requirement,
  i: number,
  known: ReadonlySet<string>,
): readonly string[] {
  const at = `spec.template.spec.requirements[${i}]`
  const key = normalizedLabel(requirement.key)
  const values = requirement.values ?? []
  if (key === labels.nodePool) return [`${at}.key: ${key} cannot be required; a pool always has its own name`]
  const problems: (string | undefined)[] = [
    qualifiedNameProblem(key),
    restrictionProblem(key, known),
    ...values.map(valueProblem),
    operatorProblem(requirement),
    closedSetProblem(key, requirement),
  ]
  return problems.filter((problem) => problem !== undefined).map((problem) => `${at} (${key}): ${problem}`)
}

function operatorProblem({ operator, values = [], minValues }: Requirement): string | undefined {
  if (operator === 'In' && values.length === 0) return 'operator In needs at least one value'
  if (operator === 'In' && minValues !== undefined && values.length < minValues) {
    return `minValues ${minValues} needs at least that many values`
  }
  if (boundOperators.has(operator) && (values.length !== 1 || !/^\d+$/.test(values[0] ?? ''))) {
    return `operator ${operator} needs a single integer of 0 or more`
  }
  return undefined
}

function closedSetProblem(
  key: string,
  { operator, values = [], minValues }: Requirement,
): string | undefined {
  const allowed = closedValues[key]
  if (allowed === undefined || operator !== 'In') return undefined
  const usable = values.filter((value) => allowed.includes(value)).length
  if (usable >= Math.max(1, minValues ?? 1)) return undefined
  return `none of its values can be used; known values are ${allowed.join(', ')}`
}

function qualifiedNameProblem(key: string): string | undefined {
  const slash = key.indexOf('/')
  const [prefix, name] = slash < 0 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)]
  if (prefix !== undefined && (prefix.length > 253 || !prefixPart.test(prefix))) {
    return `"${prefix}" is not a DNS subdomain of at most 253 characters`
  }
  if (name.length > 63 || !namePart.test(name)) {
    return `"${name}" must be 1 to 63 characters, letters, digits, "-", "_" and ".", alphanumeric at both ends`
  }
  return undefined
}

function valueProblem(value: string): string | undefined {
  if (value === '' || (value.length <= 63 && namePart.test(value))) return undefined
  return `value "${value}" must be at most 63 characters, letters, digits, "-", "_" and ".", alphanumeric at both ends`
}

function restrictionProblem(key: string, known: ReadonlySet<string>): string | undefined {
  if (known.has(key)) return undefined
  const slash = key.indexOf('/')
  const domain = slash < 0 ? '' : key.slice(0, slash)
  if (domain === restrictedDomain || domain.endsWith(`.${restrictedDomain}`)) {
    return `labels of domain ${restrictedDomain} are reserved`
  }
  return key === labels.hostname ? `label ${key} differs for every node and cannot be set` : undefined
}
