import { type LabelSelector, matchesSelector } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import { keyOf, namespacePrefix } from '../../storage/index.ts'
import type { ServerContext } from '../context.ts'
import { failure, forbidden } from '../http/status.ts'
import type { Attributes } from './attributes.ts'
import { evaluate, evaluateConditions, type NamedCondition, type Scope, scopeOf } from './expressions.ts'
import { matches, type MatchResources } from './matching.ts'

interface Validation {
  readonly expression: string
  readonly message?: string
  readonly messageExpression?: string
  readonly reason?: string
}

interface PolicySpec {
  readonly failurePolicy?: string
  readonly paramKind?: { readonly apiVersion: string; readonly kind: string }
  readonly matchConstraints?: MatchResources
  readonly matchConditions?: readonly NamedCondition[]
  readonly variables?: readonly NamedCondition[]
  readonly validations?: readonly Validation[]
}

interface BindingSpec {
  readonly policyName?: string
  readonly validationActions?: readonly string[]
  readonly matchResources?: MatchResources
  readonly paramRef?: {
    readonly name?: string
    readonly namespace?: string
    readonly selector?: LabelSelector
    readonly parameterNotFoundAction?: string
  }
}

/** A policy with its binding. */
interface Bound {
  readonly policy: string
  readonly spec: PolicySpec
  readonly binding: string
  readonly bindingSpec: BindingSpec
}

/** A failed validation. */
interface Violation {
  readonly message: string
  readonly reason: string
}

const group = 'admissionregistration.k8s.io'
const exempt: ReadonlySet<string> = new Set([
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'MutatingWebhookConfiguration',
  'ValidatingWebhookConfiguration',
])

/** Admission configuration is exempt, so that mistakes in it can be undone. */
export function isExempt({ served }: Attributes): boolean {
  return served.definition.group === group && exempt.has(served.definition.kind)
}

/**
 * Checks a write with all bound ValidatingAdmissionPolicies.
 * @param warnings collects those of bindings with action Warn.
 * @throws ApiError like the real server.
 */
export function validateByPolicies(ctx: ServerContext, attributes: Attributes, warnings: string[]): void {
  if (isExempt(attributes)) return
  const bindings = ctx.store.collection(`validatingadmissionpolicybindings.${group}`)
  bindings.scan({}, (object) => {
    const bound = boundPolicy(ctx, object)
    if (bound !== undefined) enforce(ctx, attributes, bound, warnings)
    return true
  })
}

function boundPolicy(ctx: ServerContext, binding: StoredObject): Bound | undefined {
  const bindingSpec = (binding['spec'] ?? {}) as BindingSpec
  const policies = ctx.store.collection(`validatingadmissionpolicies.${group}`)
  const policy = policies.get(keyOf(undefined, bindingSpec.policyName ?? ''))
  if (policy === undefined) return undefined
  return {
    policy: policy.metadata.name,
    spec: policy['spec'] ?? {},
    binding: binding.metadata.name,
    bindingSpec,
  }
}

function enforce(ctx: ServerContext, attributes: Attributes, bound: Bound, warnings: string[]): void {
  const { spec, bindingSpec } = bound
  if (!matches(ctx, attributes, spec.matchConstraints ?? {})) return
  if (bindingSpec.matchResources !== undefined && !matches(ctx, attributes, bindingSpec.matchResources))
    return
  const params = paramsOf(ctx, attributes, bound)
  if (typeof params === 'string') {
    if (spec.failurePolicy !== 'Ignore') refuse(attributes, bound, { message: params, reason: 'Invalid' })
    return
  }
  for (const param of params) {
    for (const violation of violationsOf(ctx, attributes, spec, param)) {
      const actions = bindingSpec.validationActions ?? []
      if (actions.includes('Deny')) refuse(attributes, bound, violation)
      if (actions.includes('Warn')) {
        warnings.push(
          `Validation failed for ValidatingAdmissionPolicy '${bound.policy}' with binding '${bound.binding}': ${violation.message}`,
        )
      }
    }
  }
}

const codes: ReadonlyMap<string, number> = new Map([
  ['Unauthorized', 401],
  ['Forbidden', 403],
  ['RequestEntityTooLarge', 413],
])

