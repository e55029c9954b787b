import type { Pod } from '@tenon/api'
import { randomString, uuid } from '@tenon/runtime'
import type { StoredObject } from '../../contract.ts'
import { keyOf } from '../../storage/index.ts'
import { mutated, validated } from '../admission/index.ts'
import { adminAccessErrors } from '../admission/admin-access.ts'
import { admitCreate } from '../admission/plug-ins.ts'
import { refuseUnknownTemplate } from '../admission/pod-groups.ts'
import { appArmorWarnings, deprecationWarnings } from '../admission/pod-security/deprecated-fields.ts'
import { checkPodSecurity } from '../admission/pod-security/pod-security.ts'
import type { ServerContext, WriteOptions } from '../context.ts'
import { checkCustomResourceDefinition, crdOf, isTerminatingCrd } from '../kinds/custom-resources.ts'
import { policyOf } from '../admission/policy-status.ts'
import { checkLimitRanges } from '../limits/limit-ranges.ts'
import { generatedName, generatedSuffix, validateMetadata, withoutEmpty } from './metadata.ts'
import { simulationWarnings } from '../not-simulated.ts'
import { withLabelKeys } from '../kinds/pod-label-keys.ts'
import type { Served } from '../kinds/registry.ts'
import { withTaintTimes } from '../kinds/taint-times.ts'
import { alreadyExists, failure, forbidden, methodNotAllowed, notFound } from '../http/status.ts'
import {
  agreedNamespace,
  checkType,
  commit,
  pruned,
  readObject,
  refuseInvalid,
  refuseUnreadable,
  subjectOf,
  timestamp,
  tracked,
  withField,
} from './writing.ts'

/** Kinds that may be created with a status, as the creator knows it. */
const statusOnCreate = new Set(['Node', 'Event', 'APIService'])

/** Attempts to find a free generated name. */
const nameAttempts = 8

/**
 * Creates an object.
 * @throws ApiError like a Kubernetes API server.
 */
export function createObject(
  ctx: ServerContext,
  served: Served,
  namespace: string | undefined,
  input: StoredObject,
  options: WriteOptions,
): StoredObject {
  const prepared = prepareCreate(ctx, served, namespace, input, options)
  return commit(ctx, served, tracked(ctx, { served, before: undefined, after: prepared }, options), options)
}

/** All steps of a creation except field ownership and the commit. */
export function prepareCreate(
  ctx: ServerContext,
  served: Served,
  namespace: string | undefined,
  input: StoredObject,
  options: WriteOptions,
): StoredObject {
  checkType(served, input)
  const into = agreedNamespace(served, namespace, input)
  checkNamespace(ctx, served, into, input)
  if (isTerminatingCrd(ctx, served)) throw methodNotAllowed()
  const known = pruned(served, input, options)
  const named = initialMetadata(ctx, served, into, known)
  const hasStatus = served.definition.subresources.includes('status')
  const bare =
    hasStatus && !statusOnCreate.has(served.definition.kind) ? withField(named, 'status', undefined) : named
  const { kind } = served.definition
  const filled = withTaintTimes(kind, served.definition.applyDefaults(bare), undefined, timestamp(ctx))
  const admitted = admitCreate(ctx, served, filled)
  const changed = mutated(ctx, { served, operation: 'CREATE', object: admitted }, options)
  const object = served.collection === 'pods' ? withLabelKeys(changed as StoredObject & Pod) : changed
  const errors = [
    ...(served.crdName === undefined ? [] : validateMetadata(object.metadata)),
    ...adminAccessErrors(ctx, served, object),
    ...served.definition.validate(object, undefined),
  ]
  refuseUnreadable(served, errors)
  if (!options.internal) options.warnings.push(...appArmorWarnings(served, bare))
  refuseInvalid(served, object.metadata.name ?? '', errors)
  refuseUnknownTemplate(ctx, served, object)
  if (!options.internal) options.warnings.push(...deprecationWarnings(served, bare))
  checkLimitRanges(ctx, served, object)
  checkPodSecurity(ctx, { served, operation: 'CREATE', object }, options)
  ctx.quotas.check(served, object)
  checkCustomResourceDefinition(served, object)
  if (readObject(ctx, served, { namespace: into, name: object.metadata.name }) !== undefined)
    throw alreadyExists(subjectOf(served), object.metadata.name)
  validated(ctx, { served, operation: 'CREATE', object }, options)
  if (!options.internal) options.warnings.push(...simulationWarnings(served.collection, object))
  return policyOf(ctx, served, crdOf(ctx, served, object))
}

function checkNamespace(
  ctx: ServerContext,
  served: Served,
  namespace: string | undefined,
  object: StoredObject,
): void {
  if (namespace === undefined) return
  const found = ctx.store.collection('namespaces').get(keyOf(undefined, namespace))
  if (found === undefined) throw notFound({ group: '', plural: 'namespaces', kind: 'Namespace' }, namespace)
  if (found.metadata.deletionTimestamp === undefined) return
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`
  throw forbidden(subjectOf(served), object.metadata?.name ?? '', why, [
    {
      reason: 'NamespaceTerminating',
      message: `namespace ${namespace} is being terminated`,
      field: 'metadata.namespace',
    },
  ])
}

function initialMetadata(
  ctx: ServerContext,
  served: Served,
  namespace: string | undefined,
  object: StoredObject,
): StoredObject {
  const meta = object.metadata ?? {}
  if (meta.resourceVersion)
    throw failure(400, 'BadRequest', 'resourceVersion should not be set on objects to be created')
  const name = nameOf(ctx, served, namespace, object)
  return {
    ...object,
    metadata: withoutEmpty({
      ...meta,
      name,
      namespace,
      uid: uuid(ctx.random),
      creationTimestamp: timestamp(ctx),
      generation: served.definition.hasGeneration ? 1 : undefined,
      deletionTimestamp: undefined,
      deletionGracePeriodSeconds: undefined,
      resourceVersion: undefined,
    }),
  }
}

function nameOf(
  ctx: ServerContext,
  served: Served,
  namespace: string | undefined,
  object: StoredObject,
): string {
  const { name, generateName } = object.metadata ?? {}
  if (name) return name
  if (served.collection === 'limitranges') return uuid(ctx.random)
  // Other errors are reported together with it.
  if (!generateName) return ''
  for (let attempt = 0; attempt < nameAttempts; attempt++) {
    const suffix = randomString(ctx.random, generatedSuffix.length, generatedSuffix.alphabet)
    const candidate = generatedName(generateName, suffix)
    if (readObject(ctx, served, { namespace, name: candidate }) === undefined) return candidate
  }
  throw failure(409, 'AlreadyExists', `no free name could be generated from "${generateName}"`)
}
