import type { StoredObject } from '../../contract.ts'
import { compileAdmission } from '../cel/admission.ts'
import type { Loose } from '../columns/cells.ts'
import { type Findings, listOf } from './reporting.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

/** Checks an expression that must come to a value of one of these types. */
function checkExpression(expression: unknown, path: string, types: readonly string[], found: Findings): void {
  if (typeof expression !== 'string') return
  if (expression.trim() === '') return found.required(path, 'expression is not specified')
  const compiled = compileAdmission(expression)
  if (compiled.error !== undefined) {
    found.invalid(path, expression, `compilation failed: ERROR: ${compiled.error}`)
  } else if (!types.includes('any') && compiled.type !== 'dyn' && !types.includes(compiled.type)) {
    found.invalid(path, expression, `must evaluate to ${types[0]}`)
  }
}

function checkConditions(owner: Loose | undefined, path: string, found: Findings): void {
  const names = new Set<unknown>()
  for (const [index, { name, expression }] of listOf(owner, 'matchConditions').entries()) {
    if (names.has(name)) found.duplicate(`${path}[${index}].name`, name)
    names.add(name)
    checkExpression(expression, `${path}[${index}].expression`, ['bool'], found)
  }
}

const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge', 'Unauthorized']

/** A policy must say what it looks at, and its expressions must compile. */
export const checkValidatingPolicy: Check = (object, _old, found) => {
  const spec = object['spec'] as Loose | undefined
  if (spec === undefined) return found.required('spec')
  found.oneOf('spec.failurePolicy', spec['failurePolicy'], ['Fail', 'Ignore'])
  if (spec['matchConstraints'] === undefined) found.required('spec.matchConstraints')
  else if (listOf(spec['matchConstraints'], 'resourceRules').length === 0) {
    found.required('spec.matchConstraints.resourceRules')
  }
  checkConditions(spec, 'spec.matchConditions', found)
  for (const [index, { expression }] of listOf(spec, 'variables').entries()) {
    checkExpression(expression, `spec.variables[${index}].expression`, ['any'], found)
  }
  const validations = listOf(spec, 'validations')
  if (validations.length === 0 && listOf(spec, 'auditAnnotations').length === 0) {
    found.required(
      'spec.validations',
      'validations or auditAnnotations must be non-empty for Validating admission policy',
    )
  }
  for (const [index, { expression, messageExpression, reason }] of validations.entries()) {
    const path = `spec.validations[${index}]`
    checkExpression(expression, `${path}.expression`, ['bool'], found)
    checkExpression(messageExpression, `${path}.messageExpression`, ['string'], found)
    found.oneOf(`${path}.reason`, reason, reasons)
  }
}

const actions = ['Audit', 'Deny', 'Warn']

/** A binding must name a policy and say what happens. */
export const checkPolicyBinding: Check = (object, _old, found) => {
  const spec = object['spec'] as Loose | undefined
  if (!spec?.['policyName']) found.required('spec.policyName')
  const given: unknown = spec?.['validationActions']
  if (!Array.isArray(given) || given.length === 0) return found.required('spec.validationActions')
  for (const [index, action] of given.entries()) {
    found.oneOf(`spec.validationActions[${index}]`, action, actions)
  }
  if (given.includes('Deny') && given.includes('Warn')) {
    found.invalid(
      'spec.validationActions',
      given,
      'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
    )
  }
  checkParameters(spec?.['paramRef'], found)
}

function checkParameters(reference: Loose | undefined, found: Findings): void {
  if (reference === undefined) return
  const { name, selector, parameterNotFoundAction } = reference
  if (!name && selector === undefined)
    found.required('spec.paramRef', 'one of name or selector must be specified')
  if (name && selector !== undefined) {
    found.forbidden('spec.paramRef.name', 'name and selector are mutually exclusive')
  }
  if (parameterNotFoundAction === undefined) found.required('spec.paramRef.parameterNotFoundAction')
  found.oneOf('spec.paramRef.parameterNotFoundAction', parameterNotFoundAction, ['Allow', 'Deny'])
}

/** Conditions of webhooks must compile. */
export const checkWebhooks: Check = (object, _old, found) => {
  for (const [index, webhook] of listOf(object, 'webhooks').entries()) {
    checkConditions(webhook, `webhooks[${index}].matchConditions`, found)
    const { url, service } = (webhook['clientConfig'] ?? {}) as Loose
    if ((url === undefined) === (service === undefined)) {
      found.required(`webhooks[${index}].clientConfig`, 'exactly one of url or service is required')
    }
  }
}
