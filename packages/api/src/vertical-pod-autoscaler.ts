/** VerticalPodAutoscalers, as far as something reads them: what they will have pods ask for (buffers-and-dra.md 4). */
import type { KubeObject, ResourceList } from './objects.ts'
import type { ResourceType } from './resources.ts'

/** More CPU while a container starts. */
interface StartupBoost {
  readonly cpu?: {
    readonly type?: string
    /** Of what is recommended; with type `Factor`. */
    readonly factor?: number
    /** On top of what is recommended; with type `Quantity`. */
    readonly quantity?: string | number
  }
}

/** What a user lets the recommender decide about a container; `*` is for those without a policy of their own. */
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
