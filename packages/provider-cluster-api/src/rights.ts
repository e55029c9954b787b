/** The RBAC rules that Tenon needs in each cluster (cluster-api.md 15). */
import type { AccessRight } from '@tenon/kube'
import type { AccessRule } from '@tenon/provider'
import { defaultGroup } from './names.ts'
import { clusterAPINodeClassKind } from './node-class.ts'

/** In the workload cluster, in addition to the rules of every provider. */
export const workloadRules: readonly AccessRule[] = [
  {
    apiGroups: [clusterAPINodeClassKind.group],
    resources: [clusterAPINodeClassKind.plural, `${clusterAPINodeClassKind.plural}/status`],
    verbs: ['patch'],
  },
]

/** In the management cluster. Tenon creates nothing there, and only patches objects. */
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
  { apiGroups: [defaultGroup], resources: ['machinesets'], verbs: ['list'] },
  { apiGroups: [defaultGroup], resources: ['clusters'], verbs: ['list', 'watch'] },
  // Templates of all infrastructure providers: their kinds differ, but by convention they share a group.
  { apiGroups: [`infrastructure.${defaultGroup}`], resources: ['*'], verbs: ['get'] },
  // To find the served versions of templates.
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get'] },
]

/**
 * Each permission of {@link hubRules}, as an access review.
 * @param namespace of all reads; absent = all namespaces.
 */
export function hubRights(namespace: string | undefined): readonly AccessRight[] {
  return hubRules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.map((verb) => {
          const isWithin = namespace !== undefined && resource !== 'customresourcedefinitions'
          return { group, resource, verb, ...(isWithin && { namespace }) }
        }),
      ),
    ),
  )
}

/** Text for users: `list machines.cluster.x-k8s.io`. */
export function rightText({ group, resource, verb }: AccessRight): string {
  return `${verb} ${resource}.${group}`
}
