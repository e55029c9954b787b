/** CleverNodeClass, the node class of Clever Cloud (clever-cloud.md 3). */
import type { NodeClass, ResourceType } from '@tenon/api'
import { providerDomain } from '../names.ts'

/** The settings of a NodePool's nodes. */
export interface CleverNodeClass extends NodeClass {
  readonly spec?: {
    /** Labels of every node. */
    readonly labels?: Readonly<Record<string, string>>
  }
}

/** The kind of {@link CleverNodeClass}. */
export const cleverNodeClassKind: ResourceType<CleverNodeClass> = {
  group: providerDomain,
  version: 'v1alpha1',
  kind: 'CleverNodeClass',
  plural: 'clevernodeclasses',
  namespaced: false,
}

/** Conditions on which `Ready` depends. */
export const conditionTypes = {
  validated: 'ValidationSucceeded',
  served: 'NodeGroupAPIServed',
} as const
