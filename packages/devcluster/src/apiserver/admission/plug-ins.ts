import {
  defaultStorageClass,
  type Node,
  type PersistentVolumeClaim,
  type Pod,
  quantityNanos,
  type StorageClass,
  storageClassNameOf,
  type Taint,
  withDefaultTolerations,
} from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import { keyOf } from '../../storage/index.ts'
import { allocateAddresses } from '../cluster-addresses.ts'
import type { ServerContext } from '../context.ts'
import { withLimitRangeDefaults } from '../limits/limit-ranges.ts'
import type { Served } from '../kinds/registry.ts'
import { withRuntimeClass } from '../kinds/runtime-classes.ts'
import { forbidden } from '../http/status.ts'
import { timestamp } from '../verbs/writing.ts'
import { admitPodGroup, withoutDisabledFields } from './pod-groups.ts'

const notReady = 'node.kubernetes.io/not-ready'

/** Applies the default admission plug-ins to a new object. */
export function admitCreate(ctx: ServerContext, served: Served, object: StoredObject): StoredObject {
  if (served.crdName !== undefined) return object
  switch (served.collection) {
    case 'pods':
      return admitPod(ctx, served, object)
    case 'nodes':
      return taintNewNode(object)
    case 'namespaces':
      return admitNamespace(object)
    case 'services':
      return allocateAddresses(ctx, served, object)
    case 'persistentvolumeclaims':
      return admitClaim(ctx, object)
    case 'secrets':
      return encodeStringData(object)
    case 'podgroups.scheduling.k8s.io':
      return admitPodGroup(ctx, served, object)
    default:
      return object
  }
}

/** Applies admission and the kind's own strategy to an update. */
export function admitUpdate(
  ctx: ServerContext,
  served: Served,
  object: StoredObject,
  old: StoredObject,
): StoredObject {
  switch (served.collection) {
    case 'services':
      return allocateAddresses(ctx, served, object, old)
    case 'secrets':
      return encodeStringData(object)
    case 'persistentvolumeclaims':
      refuseUnsupportedGrowth(ctx, served, object, old)
      return object
    default:
      return object
  }
}

/** Bound claims may only grow if their StorageClass allows it. */
function refuseUnsupportedGrowth(
  ctx: ServerContext,
  served: Served,
  object: StoredObject,
  old: StoredObject,
): void {
  const [claim, before] = [object, old] as unknown as readonly [PersistentVolumeClaim, PersistentVolumeClaim]
  const size = ({ spec }: PersistentVolumeClaim) =>
    quantityNanos(spec.resources?.requests?.['storage'] ?? '') ?? 0n
  if (before.status?.phase !== 'Bound' || size(claim) <= size(before)) return
  const storageClass = ctx.store
    .collection('storageclasses.storage.k8s.io')
    .get(keyOf(undefined, storageClassNameOf(claim) ?? ''))
  if (storageClass?.['allowVolumeExpansion'] === true) return
  const why =
    'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize'
  throw forbidden(served.definition, object.metadata.name, why)
}

function admitPod(ctx: ServerContext, served: Served, object: StoredObject): StoredObject {
  const pod = withRuntimeClass(ctx, served, withLimitRangeDefaults(ctx, object as unknown as Pod))
  const { serviceAccountName } = pod.spec as { readonly serviceAccountName?: string }
  const serviceAccount = serviceAccountName || 'default'
  refuseWithoutAccount(ctx, served, pod.metadata, serviceAccount)
  const spec = {
    ...withoutDisabledFields(ctx, pod.spec),
    ...priorityOf(ctx, served, pod),
    tolerations: withDefaultTolerations(pod.spec.tolerations ?? []),
    serviceAccountName: serviceAccount,
    serviceAccount,
  }
  return { ...object, metadata: pod.metadata, spec, status: withGates(ctx, spec, object['status']) }
}

