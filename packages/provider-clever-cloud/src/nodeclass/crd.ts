/** The CustomResourceDefinition of CleverNodeClass (clever-cloud.md 3). */
import { conditionsSchema, crd, objectSchema } from '@tenon/api'
import { cleverNodeClassKind } from './types.ts'
import { platformPrefixes } from './validation.ts'

const isReserved = platformPrefixes.map((prefix) => `key.startsWith('${prefix}')`).join(' || ')

/** The CRD as a plain object, to be created or printed. */
export const cleverNodeClassCrd: Readonly<Record<string, unknown>> = crd({
  group: cleverNodeClassKind.group,
  version: cleverNodeClassKind.version,
  kind: cleverNodeClassKind.kind,
  plural: cleverNodeClassKind.plural,
  shortNames: ['cnc', 'cncs'],
  categories: ['karpenter'],
  columns: [
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  description: 'Configures the nodes that NodePools launch on Clever Cloud.',
  isSpecOptional: true,
  spec: objectSchema('How nodes are made.', {
    labels: {
      type: 'object',
      description: 'Labels of every node, there from the moment it joins. A change replaces the nodes.',
      additionalProperties: { type: 'string' },
      // The controller checks the length of values, so that stored objects can still be edited.
      'x-kubernetes-validations': [
        {
          rule: `self.all(key, !(${isReserved}))`,
          message: `keys must not start with ${platformPrefixes.join(', ')}: Clever Cloud refuses them`,
        },
      ],
    },
  }),
  status: objectSchema('What was found.', { conditions: conditionsSchema() }),
})
