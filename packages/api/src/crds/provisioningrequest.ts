import { conditions, crd, integer, list, object, text } from './schema.ts'

const subdomain = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'
const name = (description: string) => text(description, { maxLength: 253, pattern: subdomain })
const immutable = { 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'Value is immutable' }] }

/** CustomResourceDefinition of ProvisioningRequest, which Cluster Autoscaler has too (gangs.md 1). */
export const provisioningRequestCrd = crd({
  group: 'autoscaling.x-k8s.io',
  version: 'v1',
  deprecatedVersions: ['v1beta1'],
  kind: 'ProvisioningRequest',
  plural: 'provisioningrequests',
  isNamespaced: true,
  shortNames: ['provreq', 'provreqs'],
  columns: [{ name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }],
  description: 'A request for room for all pods of some sets at once, before the pods are made.',
  spec: object(
    'What is wanted.',
    {
      podSets: list(
        'The pods that there is to be room for.',
        object(
          'Pods that are alike.',
          {
            podTemplateRef: object(
              'The PodTemplate of this namespace that the pods are made from.',
              { name: name('Name of the PodTemplate.') },
              { required: ['name'] },
            ),
            count: integer('How many pods.', { format: 'int32', minimum: 1 }),
          },
          { required: ['podTemplateRef', 'count'] },
        ),
        { minItems: 1, maxItems: 32, ...immutable },
      ),
      provisioningClassName: { ...name('Which program serves the request, and how.'), ...immutable },
      parameters: {
        type: 'object',
        description: 'Parameters of the provisioning class.',
        additionalProperties: { type: 'string', maxLength: 255 },
        maxProperties: 100,
        ...immutable,
      },
    },
    { required: ['podSets', 'provisioningClassName'] },
  ),
  status: object('What is.', {
    conditions: conditions(),
    provisioningClassDetails: {
      type: 'object',
      description: 'What the provisioning class tells of the nodes.',
      additionalProperties: { type: 'string', maxLength: 32768 },
      maxProperties: 64,
    },
  }),
})
