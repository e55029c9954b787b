/** KWOKNodeClass, the node class of the simulated provider (operations.md 12.1). */
import type { NodeClass, ResourceType } from '@tenon/api'

/** How simulated nodes behave. */
export interface KwokNodeClass extends NodeClass {
  readonly spec?: { readonly nodeRegistrationDelay?: string }
}

/** The kind of {@link KwokNodeClass}. */
export const kwokNodeClassKind: ResourceType<KwokNodeClass> = {
  group: 'karpenter.kwok.sh',
  version: 'v1alpha1',
  kind: 'KWOKNodeClass',
  plural: 'kwoknodeclasses',
  namespaced: false,
}
