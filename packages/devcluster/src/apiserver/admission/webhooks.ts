import { uuid } from '@tenon/runtime'
import type { StoredObject } from '../../contract.ts'
import { jsonPatch } from '../../schema/index.ts'
import { keyOf } from '../../storage/index.ts'
import type { ServerContext, WriteOptions } from '../context.ts'
import { badRequest, failure, internalError } from '../http/status.ts'
import { type Attributes, requestOf } from './attributes.ts'
import { evaluateConditions, type NamedCondition, scopeOf } from './expressions.ts'
import { matches, type ResourceRule } from './matching.ts'
import { isExempt } from './policies.ts'
import type { WebhookAnswer, WebhookCall } from './webhook-calls.ts'

interface Webhook {
  readonly name: string
  readonly clientConfig?: {
    readonly url?: string
    readonly caBundle?: string
    readonly service?: {
      readonly namespace?: string
      readonly name?: string
      readonly path?: string
      readonly port?: number
    }
  }
  readonly rules?: readonly ResourceRule[]
  readonly failurePolicy?: string
  readonly namespaceSelector?: object
  readonly objectSelector?: object
  readonly sideEffects?: string
  readonly timeoutSeconds?: number
  readonly admissionReviewVersions?: readonly string[]
  readonly matchConditions?: readonly NamedCondition[]
}

/** The parts of an AdmissionResponse that are used. */
interface AdmissionResponse {
  readonly allowed?: boolean
  readonly patch?: string
  readonly warnings?: readonly string[]
  readonly status?: { readonly message?: string; readonly reason?: string; readonly code?: number }
}

const defaultTimeoutSeconds = 10
const deniedCode = 403

/**
 * Calls the mutating webhooks of a write.
 * @returns the mutated object.
 * @throws ApiError like the real server.
 */
export function mutateByWebhooks(
  ctx: ServerContext,
  attributes: Attributes,
  options: WriteOptions,
): StoredObject | undefined {
  let { object } = attributes
  for (const webhook of webhooksOf(ctx, 'mutatingwebhookconfigurations', attributes)) {
    const response = ask(ctx, webhook, { ...attributes, object }, options)
    if (response?.patch === undefined || object === undefined) continue
    const operations: unknown = JSON.parse(Buffer.from(response.patch, 'base64').toString())
    const patched = jsonPatch(object, operations)
    if (patched.object === undefined)
      throw internalError(`admission webhook "${webhook.name}": ${patched.error}`)
    object = patched.object
  }
  return object
}

/**
 * Calls the validating webhooks of a write.
 * @throws ApiError like the real server.
 */
export function validateByWebhooks(ctx: ServerContext, attributes: Attributes, options: WriteOptions): void {
  for (const webhook of webhooksOf(ctx, 'validatingwebhookconfigurations', attributes)) {
    ask(ctx, webhook, attributes, options)
  }
}

/** In the order of their configurations' names. */
function webhooksOf(ctx: ServerContext, plural: string, attributes: Attributes): readonly Webhook[] {
  if (isExempt(attributes)) return []
  const found: Webhook[] = []
  ctx.store.collection(`${plural}.admissionregistration.k8s.io`).scan({}, (configuration) => {
    for (const webhook of (configuration['webhooks'] ?? []) as readonly Webhook[]) {
      const { rules = [], namespaceSelector, objectSelector } = webhook
      const isMatched = matches(ctx, attributes, {
        resourceRules: rules,
        ...(namespaceSelector && { namespaceSelector }),
        ...(objectSelector && { objectSelector }),
      })
      if (isMatched) found.push(webhook)
    }
    return true
  })
  return found
}