function refuse({ served, name }: Attributes, { policy, binding }: Bound, violation: Violation): never {
  const words = `ValidatingAdmissionPolicy '${policy}' with binding '${binding}' denied request: ${violation.message}`
  const { status } = forbidden(served.definition, name, words, [{ message: words }])
  throw failure(codes.get(violation.reason) ?? 422, violation.reason, status.message ?? words, status.details)
}

function violationsOf(
  ctx: ServerContext,
  attributes: Attributes,
  spec: PolicySpec,
  params: StoredObject | undefined,
): readonly Violation[] {
  const namespace =
    attributes.namespace === undefined
      ? undefined
      : ctx.store.collection('namespaces').get(keyOf(undefined, attributes.namespace))
  const scope = withVariables(scopeOf(attributes, namespace, params), spec.variables ?? [])
  const failed = (message: string): readonly Violation[] =>
    spec.failurePolicy === 'Ignore' ? [] : [{ message, reason: 'Invalid' }]
  const conditions = evaluateConditions(spec.matchConditions ?? [], scope)
  if (conditions.kind === 'unmet') return []
  if (conditions.kind === 'error') return failed(conditions.message)
  return (spec.validations ?? []).flatMap((validation) => {
    const evaluation = evaluate(validation.expression, scope)
    if (evaluation.kind === 'error') {
      return failed(`expression '${validation.expression}' resulted in error: ${evaluation.message}`)
    }
    if (evaluation.value === true) return []
    return [{ message: messageOf(validation, scope), reason: validation.reason ?? 'Invalid' }]
  })
}

function messageOf({ expression, message, messageExpression }: Validation, scope: Scope): string {
  if (messageExpression !== undefined) {
    const evaluation = evaluate(messageExpression, scope)
    const text = evaluation.kind === 'value' && typeof evaluation.value === 'string' ? evaluation.value : ''
    if (text.trim() !== '' && !text.includes('\n')) return text.trim()
  }
  return message?.trim() || `failed expression: ${expression.trim()}`
}

/** Variables are computed on first use and then cached. */
function withVariables(scope: Scope, variables: readonly NamedCondition[]): Scope {
  const values = Object.create(null) as Record<string, unknown>
  const inner = { ...scope, variables: values }
  for (const { name, expression } of variables) {
    Object.defineProperty(values, name, {
      configurable: true,
      enumerable: true,
      get() {
        const evaluation = evaluate(expression, inner)
        if (evaluation.kind === 'error') {
          throw new Error(`composited variable "${name}" fails to evaluate: ${evaluation.message}`)
        }
        Object.defineProperty(values, name, { enumerable: true, value: evaluation.value })
        return evaluation.value
      },
    })
  }
  return inner
}

/** The parameter objects of a policy, or why there are none. */
function paramsOf(
  ctx: ServerContext,
  attributes: Attributes,
  { spec, bindingSpec }: Bound,
): readonly (StoredObject | undefined)[] | string {
  const { paramKind } = spec
  const { paramRef } = bindingSpec
  if (paramKind === undefined || paramRef === undefined) return [undefined]
  const [version = '', ofGroup = ''] = paramKind.apiVersion.split('/').toReversed()
  const served = ctx.registry
    .definitions()
    .find((one) => one.group === ofGroup && one.version === version && one.kind === paramKind.kind)
  const resource = served && ctx.registry.find(served.group, served.version, served.plural)
  if (resource === undefined) {
    return `failed to configure policy: failed to find resource referenced by paramKind: '${paramKind.apiVersion}, Kind=${paramKind.kind}'`
  }
  const namespace = resource.definition.namespaced ? (paramRef.namespace ?? attributes.namespace) : undefined
  if (resource.definition.namespaced && namespace === undefined) {
    return 'failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources'
  }
  const collection = ctx.store.collection(resource.collection)
  const found: StoredObject[] = []
  if (paramRef.name !== undefined && paramRef.name !== '') {
    const param = collection.get(keyOf(namespace, paramRef.name))
    if (param !== undefined) found.push(resource.view(param))
  } else {
    collection.scan(namespace === undefined ? {} : { prefix: namespacePrefix(namespace) }, (object) => {
      if (matchesSelector(paramRef.selector ?? {}, object.metadata.labels)) found.push(resource.view(object))
      return true
    })
  }
  if (found.length > 0) return found
  return paramRef.parameterNotFoundAction === 'Deny'
    ? 'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction'
    : []
}