/** The account `default` comes with its namespace a moment later, and pods need not wait for it here. */
function refuseWithoutAccount(
  ctx: ServerContext,
  served: Served,
  { name, namespace }: Pod['metadata'],
  account: string,
): void {
  if (account === 'default' || !ctx.checksPods) return
  if (ctx.store.collection('serviceaccounts').get(keyOf(namespace, account)) !== undefined) return
  const why = `error looking up service account ${namespace ?? ''}/${account}: serviceaccount "${account}" not found`
  throw forbidden(served.definition, name, why)
}

/** A pod with scheduling gates gets its condition at once. */
function withGates(ctx: ServerContext, spec: Pod['spec'], status: unknown): unknown {
  if ((spec.schedulingGates ?? []).length === 0) return status
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
    lastProbeTime: null,
    lastTransitionTime: timestamp(ctx),
  }
  return { ...(status as object | undefined), conditions: [condition] }
}

interface PriorityClass {
  readonly metadata: { readonly name: string }
  readonly value?: number
  readonly globalDefault?: boolean
  readonly preemptionPolicy?: string
}

function priorityOf(ctx: ServerContext, served: Served, pod: Pod): Partial<Pod['spec']> {
  const classes = ctx.store.collection('priorityclasses.scheduling.k8s.io')
  const asked = pod.spec.priorityClassName
  let found: PriorityClass | undefined
  if (asked !== undefined && asked !== '') {
    found = classes.get(`\u0000${asked}`)
    if (found === undefined)
      throw forbidden(served.definition, pod.metadata.name, `no PriorityClass with name ${asked} was found`)
  } else {
    classes.scan({}, (candidate) => {
      if (candidate['globalDefault'] === true) found = candidate as unknown as PriorityClass
      return found === undefined
    })
  }
  return {
    ...(found === undefined ? {} : { priorityClassName: found.metadata.name }),
    priority: found?.value ?? 0,
    preemptionPolicy: pod.spec.preemptionPolicy ?? found?.preemptionPolicy ?? 'PreemptLowerPriority',
  }
}

/** New nodes get the not-ready taint. */
function taintNewNode(object: StoredObject): StoredObject {
  // Validation refuses other types later.
  if (typeof object['spec'] !== 'object') return object
  const node = object as unknown as Node
  const taints = node.spec?.taints ?? []
  if (taints.some((taint) => taint.key === notReady && taint.effect === 'NoSchedule')) return object
  const taint: Taint = { key: notReady, effect: 'NoSchedule' }
  return { ...object, spec: { ...node.spec, taints: [...taints, taint] } }
}

function admitNamespace(object: StoredObject): StoredObject {
  const spec = object['spec'] as { readonly finalizers?: readonly string[] } | undefined
  const labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name }
  return {
    ...object,
    metadata: { ...object.metadata, labels },
    spec: { finalizers: [...new Set([...(spec?.finalizers ?? []), 'kubernetes'])] },
    status: { phase: 'Active' },
  }
}

function admitClaim(ctx: ServerContext, object: StoredObject): StoredObject {
  const claim = object as unknown as PersistentVolumeClaim
  if (storageClassNameOf(claim) !== undefined) return object
  const classes: StorageClass[] = []
  ctx.store.collection('storageclasses.storage.k8s.io').scan({}, (candidate) => {
    classes.push(candidate as unknown as StorageClass)
    return true
  })
  const name = defaultStorageClass(classes)?.metadata.name
  return name === undefined ? object : { ...object, spec: { ...claim.spec, storageClassName: name } }
}

/** `stringData` is write-only: it is merged into `data`. */
function encodeStringData(object: StoredObject): StoredObject {
  const { stringData, ...rest } = object as StoredObject & { stringData?: Readonly<Record<string, string>> }
  if (stringData === undefined) return object
  const encoded = Object.entries(stringData).map(([key, value]) => [
    key,
    Buffer.from(value).toString('base64'),
  ])
  return {
    ...rest,
    data: { ...(object['data'] as object | undefined), ...Object.fromEntries(encoded) },
  }
}