/** The response of a webhook that allows a write; undefined if it was skipped or its failure is ignored. */
function ask(
  ctx: ServerContext,
  webhook: Webhook,
  attributes: Attributes,
  options: WriteOptions,
): AdmissionResponse | undefined {
  const isIgnored = webhook.failurePolicy === 'Ignore'
  const conditions = conditionsOf(ctx, webhook, attributes)
  if (conditions.kind === 'unmet' || (conditions.kind === 'error' && isIgnored)) return undefined
  if (conditions.kind === 'error') {
    throw internalError(`webhook "${webhook.name}" matchCondition error: ${conditions.message}`)
  }
  if (options.dryRun && !['None', 'NoneOnDryRun'].includes(webhook.sideEffects ?? '')) {
    throw badRequest(`admission webhook "${webhook.name}" does not support dry run`)
  }
  const answer = answerOf(ctx, webhook, attributes, options)
  if (answer.kind === 'unknown') return undefined
  if (answer.kind === 'failed') {
    if (!isIgnored) throw internalError(`failed calling webhook "${webhook.name}": ${answer.message}`)
    ctx.logger.info('a webhook failed and is ignored', { webhook: webhook.name, error: answer.message })
    return undefined
  }
  const response = (answer.body as { readonly response?: AdmissionResponse } | null)?.response
  if (response === undefined) {
    if (isIgnored) return undefined
    throw internalError(
      `failed calling webhook "${webhook.name}": expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got nothing`,
    )
  }
  options.warnings.push(...(response.warnings ?? []))
  if (response.allowed !== true) throw denied(webhook, response)
  return response
}

function denied({ name }: Webhook, { status }: AdmissionResponse) {
  const words =
    status?.message === undefined || status.message === ''
      ? `admission webhook "${name}" denied the request without explanation`
      : `admission webhook "${name}" denied the request: ${status.message}`
  return failure(status?.code ?? deniedCode, status?.reason ?? 'Forbidden', words)
}

function conditionsOf(ctx: ServerContext, { matchConditions = [] }: Webhook, attributes: Attributes) {
  if (matchConditions.length === 0) return { kind: 'met' } as const
  const { namespace } = attributes
  const object = namespace && ctx.store.collection('namespaces').get(keyOf(undefined, namespace))
  return evaluateConditions(matchConditions, scopeOf(attributes, object || undefined, undefined))
}

/**
 * Webhooks with a service cannot be reached, as nothing runs behind services here. Those with a URL are called for HTTP
 * requests, but not for writes of the cluster's own parts.
 */
function answerOf(
  ctx: ServerContext,
  webhook: Webhook,
  attributes: Attributes,
  options: WriteOptions,
): WebhookAnswer {
  const { url, caBundle } = webhook.clientConfig ?? {}
  const timeoutSeconds = webhook.timeoutSeconds ?? defaultTimeoutSeconds
  if (url === undefined) return { kind: 'failed', message: unreachable(ctx, webhook, timeoutSeconds) }
  if (options.webhooks === undefined) return { kind: 'unknown' }
  const call: WebhookCall = {
    url: `${url}${url.includes('?') ? '&' : '?'}timeout=${timeoutSeconds}s`,
    timeoutMs: timeoutSeconds * 1000,
    body: JSON.stringify(reviewOf(ctx, attributes)),
    ...(caBundle !== undefined && { certificateAuthority: Buffer.from(caBundle, 'base64').toString() }),
  }
  return options.webhooks.answer(call)
}

function reviewOf(ctx: ServerContext, attributes: Attributes): object {
  const { object = null, oldObject = null } = attributes
  const request = { uid: uuid(ctx.random), ...requestOf(attributes), object, oldObject }
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }
}

function unreachable(ctx: ServerContext, { clientConfig }: Webhook, timeoutSeconds: number): string {
  const { namespace = '', name = '', path = '/', port = 443 } = clientConfig?.service ?? {}
  const service = ctx.store.collection('services').get(keyOf(namespace, name))
  const address = (service?.['spec'] as { clusterIP?: string } | undefined)?.clusterIP
  const reason =
    address === undefined
      ? `service "${name}" not found`
      : `dial tcp ${address}:${port}: connect: connection refused`
  const url = `https://${name}.${namespace}.svc:${port}${path}?timeout=${timeoutSeconds}s`
  return `failed to call webhook: Post "${url}": ${reason}`
}

/** Which parts of a webhook configuration have no effect here; empty for other objects. */
export function webhookWarnings(attributes: Attributes): readonly string[] {
  const { served, object } = attributes
  const { group, kind } = served.definition
  if (group !== 'admissionregistration.k8s.io' || !kind.endsWith('WebhookConfiguration')) return []
  return ((object?.['webhooks'] ?? []) as readonly Webhook[]).flatMap(
    ({ clientConfig, failurePolicy }, index) =>
      clientConfig?.service === undefined
        ? []
        : [
            `webhooks[${index}].clientConfig.service: containers are simulated and no service answers; the webhook obeys failurePolicy ${failurePolicy ?? 'Fail'}`,
          ],
  )
}
