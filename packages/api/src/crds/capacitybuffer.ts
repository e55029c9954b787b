import { conditions, crd, integer, object, quantities, text } from './schema.ts'

const name = (description: string) => text(description, { minLength: 1 })
const count = (description: string) => integer(description, { format: 'int32', minimum: 0 })

/** CustomResourceDefinition of CapacityBuffer, which Cluster Autoscaler has too (api.md 6). */
export const capacityBufferCrd = crd({
  group: 'autoscaling.x-k8s.io',
  version: 'v1beta1',
  kind: 'CapacityBuffer',
  plural: 'capacitybuffers',
  isNamespaced: true,
  shortNames: ['cb'],
  categories: ['autoscaling'],
  description: 'Room for so many more pods of a kind, on nodes that are kept ready for them.',
  columns: [
    { name: 'Strategy', type: 'string', jsonPath: '.spec.provisioningStrategy' },
    { name: 'PodTemplate', type: 'string', jsonPath: '.status.podTemplateRef.name' },
    { name: 'Replicas', type: 'integer', jsonPath: '.status.replicas' },
    { name: 'ConditionsType', type: 'string', jsonPath: '.status.conditions[*].type' },
    { name: 'ConditionsStatus', type: 'string', jsonPath: '.status.conditions[*].status' },
    { name: 'ConditionsReason', type: 'string', jsonPath: '.status.conditions[*].reason' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  spec: object(
    'What is wanted.',
    {
      provisioningStrategy: text('How the room is kept; every strategy is served as active capacity.', {
        default: 'buffer.x-k8s.io/active-capacity',
      }),
      podTemplateRef: object(
        'The PodTemplate of this namespace that the room is for.',
        { name: name('Name of the PodTemplate.') },
        { required: ['name'] },
      ),
      scalableRef: object(
        'The workload of this namespace whose pods the room is for: a Deployment, StatefulSet or ReplicaSet.',
        {
          apiGroup: text('Group of the workload; apps when empty.'),
          kind: name('Kind of the workload.'),
          name: name('Name of the workload.'),
        },
        { required: ['kind', 'name'] },
      ),
      replicas: count('Pods that there is to be room for. With percentage, the larger number counts.'),
      percentage: count(
        'Pods that there is to be room for, in percent of the replicas of the workload, rounded up; only with scalableRef. It may exceed 100.',
      ),
      limits: quantities(
        'The most that all of these pods together may ask for: it caps the number; alone, it is the number.',
      ),
    },
    {
      'x-kubernetes-validations': [
        {
          rule: '!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)',
          message: "'podTemplateRef' needs 'replicas' or 'limits'",
        },
        {
          rule: '!(has(self.podTemplateRef) && has(self.scalableRef))',
          message: "'podTemplateRef' and 'scalableRef' exclude each other",
        },
      ],
    },
  ),
  status: object('What is.', {
    podTemplateRef: object(
      'The PodTemplate that was found.',
      { name: name('Name of the PodTemplate.') },
      { required: ['name'] },
    ),
    podTemplateGeneration: integer('Generation of the PodTemplate that was read.', { format: 'int64' }),
    replicas: integer('Pods that there is to be room for.', { format: 'int32' }),
    provisioningStrategy: text('The strategy of the spec.'),
    conditions: conditions(),
  }),
})
