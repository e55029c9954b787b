import { ownValue } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { labelErrors, labelValueErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'
import { checkLabelSelector } from './selectors.ts'

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** Checks the tolerations of a pod. */
export function checkTolerations(tolerations: readonly Loose[], path: string, found: Findings): void {
  for (const [index, toleration] of tolerations.entries()) {
    const at = `${path}[${index}]`
    const { key, operator, value, effect, tolerationSeconds } = toleration
    const named = typeof key === 'string' && key !== ''
    if (named) for (const words of qualifiedNameErrors(key)) found.invalid(`${at}.key`, key, words)
    else if (operator !== 'Exists') {
      found.invalid(
        `${at}.operator`,
        operator ?? '',
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      )
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      found.invalid(
        `${at}.effect`,
        effect ?? '',
        "effect must be 'NoExecute' when `tolerationSeconds` is set",
      )
    }
    if (operator === 'Exists' && value !== undefined && value !== '') {
      found.invalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'")
    } else if (
      (operator === undefined || operator === 'Equal' || operator === '') &&
      typeof value === 'string'
    ) {
      for (const words of labelValueErrors(value)) found.invalid(`${at}.operator`, value, words)
    }
    // Kubernetes has Gt and Lt too, where a feature gate enables them that is off by default.
    if (operator !== '') found.oneOf(`${at}.operator`, operator, ['Equal', 'Exists'])
    if (effect !== '') found.oneOf(`${at}.effect`, effect, effects)
  }
}

/** Checks the taints of a node. */
export function checkTaints(taints: readonly Loose[], path: string, found: Findings): void {
  const seen = new Set<string>()
  for (const [index, { key, value, effect }] of taints.entries()) {
    const at = `${path}[${index}]`
    if (typeof key === 'string' && key !== '') {
      for (const words of qualifiedNameErrors(key)) found.invalid(`${at}.key`, key, words)
    }
    if (typeof value === 'string') {
      for (const words of labelValueErrors(value)) found.invalid(`${at}.value`, value, words)
    }
    found.oneOf(`${at}.effect`, effect, effects)
    const identity = `${key}:${effect}`
    if (seen.has(identity)) found.duplicate(at, { key, ...(value === undefined ? {} : { value }), effect })
    seen.add(identity)
  }
}

function checkNodeRequirement(requirement: Loose, at: string, found: Findings): void {
  const { key, operator, values } = requirement
  const count = Array.isArray(values) ? values.length : 0
  if (operator === 'In' || operator === 'NotIn') {
    if (count === 0) found.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'")
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (count > 0)
      found.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
  } else if (operator === 'Gt' || operator === 'Lt') {
    if (count !== 1)
      found.required(`${at}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")
  } else if (operator !== undefined) {
    found.invalid(`${at}.operator`, operator, 'not a valid selector operator')
  }
  if (typeof key === 'string')
    for (const words of qualifiedNameErrors(key)) found.invalid(`${at}.key`, key, words)
}

/** Checks a term of a node selector. */
function checkNodeTerm(term: Loose, path: string, found: Findings): void {
  for (const [index, requirement] of listOf(term, 'matchExpressions').entries()) {
    checkNodeRequirement(requirement, `${path}.matchExpressions[${index}]`, found)
  }
  for (const [index, { key, operator, values }] of listOf(term, 'matchFields').entries()) {
    const at = `${path}.matchFields[${index}]`
    if (key !== 'metadata.name') found.invalid(`${at}.key`, key, 'not a valid field selector key')
    if (operator !== 'In' && operator !== 'NotIn')
      found.invalid(`${at}.operator`, operator, 'not a valid selector operator')
    else if (!Array.isArray(values) || values.length !== 1) {
      found.required(
        `${at}.values`,
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
      )
    }
  }
}

/** Values that no label can have are refused in what is required; a preference may name them. */
function checkNodeValues(term: Loose, path: string, found: Findings): void {
  for (const [index, requirement] of listOf(term, 'matchExpressions').entries()) {
    const values: unknown = requirement['values']
    for (const [at, value] of (Array.isArray(values) ? values : []).entries()) {
      if (typeof value !== 'string') continue
      const field = `${path}.matchExpressions[${index}].values[${at}]`
      for (const words of labelValueErrors(value)) found.invalid(field, value, words)
    }
  }
}

const weightRange = 'must be in the range 1-100'

function checkWeight(weight: unknown, path: string, found: Findings): void {
  if (typeof weight === 'number' && (weight < 1 || weight > 100)) found.invalid(path, weight, weightRange)
}

const required = 'requiredDuringSchedulingIgnoredDuringExecution'
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution'

/** Checks node and pod (anti-)affinity. */
export function checkAffinity(affinity: Loose | undefined, path: string, found: Findings): void {
  if (affinity === undefined) return
  const node: Loose | undefined = affinity['nodeAffinity']
  if (node !== undefined) checkNodeAffinity(node, `${path}.nodeAffinity`, found)
  for (const field of ['podAffinity', 'podAntiAffinity']) {
    const terms: Loose | undefined = ownValue(affinity, field)
    for (const [index, term] of listOf(terms, required).entries()) {
      checkPodTerm(term, `${path}.${field}.${required}[${index}]`, found)
    }
    for (const [index, { weight, podAffinityTerm }] of listOf(terms, preferred).entries()) {
      const at = `${path}.${field}.${preferred}[${index}]`
      checkWeight(weight, `${at}.weight`, found)
      if (podAffinityTerm !== undefined) checkPodTerm(podAffinityTerm, `${at}.podAffinityTerm`, found)
    }
  }
}

function checkNodeAffinity(affinity: Loose, path: string, found: Findings): void {
  const selector: Loose | undefined = affinity[required]
  const terms = listOf(selector, 'nodeSelectorTerms')
  if (selector !== undefined && terms.length === 0) {
    found.required(`${path}.${required}.nodeSelectorTerms`, 'must have at least one node selector term')
  }
  for (const [index, term] of terms.entries()) {
    const at = `${path}.${required}.nodeSelectorTerms[${index}]`
    checkNodeTerm(term, at, found)
    checkNodeValues(term, at, found)
  }
  for (const [index, { weight, preference }] of listOf(affinity, preferred).entries()) {
    const at = `${path}.${preferred}[${index}]`
    checkWeight(weight, `${at}.weight`, found)
    if (preference !== undefined) checkNodeTerm(preference, `${at}.preference`, found)
  }
}

function checkPodTerm(term: Loose, path: string, found: Findings): void {
  checkLabelSelector(term['labelSelector'], `${path}.labelSelector`, found)
  checkLabelSelector(term['namespaceSelector'], `${path}.namespaceSelector`, found)
  const key: unknown = term['topologyKey']
  if (typeof key === 'string' && key !== '') {
    for (const words of qualifiedNameErrors(key)) found.invalid(`${path}.topologyKey`, key, words)
  }
}

/** Checks topology spread constraints. */
export function checkTopologySpread(constraints: readonly Loose[], path: string, found: Findings): void {
  const seen = new Set<string>()
  for (const [index, constraint] of constraints.entries()) {
    const at = `${path}[${index}]`
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, labelSelector } = constraint
    if (typeof maxSkew === 'number' && maxSkew <= 0)
      found.invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero')
    found.oneOf(`${at}.whenUnsatisfiable`, whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway'])
    found.oneOf(`${at}.nodeAffinityPolicy`, constraint['nodeAffinityPolicy'], ['Honor', 'Ignore'])
    found.oneOf(`${at}.nodeTaintsPolicy`, constraint['nodeTaintsPolicy'], ['Honor', 'Ignore'])
    if (typeof minDomains === 'number') {
      if (minDomains <= 0) found.invalid(`${at}.minDomains`, minDomains, 'must be greater than zero')
      if (whenUnsatisfiable === 'ScheduleAnyway') {
        found.invalid(
          `${at}.minDomains`,
          minDomains,
          'can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway',
        )
      }
    }
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`
    if (seen.has(pair)) found.duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair)
    seen.add(pair)
    checkLabelSelector(labelSelector, `${at}.labelSelector`, found)
  }
}

/** Checks a plain node selector. */
export function checkNodeSelector(selector: unknown, path: string, found: Findings): void {
  found.errors.push(...labelErrors(selector, path))
}
