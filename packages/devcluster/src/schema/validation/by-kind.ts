import { ownValue } from '@tenon/api'
import type { FieldError, StoredObject } from '../../contract.ts'
import type { BuiltinKind } from '../builtin-kinds.ts'
import { jsonEqual, type ShapeNode } from '../shape-node.ts'
import * as admission from './admission.ts'
import { checkAutoscaler } from './autoscaling.ts'
import * as cluster from './cluster.ts'
import { checkDeviceClass, checkResourceClaim, checkResourceClaimTemplate } from './devices/claims.ts'
import { checkDeviceTaintRule, checkResourceSlice } from './devices/slices.ts'
import { checkLimitRange } from './limit-ranges.ts'
import { metadataErrors, type NameRule } from './metadata.ts'
import * as network from './network.ts'
import { checkPod, checkPodTemplate } from './pods.ts'
import { checkResourceQuota } from './quotas.ts'
import { checkPodGroup, checkWorkload } from './pod-groups.ts'
import * as rbac from './rbac.ts'
import { Findings } from './reporting.ts'
import { checkShape } from './shape.ts'
import * as workloads from './workloads.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

const checks: Readonly<Record<string, Check>> = {
  '/Pod': checkPod,
  '/PodTemplate': checkPodTemplate,
  '/Node': cluster.checkNode,
  '/Service': cluster.checkService,
  '/ConfigMap': cluster.checkConfigMap,
  '/Secret': cluster.checkSecret,
  '/PersistentVolume': cluster.checkPersistentVolume,
  '/PersistentVolumeClaim': cluster.checkPersistentVolumeClaim,
  '/LimitRange': checkLimitRange,
  '/ResourceQuota': checkResourceQuota,
  '/Namespace': cluster.checkNamespace,
  '/ReplicationController': workloads.checkReplicationController,
  'apps/Deployment': workloads.checkDeployment,
  'apps/ReplicaSet': workloads.checkReplicaSet,
  'apps/StatefulSet': workloads.checkStatefulSet,
  'apps/DaemonSet': workloads.checkDaemonSet,
  'batch/Job': workloads.checkJob,
  'batch/CronJob': workloads.checkCronJob,
  'autoscaling/HorizontalPodAutoscaler': checkAutoscaler,
  '/Endpoints': network.checkEndpoints,
  'discovery.k8s.io/EndpointSlice': network.checkEndpointSlice,
  'networking.k8s.io/Ingress': network.checkIngress,
  'networking.k8s.io/IngressClass': network.checkIngressClass,
  'networking.k8s.io/NetworkPolicy': network.checkNetworkPolicy,
  'policy/PodDisruptionBudget': cluster.checkDisruptionBudget,
  'coordination.k8s.io/Lease': cluster.checkLease,
  'storage.k8s.io/StorageClass': cluster.checkStorageClass,
  'storage.k8s.io/CSIDriver': cluster.checkCsiDriver,
  'storage.k8s.io/CSINode': cluster.checkCsiNode,
  'resource.k8s.io/ResourceClaim': checkResourceClaim,
  'resource.k8s.io/ResourceClaimTemplate': checkResourceClaimTemplate,
  'resource.k8s.io/DeviceClass': checkDeviceClass,
  'resource.k8s.io/ResourceSlice': checkResourceSlice,
  'resource.k8s.io/DeviceTaintRule': checkDeviceTaintRule,
  'node.k8s.io/RuntimeClass': cluster.checkRuntimeClass,
  'scheduling.k8s.io/PodGroup': checkPodGroup,
  'scheduling.k8s.io/Workload': checkWorkload,
  'scheduling.k8s.io/PriorityClass': cluster.checkPriorityClass,
  'admissionregistration.k8s.io/MutatingAdmissionPolicy': admission.checkMutatingPolicy,
  'admissionregistration.k8s.io/MutatingAdmissionPolicyBinding': admission.checkMutatingBinding,
  'admissionregistration.k8s.io/ValidatingAdmissionPolicy': admission.checkValidatingPolicy,
  'admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding': admission.checkPolicyBinding,
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': admission.checkWebhooks,
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': admission.checkWebhooks,
  'rbac.authorization.k8s.io/Role': rbac.checkRole,
  'rbac.authorization.k8s.io/ClusterRole': rbac.checkClusterRole,
  'rbac.authorization.k8s.io/RoleBinding': rbac.checkRoleBinding,
  'rbac.authorization.k8s.io/ClusterRoleBinding': rbac.checkClusterRoleBinding,
}

/** Kinds whose names are not DNS subdomains. */
const nameRules: Readonly<Record<string, NameRule>> = {
  '/Namespace': 'label',
  '/Service': 'label',
  'rbac.authorization.k8s.io/Role': 'path',
  'rbac.authorization.k8s.io/RoleBinding': 'path',
  'rbac.authorization.k8s.io/ClusterRole': 'path',
  'rbac.authorization.k8s.io/ClusterRoleBinding': 'path',
  // Kubernetes does not validate these names.
  'policy/PodDisruptionBudget': 'any',
}

/** Groups that are validated by generic code of the API server library. */
const genericGroups: ReadonlySet<string> = new Set([
  'coordination.k8s.io',
  'node.k8s.io',
  'policy',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
])

/**
 * Whether an update changes nothing that a kind's validation reads: all fields except metadata and status.
 */
function isUnchanged(object: StoredObject, old: StoredObject): boolean {
  for (const key in object) {
    if (key !== 'metadata' && key !== 'status' && !jsonEqual(ownValue(object, key), ownValue(old, key)))
      return false
  }
  return true
}

/** The validator of a built-in kind. Empty = valid; unchanged parts of an update are skipped. */
export function validatorOf(
  kind: BuiltinKind,
  schema: ShapeNode,
): (object: StoredObject, old: StoredObject | undefined) => readonly FieldError[] {
  const key = `${kind.group}/${kind.kind}`
  const check = ownValue(checks, key)
  const rule = ownValue(nameRules, key) ?? 'subdomain'
  return (object, old) => {
    const errors = metadataErrors(object, old, rule, !genericGroups.has(kind.group))
    if (old !== undefined && isUnchanged(object, old)) return errors
    const found = new Findings()
    found.errors.push(...errors)
    checkShape(object, schema, '', found.errors, old)
    // The checks of a kind rely on the types of its fields.
    if (!found.errors.some((error) => error.kind === 'typeInvalid')) check?.(object, old, found)
    return deduplicated(found.errors)
  }
}

/** Both the schema and the kind may report a missing field. */
function deduplicated(errors: readonly FieldError[]): readonly FieldError[] {
  if (errors.length < 2) return errors
  const seen = new Set<string>()
  return errors.filter((error) => {
    const identity = `${error.kind} ${error.field}`
    if (error.kind !== 'required') return true
    if (seen.has(identity)) return false
    seen.add(identity)
    return true
  })
}
