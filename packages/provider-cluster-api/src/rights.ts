/** The RBAC rules that Tenon needs in each cluster (cluster-api.md 15). */
import type { AccessRight } from '@tenon/kube'
import type { AccessRule } from '@tenon/provider'
import { defaultGroup } from './names.ts'
import { clusterAPINodeClassKind } from './node-class.ts'

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
  { apiGroups: [defaultGroup], resources: ['machinesets'], verbs: ['list'] },
  { apiGroups: [defaultGroup], resources: ['clusters'], verbs: ['list', 'watch'] },
  // Templates of every infrastructure provider: their kinds differ, their group is by convention the same.
  { apiGroups: [`infrastructure.${defaultGroup}`], resources: ['*'], verbs: ['get'] },
  // Which versions of templates are served.
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get'] },
]

/** Each right of {@link hubRules}, as a hub is asked for it. @param namespace that all is read in; everywhere without it. */
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

/** As users read it: `list machines.cluster.x-k8s.io`. */
export function rightText({ group, resource, verb }: AccessRight): string {
  return `${verb} ${resource}.${group}`
}
