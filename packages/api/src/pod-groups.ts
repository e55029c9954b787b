/**
 * The kinds that define groups of pods that run together or not at all (gangs.md 5, 6). Three of them are
 * called PodGroup.
 */
import type { Condition, KubeObject } from './objects.ts'
import type { ResourceType } from './resources.ts'

/** The PodGroup of Kubernetes, with the fields of all served versions. */
export interface PodGroup extends KubeObject {
  readonly spec?: {
    readonly schedulingPolicy?: {
      readonly basic?: object | null
      readonly gang?: { readonly minCount?: number } | null
    }
    readonly schedulingConstraints?: { readonly topology?: readonly { readonly key?: string }[] } | null
    /** An object in newer versions; in v1alpha2 `Pod` or `PodGroup`. */
    readonly disruptionMode?: string | { readonly single?: object; readonly all?: object } | null
    readonly priority?: number
    /** ResourceClaims that all pods of the group share if they have a claim of the same name and reference. */
    readonly resourceClaims?: readonly {
      readonly name: string
      readonly resourceClaimName?: string
      readonly resourceClaimTemplateName?: string
    }[]
  }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    readonly resourceClaimStatuses?: readonly { readonly name: string; readonly resourceClaimName?: string }[]
  }
}

/** The PodGroup of the coscheduling plugin and of Volcano. */
export interface MemberGroup extends KubeObject {
  readonly spec?: { readonly minMember?: number }
}

const plural = 'podgroups'
const podGroup = (version: string) =>
  ({
    group: 'scheduling.k8s.io',
    version,
    kind: 'PodGroup',
    plural,
    namespaced: true,
  }) as ResourceType<PodGroup>
const memberGroup = (group: string, version: string) =>
  ({ group, version, kind: 'PodGroup', plural, namespaced: true }) as ResourceType<MemberGroup>

/** Of Kubernetes' own kind, a cluster serves one of these versions; the newest comes first. */
export const podGroupKinds = {
  kubernetes: ['v1beta1', 'v1alpha3', 'v1alpha2'].map(podGroup),
  coscheduling: memberGroup('scheduling.x-k8s.io', 'v1alpha1'),
  volcano: memberGroup('scheduling.volcano.sh', 'v1beta1'),
} as const
