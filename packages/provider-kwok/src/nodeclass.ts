/** KWOKNodeClass, the node class of the simulated provider (operations.md 12.1). */
import {
  conditionsSchema,
  crd,
  type NodeClass,
  objectSchema,
  type ResourceType,
  textSchema,
} from '@tenon/api'

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

const {
  'x-kubernetes-list-type': _type,
  'x-kubernetes-list-map-keys': _keys,
  ...plainConditions
} = conditionsSchema()

/** CustomResourceDefinition of KWOKNodeClass; an object without status counts as ready. */
export const kwokNodeClassCrd = crd({
  group: kwokNodeClassKind.group,
  version: kwokNodeClassKind.version,
  kind: kwokNodeClassKind.kind,
  plural: kwokNodeClassKind.plural,
  shortNames: ['kwoknc', 'kwokncs'],
  categories: ['karpenter'],
  columns: [],
  description: 'Settings of simulated nodes.',
  isSpecOptional: true,
  spec: objectSchema('What is wanted.', {
    nodeRegistrationDelay: textSchema('How long after its launch a simulated node appears.', {
      pattern: '^([0-9]+(s|m|h))+$',
    }),
  }),
  status: objectSchema(
    'What is.',
    { conditions: plainConditions },
    {
      default: {
        conditions: [
          {
            type: 'Ready',
            status: 'True',
            reason: 'Ready',
            message: '',
            lastTransitionTime: '2024-01-01T01:01:01Z',
          },
        ],
      },
    },
  ),
})
