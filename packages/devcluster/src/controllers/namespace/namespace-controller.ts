import { kinds, type KubeObject, type Namespace } from '@tenon/api'
import type { ResourceDefinition } from '../../contract.ts'
import type { ControllerContext } from '../context.ts'
import { keyOf } from '../loop/object-cache.ts'
import type { Steps } from '../loop/reconcile-loop.ts'
import { setCondition } from '../objects/conditions.ts'
import { workloads, type WorkloadCondition } from '../objects/workloads.ts'
import { deletionConditions } from './namespace-conditions.ts'

const deletesPerStep = 16
const recheckMs = 500

interface FinalizedNamespace extends Namespace {
  readonly spec?: { readonly finalizers?: readonly string[] }
  readonly status?: { readonly phase?: string; readonly conditions?: readonly WorkloadCondition[] }
}

/** Deletes the content of namespaces being deleted, kind by kind, and then finalizes them. */
export function namespaces(context: ControllerContext): void {
  const { store } = context
  const cache = store.cache(kinds.namespace)
  const queue = context.loop.queue('namespaces', (name) => removeContent(context, name))
  cache.onChange((now) => {
    if (now?.metadata.deletionTimestamp !== undefined) queue.add(keyOf(now))
  })
}

function* removeContent(context: ControllerContext, name: string): Steps {
  const { store } = context
  const namespace = store.get<FinalizedNamespace>(kinds.namespace, undefined, name)
  if (namespace?.metadata.deletionTimestamp === undefined) return undefined
  const objects = new Map<string, number>()
  const finalizers = new Map<string, number>()
  const failures: string[] = []
  for (const definition of store.api.definitions()) {
    if (!definition.namespaced || !definition.storage || !isStored(definition)) continue
    failures.push(...(yield* deleteAll(context, definition, name)))
    const left = store.api.list<KubeObject>(definition, { namespace: name })
    if (left.length === 0) continue
    objects.set(`${definition.plural}.${definition.group}`, left.length)
    for (const finalizer of left.flatMap((object) => object.metadata.finalizers ?? [])) {
      finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1)
    }
  }
  writeConditions(context, namespace, deletionConditions({ objects, finalizers, failures }))
  if (objects.size > 0) return { afterMs: recheckMs }
  store.modify(kinds.namespace, namespace, withoutKubernetesFinalizer)
  return undefined
}

/** Kinds that can be listed, unlike reviews. */
function isStored(definition: ResourceDefinition): boolean {
  return !definition.plural.endsWith('reviews')
}

/** Deletes all objects of one kind; returns the refusals. */
function* deleteAll(
  context: ControllerContext,
  definition: ResourceDefinition,
  namespace: string,
): Generator<undefined, string[], undefined> {
  const refused: string[] = []
  let deleted = 0
  for (const object of context.store.api.list<KubeObject>(definition, { namespace })) {
    if (object.metadata.deletionTimestamp !== undefined) continue
    try {
      context.store.delete(definition, object, { propagationPolicy: 'Background' })
    } catch (error) {
      refused.push((error as Error).message)
    }
    if (++deleted % deletesPerStep === 0) yield
  }
  return refused
}

function writeConditions(
  context: ControllerContext,
  namespace: FinalizedNamespace,
  wanted: readonly WorkloadCondition[],
): void {
  const now = context.clock.now()
  let { conditions } = namespace.status ?? {}
  for (const condition of wanted) conditions = setCondition(conditions, condition, now)
  context.store.setStatus(kinds.namespace, namespace, {
    ...namespace.status,
    phase: 'Terminating',
    conditions,
  })
}

function withoutKubernetesFinalizer(namespace: Namespace): Namespace {
  const { spec } = namespace as FinalizedNamespace
  const finalizers = (spec?.finalizers ?? []).filter((finalizer) => finalizer !== 'kubernetes')
  return { ...namespace, spec: { ...spec, finalizers } } as FinalizedNamespace
}

/** Creates the `default` service account and the cluster's root certificate in every namespace. */
export function namespaceDefaults(context: ControllerContext): void {
  const { store, settings } = context
  const cache = store.cache(kinds.namespace)
  const queue = context.loop.queue('namespace-defaults', (name) => {
    const namespace = store.get(kinds.namespace, undefined, name)
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return undefined
    const metadata = { name: 'default', namespace: name }
    store.createIfAbsent(workloads.serviceAccount, { apiVersion: 'v1', kind: 'ServiceAccount', metadata })
    if (settings.certificateAuthority !== '') publishCertificate(context, name)
    return undefined
  })
  cache.onChange((now) => {
    if (now !== undefined) queue.add(keyOf(now))
  })
  store.cache(workloads.serviceAccount).onChange((now, _before, { metadata }) => {
    if (now === undefined && metadata.name === 'default') queue.add(metadata.namespace ?? '')
  })
  store.cache(kinds.configMap).onChange((_now, _before, latest) => {
    const { name, namespace = '' } = latest.metadata
    if (name === rootCertificate) queue.add(namespace)
  })
}

const rootCertificate = 'kube-root-ca.crt'

function publishCertificate(context: ControllerContext, namespace: string): void {
  const { store, settings } = context
  const annotation = "The certificate authority that signs the certificate of this cluster's API server."
  const data = { 'ca.crt': settings.certificateAuthority }
  const present = store.get(kinds.configMap, namespace, rootCertificate)
  if (present !== undefined) {
    store.modify(kinds.configMap, present, (latest) => ({ ...latest, data }))
    return
  }
  store.create(kinds.configMap, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: rootCertificate, namespace, annotations: { 'kubernetes.io/description': annotation } },
    data,
  })
}
