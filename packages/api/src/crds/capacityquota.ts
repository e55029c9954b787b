import { conditions, crd, integer, list, object, quantities, text } from './schema.ts'

const amounts = quantities('Amounts by resource; nodes is the number of nodes.')

/** CustomResourceDefinition of CapacityQuota, which Cluster Autoscaler has too (quotas.md 1). */
export const capacityQuotaCrd = crd({
  group: 'autoscaling.x-k8s.io',
  version: 'v1beta1',
  deprecatedVersions: ['v1alpha1'],
  kind: 'CapacityQuota',
  plural: 'capacityquotas',
  shortNames: ['cq'],
  categories: ['autoscaling'],
  description: 'The most that all nodes which match a selector may have together.',
  columns: [
    { name: 'Nodes', type: 'string', jsonPath: '.spec.limits.resources.nodes' },
    { name: 'CPU', type: 'string', jsonPath: '.spec.limits.resources.cpu' },
    { name: 'Used-CPU', type: 'string', jsonPath: '.status.used.resources.cpu' },
    { name: 'Memory', type: 'string', jsonPath: '.spec.limits.resources.memory' },
    { name: 'Used-Memory', type: 'string', jsonPath: '.status.used.resources.memory' },
    {
      name: 'Valid',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="cluster-autoscaler.kubernetes.io/valid")].status',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  spec: object(
    'What is limited.',
    {
      selector: object(
        'Selects the nodes that count. Empty or absent, all do.',
        {
          matchLabels: {
            type: 'object',
            description: 'Labels that a node must have.',
            additionalProperties: { type: 'string' },
          },
          matchExpressions: list(
            'Conditions on the labels of a node, all of which must hold.',
            object(
              'A condition on one label.',
              {
                key: text('The label.'),
                operator: text('In, NotIn, Exists or DoesNotExist.'),
                values: list('Values for In and NotIn.', { type: 'string' }),
              },
              { required: ['key', 'operator'] },
            ),
          ),
        },
        { 'x-kubernetes-map-type': 'atomic' },
      ),
      limits: object(
        'How much there may be.',
        {
          resources: {
            ...amounts,
            additionalProperties: {
              ...amounts.additionalProperties,
              // The API server estimates the cost of the rule from it.
              maxLength: 32,
              'x-kubernetes-validations': [
                {
                  // isInteger() of the API server denies 1Pi.
                  rule: "type(self) == int ? self >= 0 : !self.endsWith('m') && [quantity(self).asApproximateFloat()].all(x, x >= 0.0 && double(int(x)) == x)",
                  message: 'All resource quantities must be non-negative integers.',
                },
              ],
            },
            // Kubernetes 1.33 takes each value for as large as a request, and refuses the rule for more than 15 of them.
            maxProperties: 15,
            'x-kubernetes-validations': [
              {
                rule: 'self.all(name, name.size() <= 63)',
                message: 'Resource names must have at most 63 characters.',
              },
            ],
          },
        },
        { required: ['resources'] },
      ),
    },
    { required: ['limits'] },
  ),
  status: object('What is.', {
    used: object('How much the nodes that match have now.', { resources: amounts }),
    observedGeneration: integer('Generation of the quota that was looked at.', {
      format: 'int64',
      minimum: 0,
    }),
    conditions: conditions(),
  }),
})
