import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { BuiltinKind } from '../builtin-kinds.ts'
import type { Loose } from '../columns/cells.ts'
import type { ShapeNode } from '../shape-node.ts'
import { normalizeValue } from '../shape-normalizing.ts'
import { withZeroValues } from '../shape-zeros.ts'
import * as cluster from './cluster.ts'
import { within } from './fill.ts'
import * as network from './network.ts'
import { podDefaults, templateDefaults } from './pod-spec.ts'
import * as workloads from './workloads.ts'

const defaults: Readonly<Record<string, (object: Loose) => Loose>> = {
  '/Pod': podDefaults,
  '/PodTemplate': (object) => within(object, 'template', templateDefaults),
  '/ReplicationController': workloads.replicationControllerDefaults,
  '/Namespace': cluster.namespaceDefaults,
  '/Node': cluster.nodeDefaults,
  '/Secret': cluster.secretDefaults,
  '/Service': network.serviceDefaults,
  '/Endpoints': network.endpointsDefaults,
  '/LimitRange': cluster.limitRangeDefaults,
  '/PersistentVolume': cluster.persistentVolumeDefaults,
  '/PersistentVolumeClaim': workloads.persistentVolumeClaimDefaults,
  'apps/Deployment': workloads.deploymentDefaults,
  'apps/ReplicaSet': workloads.replicaSetDefaults,
  'apps/StatefulSet': workloads.statefulSetDefaults,
  'apps/DaemonSet': workloads.daemonSetDefaults,
  'batch/Job': workloads.jobDefaults,
  'batch/CronJob': workloads.cronJobDefaults,
  'autoscaling/HorizontalPodAutoscaler': workloads.autoscalerDefaults,
  'discovery.k8s.io/EndpointSlice': network.endpointSliceDefaults,
  'networking.k8s.io/NetworkPolicy': network.networkPolicyDefaults,
  'networking.k8s.io/IngressClass': network.ingressClassDefaults,
  'storage.k8s.io/StorageClass': cluster.storageClassDefaults,
  'storage.k8s.io/CSIDriver': cluster.csiDriverDefaults,
  'scheduling.k8s.io/PodGroup': workloads.podGroupDefaults,
  'scheduling.k8s.io/Workload': workloads.workloadDefaults,
  'scheduling.k8s.io/PriorityClass': cluster.priorityClassDefaults,
  'rbac.authorization.k8s.io/RoleBinding': cluster.roleBindingDefaults,
  'rbac.authorization.k8s.io/ClusterRoleBinding': cluster.roleBindingDefaults,
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': cluster.mutatingWebhookDefaults,
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': cluster.validatingWebhookDefaults,
  'admissionregistration.k8s.io/MutatingAdmissionPolicy': cluster.admissionPolicyDefaults,
  'admissionregistration.k8s.io/MutatingAdmissionPolicyBinding': cluster.policyBindingDefaults,
  'admissionregistration.k8s.io/ValidatingAdmissionPolicy': cluster.admissionPolicyDefaults,
  'admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding': cluster.policyBindingDefaults,
  'apiextensions.k8s.io/CustomResourceDefinition': cluster.customResourceDefinitionDefaults,
  'apiregistration.k8s.io/APIService': cluster.apiServiceDefaults,
  'resource.k8s.io/ResourceClaim': cluster.resourceClaimDefaults,
  'resource.k8s.io/ResourceClaimTemplate': cluster.resourceClaimTemplateDefaults,
}

/** Converts an object of a kind to its stored form with defaults. */
export function defaultsOf(
  kind: BuiltinKind,
  schema: ShapeNode,
): (object: StoredObject, old?: StoredObject) => StoredObject {
  const own = ownValue(defaults, `${kind.group}/${kind.kind}`)
  return (object, old) => {
    const normal = normalizeValue(object, schema, old) as Loose
    const given = withZeroValues(normal, schema, old) as Loose
    return (own === undefined ? given : own(given)) as StoredObject
  }
}
