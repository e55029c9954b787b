import { conditionsSchema, crd, objectSchema, textSchema } from '@tenon/api'
import { kwokNodeClassKind } from './nodeclass.ts'

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
