import type { StoredObject } from '../../contract.ts'
import { compileAdmission } from '../cel/admission.ts'
import type { Loose } from '../columns/cells.ts'
import { checkMatchResources, checkRules } from './admission-rules.ts'
import { dnsLabelErrors, nameErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf, textsOf } from './reporting.ts'
import { checkLabelSelector } from './selectors.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

/** Validates an expression, whose result must have one of these types. */
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
    if (typeof name === 'string' && name !== '') {
      for (const words of qualifiedNameErrors(name)) found.invalid(`${path}[${index}].name`, name, words)
    }
    checkExpression(expression, `${path}[${index}].expression`, ['bool'], found)
  }
}

const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge', 'Unauthorized']

/** What validating and mutating policies share: match constraints are required, and expressions must compile. */
function checkPolicySpec(spec: Loose, found: Findings): void {
  found.oneOf('spec.failurePolicy', spec['failurePolicy'], ['Fail', 'Ignore'])
  if (spec['matchConstraints'] === undefined) found.required('spec.matchConstraints')
  else if (listOf(spec['matchConstraints'], 'resourceRules').length === 0) {
    found.required('spec.matchConstraints.resourceRules')
  }
  checkMatchResources(spec['matchConstraints'], 'spec.matchConstraints', found)
  checkParameterKind(spec['paramKind'], found)
  checkConditions(spec, 'spec.matchConditions', found)
  const variables = listOf(spec, 'variables')
  for (const [index, { name, expression }] of variables.entries()) {
    const at = `spec.variables[${index}].name`
    if (!name) found.required(at, 'name is not specified')
    else if (!/^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name))
      found.invalid(at, name, 'name is not a valid CEL identifier')
    checkExpression(expression, `spec.variables[${index}].expression`, ['any'], found)
  }
}

/** What it changes is not checked, as it changes nothing here. */
export const checkMutatingPolicy: Check = (object, _old, found) => {
  const spec = object['spec'] as Loose | undefined
  if (spec === undefined) return found.required('spec')
  checkPolicySpec(spec, found)
  const mutations = listOf(spec, 'mutations')
  if (mutations.length === 0) found.required('spec.mutations', 'mutations must contain at least one item')
  for (const [index, { patchType }] of mutations.entries()) {
    const path = `spec.mutations[${index}].patchType`
    if (!patchType) found.required(path)
    else found.oneOf(path, patchType, ['ApplyConfiguration', 'JSONPatch'])
  }
  const reinvocation: unknown = spec['reinvocationPolicy']
  if (!reinvocation) found.required('spec.reinvocationPolicy')
  else found.oneOf('spec.reinvocationPolicy', reinvocation, ['IfNeeded', 'Never'])
}

export const checkValidatingPolicy: Check = (object, _old, found) => {
  const spec = object['spec'] as Loose | undefined
  if (spec === undefined) return found.required('spec')
  checkPolicySpec(spec, found)
  checkAnnotations(object, spec, found)
  const validations = listOf(spec, 'validations')
  if (validations.length === 0 && listOf(spec, 'auditAnnotations').length === 0) {
    const words = 'validations or auditAnnotations must contain at least one item'
    found.required('spec.validations', words)
    found.required('spec.auditAnnotations', words)
  }
  for (const [index, { expression, message, messageExpression, reason }] of validations.entries()) {
    const path = `spec.validations[${index}]`
    if (expression === undefined) found.required(`${path}.expression`, 'expression is not specified')
    if (typeof message === 'string') checkMessage(message, `${path}.message`, found)
    checkExpression(expression, `${path}.expression`, ['bool'], found)
    checkExpression(messageExpression, `${path}.messageExpression`, ['string'], found)
    found.oneOf(`${path}.reason`, reason, reasons)
  }
}

function checkMessage(message: string, path: string, found: Findings): void {
  if (message.trim() === '') found.invalid(path, message, 'message must be non-empty if specified')
  else if (message.trim().includes('\n')) found.invalid(path, message, 'message must not contain line breaks')
}

function checkParameterKind(kind: Loose | undefined, found: Findings): void {
  if (kind === undefined) return
  const apiVersion = String(kind['apiVersion'] ?? '')
  if (apiVersion === '') found.required('spec.paramKind.apiVersion')
  else if (apiVersion.split('/').length > 2) {
    found.invalid('spec.paramKind.apiVersion', apiVersion, `unexpected GroupVersion string: ${apiVersion}`)
  }
  if (!kind['kind']) found.required('spec.paramKind.kind')
}

function checkAnnotations(object: StoredObject, spec: Loose, found: Findings): void {
  for (const [index, { key, valueExpression }] of listOf(spec, 'auditAnnotations').entries()) {
    const path = `spec.auditAnnotations[${index}]`
    if (!object.metadata.name) found.invalid(`${path}.key`, key, 'requires metadata.name be non-empty')
    else
      for (const words of qualifiedNameErrors(`${object.metadata.name}/${key ?? ''}`)) {
        found.invalid(`${path}.key`, key, words)
      }
    if (!valueExpression) found.required(`${path}.valueExpression`, 'valueExpression is not specified')
    else checkExpression(valueExpression, `${path}.valueExpression`, ['string', 'null'], found)
  }
}

const actions = ['Audit', 'Deny', 'Warn']

export const checkMutatingBinding: Check = (object, _old, found) => {
  const spec = object['spec'] as Loose | undefined
  const name: unknown = spec?.['policyName']
  if (typeof name !== 'string' || name === '') found.required('spec.policyName')
  else for (const words of nameErrors(name, 'subdomain')) found.invalid('spec.policyName', name, words)
  checkMatchResources(spec?.['matchResources'], 'spec.matchResources', found)
}

