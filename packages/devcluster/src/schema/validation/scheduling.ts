import { ownValue } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { dnsLabelErrors, labelErrors, labelValueErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf, textsOf } from './reporting.ts'
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
    // Kubernetes also has Gt and Lt, behind a feature gate that is off by default.
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

/** Invalid label values are refused in required terms; preferences may contain them. */
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

/** Checks the terms of which a node must match one. */
export function checkNodeTerms(selector: Loose, path: string, found: Findings): void {
  const terms = listOf(selector, 'nodeSelectorTerms')
  if (terms.length === 0) {
    found.required(`${path}.nodeSelectorTerms`, 'must have at least one node selector term')
  }
  for (const [index, term] of terms.entries()) {
    const at = `${path}.nodeSelectorTerms[${index}]`
    checkNodeTerm(term, at, found)
    checkNodeValues(term, at, found)
  }
}

function checkNodeAffinity(affinity: Loose, path: string, found: Findings): void {
  const selector: Loose | undefined = affinity[required]
  if (selector !== undefined) checkNodeTerms(selector, `${path}.${required}`, found)
  for (const [index, { weight, preference }] of listOf(affinity, preferred).entries()) {
    const at = `${path}.${preferred}[${index}]`
    checkWeight(weight, `${at}.weight`, found)
    if (preference !== undefined) checkNodeTerm(preference, `${at}.preference`, found)
  }
}

/** A key that a selector already names twice must not be in matchLabelKeys, which adds it once more. */
function checkTwiceSelected(term: Loose, path: string, found: Findings): void {
  const selector: Loose | undefined = term['labelSelector']
  const seen = new Set<unknown>(Object.keys(selector?.['matchLabels'] ?? {}))
  for (const { key } of listOf(selector, 'matchExpressions')) {
    const index = textsOf(term, 'matchLabelKeys').indexOf(String(key))
    if (index >= 0 && seen.has(key)) {
      found.invalid(`${path}[${index}]`, key, 'exists in both matchLabelKeys and labelSelector')
    }
    seen.add(key)
  }
}

function checkLabelKeys(
  keys: readonly string[],
  selector: Loose | undefined,
  path: string,
  found: Findings,
): void {
  if (keys.length > 0 && selector === undefined) {
    found.forbidden(path, 'must not be specified when labelSelector is not set')
  }
  if (selector === undefined) return
  for (const [index, key] of keys.entries()) {
    for (const words of qualifiedNameErrors(key)) found.invalid(`${path}[${index}]`, key, words)
  }
}

function checkPodTerm(term: Loose, path: string, found: Findings): void {
  checkLabelSelector(term['labelSelector'], `${path}.labelSelector`, found)
  checkLabelSelector(term['namespaceSelector'], `${path}.namespaceSelector`, found)
  for (const field of ['matchLabelKeys', 'mismatchLabelKeys'] as const) {
    checkLabelKeys(textsOf(term, field), term['labelSelector'], `${path}.${field}`, found)
  }
  checkTwiceSelected(term, path, found)
  for (const [index, name] of textsOf(term, 'matchLabelKeys').entries()) {
    if (textsOf(term, 'mismatchLabelKeys').includes(name)) {
      const words = 'exists in both matchLabelKeys and mismatchLabelKeys'
      found.invalid(`${path}.matchLabelKeys[${index}]`, name, words)
    }
  }
  for (const name of textsOf(term, 'namespaces')) {
    for (const words of dnsLabelErrors(name)) found.invalid(`${path}.namespace`, name, words)
  }
  const key: unknown = term['topologyKey']
  if (typeof key === 'string') {
    for (const words of qualifiedNameErrors(key)) found.invalid(`${path}.topologyKey`, key, words)
  }
}

/** Checks topology spread constraints. */
export function checkTopologySpread(constraints: readonly Loose[], path: string, found: Findings): void {
  for (const [index, constraint] of constraints.entries()) {
    const at = `${path}[${index}]`
    const { maxSkew, whenUnsatisfiable, minDomains, labelSelector } = constraint
    if (typeof maxSkew === 'number' && maxSkew <= 0)
      found.invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero')
    found.oneOf(`${at}.whenUnsatisfiable`, whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway'])
    found.oneOf(`${at}.nodeAffinityPolicy`, constraint['nodeAffinityPolicy'], ['Honor', 'Ignore'])
    found.oneOf(`${at}.nodeTaintsPolicy`, constraint['nodeTaintsPolicy'], ['Honor', 'Ignore'])
    if (typeof minDomains === 'number') {
      if (minDomains <= 0) found.invalid(`${at}.minDomains`, minDomains, 'must be greater than zero')
      if (whenUnsatisfiable !== 'DoNotSchedule') {
        found.invalid(
          `${at}.minDomains`,
          minDomains,
          'can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway',
        )
      }
    }
    const pairOf = (each: Loose) => `{${each['topologyKey']}, ${each['whenUnsatisfiable']}}`
    // The earlier of two duplicates is reported.
    if (constraints.slice(index + 1).some((later) => pairOf(later) === pairOf(constraint))) {
      found.duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pairOf(constraint))
    }
    checkLabelKeys(textsOf(constraint, 'matchLabelKeys'), labelSelector, `${at}.matchLabelKeys`, found)
    checkTwiceSelected(constraint, at, found)
    checkLabelSelector(labelSelector, `${at}.labelSelector`, found)
  }
}

/** Checks a plain node selector. */
export function checkNodeSelector(selector: unknown, path: string, found: Findings): void {
  found.errors.push(...labelErrors(selector, path))
}
