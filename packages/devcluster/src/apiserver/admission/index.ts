/** Admission in addition to the built-in plug-ins: webhooks and policies. */
import type { StoredObject } from '../../contract.ts'
import { Authorizer } from '../authorization/authorizer.ts'
import { refuseEscalation } from '../authorization/escalation.ts'
import type { ServerContext, WriteOptions } from '../context.ts'
import type { Served } from '../kinds/registry.ts'
import type { Attributes } from './attributes.ts'
import { validateByPolicies } from './policies.ts'
import { mutateByWebhooks, validateByWebhooks, webhookWarnings } from './webhooks.ts'

const group = 'admissionregistration.k8s.io'
const mutatingWebhooks = `mutatingwebhookconfigurations.${group}`
const validatingWebhooks = `validatingwebhookconfigurations.${group}`
const policyBindings = `validatingadmissionpolicybindings.${group}`

/** A write that is about to be committed. */
export interface AdmittedWrite {
  readonly served: Served
  readonly operation: Attributes['operation']
  readonly subresource?: string | undefined
  readonly object?: StoredObject
  readonly oldObject?: StoredObject
}

/**
 * The object after mutating webhooks, with defaults for what they added.
 * @throws ApiError.
 */
export function mutated(ctx: ServerContext, write: AdmittedWrite, options: WriteOptions): StoredObject {
  const before = write.object as StoredObject
  if (ctx.store.collection(mutatingWebhooks).size === 0) return before
  const after = mutateByWebhooks(ctx, attributesOf(write, options), withOwnWarnings(options)) ?? before
  if (after === before) return before
  return write.served.definition.applyDefaults(after, write.oldObject)
}

/**
 * Lets webhooks and policies refuse a write.
 * @throws ApiError like the real server.
 */
export function validated(ctx: ServerContext, write: AdmittedWrite, options: WriteOptions): void {
  const attributes = attributesOf(write, options)
  const { served, object, oldObject } = write
  if (!options.internal && object !== undefined) {
    refuseEscalation(new Authorizer(ctx), { served, object, oldObject, user: options.user })
  }
  if ([policyBindings, validatingWebhooks].some((each) => ctx.store.collection(each).size > 0)) {
    const own = withOwnWarnings(options)
    validateByPolicies(ctx, attributes, own.warnings)
    validateByWebhooks(ctx, attributes, own)
  }
  if (!options.internal) options.warnings.push(...webhookWarnings(attributes))
}

/** Parts of this process reuse their options and read no warnings, so each write gets its own list. */
function withOwnWarnings(options: WriteOptions): WriteOptions {
  return options.internal ? { ...options, warnings: [] } : options
}

function attributesOf(
  { served, operation, subresource, object, oldObject }: AdmittedWrite,
  { user, dryRun }: WriteOptions,
): Attributes {
  const { name, namespace } = (object ?? oldObject)?.metadata ?? { name: '' }
  return {
    operation,
    served,
    subresource,
    namespace: served.definition.namespaced ? namespace : undefined,
    name: name ?? '',
    object,
    oldObject,
    user,
    dryRun,
  }
}
