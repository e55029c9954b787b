/** The fields of VerticalPodAutoscalers that determine what they make pods request (buffers-and-dra.md 4). */
import type { KubeObject, ResourceList } from './objects.ts'
import type { ResourceType } from './resources.ts'

/** Additional CPU while a container starts. */
interface StartupBoost {
  readonly cpu?: {
    readonly type?: string
    /** For type `Factor`: multiplies the recommendation. */
    readonly factor?: number
    /** For type `Quantity`: is added to the recommendation. */
    readonly quantity?: string | number
  }
}

/** Limits of the recommender for a container; `*` applies to containers without a policy of their own. */
export interface ContainerResourcePolicy {
  readonly containerName?: string
  readonly mode?: string
  readonly minAllowed?: ResourceList
  readonly maxAllowed?: ResourceList
  readonly controlledResources?: readonly string[]
  readonly startupBoost?: StartupBoost
}

export interface VerticalPodAutoscaler extends KubeObject {
  readonly spec?: {
    readonly targetRef?: { readonly apiVersion?: string; readonly kind?: string; readonly name?: string }
    readonly updatePolicy?: { readonly updateMode?: string }
    readonly resourcePolicy?: { readonly containerPolicies?: readonly ContainerResourcePolicy[] }
    readonly startupBoost?: StartupBoost
  }
  readonly status?: {
    readonly recommendation?: {
      readonly containerRecommendations?: readonly {
        readonly containerName: string
        readonly target?: ResourceList
      }[]
    }
  }
}

export const verticalPodAutoscalerKind: ResourceType<VerticalPodAutoscaler> = {
  group: 'autoscaling.k8s.io',
  version: 'v1',
  kind: 'VerticalPodAutoscaler',
  plural: 'verticalpodautoscalers',
  namespaced: true,
}
