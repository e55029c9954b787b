/** The RBAC rules that Tenon needs in each cluster (cluster-api.md 15). */
import type { AccessRule } from '@tenon/provider'
import { defaultGroup } from './names.ts'
import { clusterAPINodeClassKind } from './nodeclass/types.ts'

/** In the cluster of the nodes, beside what every provider needs. */
export const workloadRules: readonly AccessRule[] = [
  {
    apiGroups: [clusterAPINodeClassKind.group],
    resources: [clusterAPINodeClassKind.plural, `${clusterAPINodeClassKind.plural}/status`],
    verbs: ['patch'],
  },
]

/** In the management cluster. Nothing of it is created, and no object is written whole. */
export const hubRules: readonly AccessRule[] = [
  {
    apiGroups: [defaultGroup],
    resources: ['machinedeployments'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  {
    apiGroups: [defaultGroup],
    resources: ['machines'],
    verbs: ['get', 'list', 'watch', 'patch', 'delete'],
  },
  { apiGroups: [defaultGroup], resources: ['machinesets', 'clusters'], verbs: ['get', 'list', 'watch'] },
  // Templates of every infrastructure provider: their kinds differ, their group is by convention the same.
  { apiGroups: [`infrastructure.${defaultGroup}`], resources: ['*'], verbs: ['get', 'list', 'watch'] },
  // Which versions of templates are served.
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get'] },
]
