/**
 * What the example manifest of Cluster Autoscaler's provider for Cluster API grants, as of before it granted `patch`:
 * the fewest rights that users have.
 */
import type { KubeObject, ResourceType } from '@tenon/api'

export type ClusterRole = KubeObject & { readonly rules: readonly object[] }

export const clusterRoleKind: ResourceType<ClusterRole> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
}

const name = 'cluster-autoscaler'
const { group: apiGroup } = clusterRoleKind
const subjects = [{ kind: 'ServiceAccount', name, namespace: 'kube-system' }]
const reading = ['get', 'list', 'watch']

const rule = (apiGroups: string, resources: readonly string[], verbs: readonly string[]) => ({
  apiGroups: [apiGroups],
  resources,
  verbs,
})

const workloadRules = [
  rule(
    '',
    ['persistentvolumeclaims', 'persistentvolumes', 'pods', 'replicationcontrollers', 'services'],
    reading,
  ),
  rule('', ['nodes'], [...reading, 'update']),
  rule('', ['pods/eviction'], ['create']),
  rule('policy', ['poddisruptionbudgets'], ['list', 'watch']),
  rule('storage.k8s.io', ['csinodes', 'storageclasses'], reading),
  rule('batch', ['jobs'], ['list', 'watch']),
  rule('apps', ['daemonsets', 'replicasets', 'statefulsets'], ['list', 'watch']),
  rule('', ['events'], ['create', 'patch']),
  rule('', ['configmaps'], ['create', 'delete', 'get', 'update']),
  rule('coordination.k8s.io', ['leases'], ['create', 'get', 'update']),
]

const managed = ['machinedeployments', 'machinedeployments/scale', 'machines']
const writable = [...managed, 'machinesets']

/** The role for the management cluster. @param written kinds that may also be written. */
const managementRole = (written: readonly string[] = writable): ClusterRole => ({
  apiVersion: `${apiGroup}/v1`,
  kind: 'ClusterRole',
  metadata: { name: `${name}-management` },
  rules: [rule('cluster.x-k8s.io', writable, reading), rule('cluster.x-k8s.io', written, ['update'])],
})

/** The role for the management cluster without the right to write MachineSets. */
export const managementRoleWithoutSets: ClusterRole = managementRole(managed)

const binding = (role: string) => ({
  apiVersion: `${apiGroup}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name: role },
  roleRef: { apiGroup, kind: 'ClusterRole', name: role },
  subjects,
})

/** The account, both roles, and their bindings. */
export const exampleRights: readonly object[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'kube-system' } },
  {
    apiVersion: `${apiGroup}/v1`,
    kind: 'ClusterRole',
    metadata: { name: `${name}-workload` },
    rules: workloadRules,
  },
  managementRole(),
  binding(`${name}-workload`),
  binding(`${name}-management`),
]
