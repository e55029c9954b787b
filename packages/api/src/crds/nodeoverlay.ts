import { conditions, crd, integer, object, quantities, text } from './schema.ts'
import { overlayRequirementsSchema } from './template.ts'

/** CustomResourceDefinition of NodeOverlay (api.md 5). */
export const nodeOverlayCrd = crd({
  group: 'karpenter.sh',
  version: 'v1alpha1',
  kind: 'NodeOverlay',
  plural: 'nodeoverlays',
  shortNames: ['overlays'],
  categories: ['karpenter'],
  description:
    'What instance types cost and hold, where the user knows it better than the cloud: discounts, licences, devices.',
  columns: [
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Weight', type: 'integer', jsonPath: '.spec.weight', priority: 1 },
  ],
  spec: object(
    'What is wanted.',
    {
      requirements: overlayRequirementsSchema(),
      price: text('Price of one hour, in place of the one the cloud states.', {
        pattern: '^\\d+(\\.\\d+)?$',
      }),
      priceAdjustment: text(
        'What is added to the price of one hour, or with a percent sign the part of it that is added. A sign is needed; the price never falls below 0.',
        { pattern: '^([+-]\\d*\\.?\\d+|\\+\\d*\\.?\\d+%|-\\d{1,2}(\\.\\d+)?%|-100%)$' },
      ),
      capacity: {
        ...quantities('Resources that the instances hold beside those the cloud tells of.'),
        'x-kubernetes-validations': [
          {
            rule: 'self.all(x, !(x in ["cpu", "memory", "ephemeral-storage", "pods"]))',
            message: 'cpu, memory, ephemeral-storage and pods cannot be overlaid',
          },
        ],
      },
      weight: integer('Overlays of higher weight win over others; 0 when absent.', {
        format: 'int32',
        minimum: 1,
        maximum: 10_000,
      }),
    },
    {
      required: ['requirements'],
      'x-kubernetes-validations': [
        {
          rule: '!has(self.price) || !has(self.priceAdjustment)',
          message: "'price' and 'priceAdjustment' exclude each other",
        },
      ],
    },
  ),
  status: object('What is.', { conditions: conditions() }),
})
