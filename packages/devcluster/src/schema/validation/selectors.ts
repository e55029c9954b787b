import type { Loose } from '../columns/cells.ts'
import { labelErrors, labelValueErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'

/** Checks a label selector. */
export function checkLabelSelector(selector: Loose | undefined, path: string, found: Findings): void {
  if (selector === undefined) return
  found.errors.push(...labelErrors(selector['matchLabels'], `${path}.matchLabels`))
  for (const [index, requirement] of listOf(selector, 'matchExpressions').entries()) {
    const at = `${path}.matchExpressions[${index}]`
    const { key, operator, values } = requirement
    if (typeof key === 'string') {
      for (const words of qualifiedNameErrors(key)) found.invalid(`${at}.key`, key, words)
    }
    if (operator === 'In' || operator === 'NotIn') {
      if (!Array.isArray(values) || values.length === 0) {
        found.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'")
      }
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (Array.isArray(values) && values.length > 0) {
        found.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
      }
    } else if (operator !== undefined) {
      found.invalid(`${at}.operator`, operator, 'not a valid selector operator')
    }
    for (const value of Array.isArray(values) ? (values as unknown[]) : []) {
      if (typeof value !== 'string') continue
      for (const words of labelValueErrors(value)) found.invalid(`${at}.values`, value, words)
    }
  }
}

const operators: ReadonlySet<unknown> = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist'])

/** Whether a selector can be evaluated. */
export function isSelector(selector: Loose | undefined): boolean {
  if (labelErrors(selector?.['matchLabels'], '').length > 0) return false
  return listOf(selector, 'matchExpressions').every(({ key, operator, values }) => {
    if (!operators.has(operator) || typeof key !== 'string' || qualifiedNameErrors(key).length > 0)
      return false
    const count = Array.isArray(values) ? values.length : 0
    return operator === 'In' || operator === 'NotIn' ? count > 0 : count === 0
  })
}

/** Whether a selector is empty and so selects everything. */
export function isEmptySelector(selector: Loose | undefined): boolean {
  return (
    Object.keys(selector?.['matchLabels'] ?? {}).length === 0 &&
    listOf(selector, 'matchExpressions').length === 0
  )
}