/** A binding needs a policy and actions. */
export const checkPolicyBinding: Check = (object, old, found) => {
  checkMutatingBinding(object, old, found)
  const spec = object['spec'] as Loose | undefined
  const given: unknown = spec?.['validationActions']
  if (!Array.isArray(given) || given.length === 0) return found.required('spec.validationActions')
  for (const [index, action] of given.entries()) {
    found.oneOf(`spec.validationActions[${index}]`, action, actions)
    if (given.indexOf(action) < index) found.duplicate(`spec.validationActions[${index}]`, action)
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
    found.forbidden('spec.paramRef.selector', 'name and selector are mutually exclusive')
  }
  if (parameterNotFoundAction === undefined) found.required('spec.paramRef.parameterNotFoundAction')
  found.oneOf('spec.paramRef.parameterNotFoundAction', parameterNotFoundAction, ['Allow', 'Deny'])
}

/** Validates webhooks: rules, client configuration and match conditions. */
export const checkWebhooks: Check = (object, _old, found) => {
  const webhooks = listOf(object, 'webhooks')
  for (const [index, webhook] of webhooks.entries()) {
    const path = `webhooks[${index}]`
    const { name } = webhook
    if (name && webhooks.findIndex((each) => each['name'] === name) < index)
      found.duplicate(`${path}.name`, name)
    checkWebhookName(name, `${path}.name`, found)
    checkReviewVersions(webhook, `${path}.admissionReviewVersions`, found)
    checkRules(listOf(webhook, 'rules'), `${path}.rules`, found)
    found.oneOf(`${path}.failurePolicy`, webhook['failurePolicy'], ['Fail', 'Ignore'])
    found.oneOf(`${path}.matchPolicy`, webhook['matchPolicy'], ['Equivalent', 'Exact'])
    found.oneOf(`${path}.reinvocationPolicy`, webhook['reinvocationPolicy'], ['IfNeeded', 'Never'])
    if (webhook['sideEffects'] === undefined) {
      found.required(`${path}.sideEffects`, 'must specify one of None, NoneOnDryRun')
    } else found.oneOf(`${path}.sideEffects`, webhook['sideEffects'], ['None', 'NoneOnDryRun'])
    const seconds: unknown = webhook['timeoutSeconds']
    if (typeof seconds === 'number' && (seconds < 1 || seconds > 30)) {
      found.invalid(`${path}.timeoutSeconds`, seconds, 'the timeout value must be between 1 and 30 seconds')
    }
    checkLabelSelector(webhook['namespaceSelector'], `${path}.namespaceSelector`, found)
    checkLabelSelector(webhook['objectSelector'], `${path}.objectSelector`, found)
    checkConditions(webhook, `${path}.matchConditions`, found)
    checkClient(webhook['clientConfig'] ?? {}, `${path}.clientConfig`, found)
  }
}

function checkWebhookName(name: unknown, path: string, found: Findings): void {
  if (typeof name !== 'string' || name === '') return found.required(path)
  for (const words of nameErrors(name, 'subdomain')) found.invalid(path, name, words)
  if (name.split('.').length < 3) {
    found.invalid(path, name, 'should be a domain with at least three segments separated by dots')
  }
}

function checkReviewVersions(webhook: Loose, path: string, found: Findings): void {
  const versions = textsOf(webhook, 'admissionReviewVersions')
  if (versions.length === 0) {
    return found.required(path, 'must specify one of v1, v1beta1')
  }
  for (const [index, version] of versions.entries()) {
    for (const words of dnsLabelErrors(version)) found.invalid(`${path}[${index}]`, version, words)
    if (versions.indexOf(version) < index) found.invalid(`${path}[${index}]`, version, 'duplicate version')
  }
  if (!versions.some((version) => version === 'v1' || version === 'v1beta1')) {
    found.invalid(path, versions, 'must include at least one of v1, v1beta1')
  }
}

function checkClient({ url, service }: Loose, path: string, found: Findings): void {
  if ((url === undefined) === (service === undefined)) {
    return found.required(path, 'exactly one of url or service is required')
  }
  if (url !== undefined) return checkUrl(url, `${path}.url`, found)
  const at = `${path}.service`
  // kube-apiserver names the other one of the two.
  if (!service.name) found.required(`${at}.namespace`, 'service namespace is required')
  if (!service.namespace) found.required(`${at}.name`, 'service name is required')
  if (typeof service.port === 'number' && (service.port < 1 || service.port > 65_535)) {
    found.invalid(`${at}.port`, service.port, 'port is not valid: must be between 1 and 65535, inclusive')
  }
  const route: unknown = service.path
  if (typeof route === 'string' && !route.startsWith('/')) {
    found.invalid(`${at}.path`, route, "must start with a '/'")
  }
}

function checkUrl(url: unknown, path: string, found: Findings): void {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined) return found.required(path, 'url must be a valid URL')
  if (parsed.protocol !== 'https:')
    found.invalid(path, parsed.protocol, "'https' is the only allowed URL scheme")
  if (parsed.hostname === '') found.invalid(path, '', 'host must be specified')
  if (parsed.username !== '' || parsed.password !== '') {
    found.invalid(path, parsed.username, 'user information is not permitted in the URL')
  }
  if (parsed.hash !== '') found.invalid(path, parsed.hash, 'fragments are not permitted in the URL')
  if (parsed.search !== '')
    found.invalid(path, parsed.search, 'query parameters are not permitted in the URL')
}
