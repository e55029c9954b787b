import { conditions, crd, object, quantities, text } from './schema.ts'
import { templateSpecProperties } from './template.ts'

const label = (key: string) => `.metadata.labels.${key.replaceAll('.', '\\.')}`
const condition = (type: string) => `.status.conditions[?(@.type=="${type}")].status`

/** CustomResourceDefinition of NodeClaim (api.md 4). */
export const nodeClaimCrd = crd({
  group: 'karpenter.sh',
  version: 'v1',
  kind: 'NodeClaim',
  plural: 'nodeclaims',
  categories: ['karpenter'],
  description: 'One instance: asked for, launched, registered as a node, and ended with this object.',
  columns: [
    { name: 'Type', type: 'string', jsonPath: label('node.kubernetes.io/instance-type') },
    { name: 'Capacity', type: 'string', jsonPath: label('karpenter.sh/capacity-type') },
    { name: 'Zone', type: 'string', jsonPath: label('topology.kubernetes.io/zone') },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName' },
    { name: 'Ready', type: 'string', jsonPath: condition('Ready') },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'ImageID', type: 'string', jsonPath: '.status.imageID', priority: 1 },
    { name: 'ID', type: 'string', jsonPath: '.status.providerID', priority: 1 },
    { name: 'NodePool', type: 'string', jsonPath: label('karpenter.sh/nodepool'), priority: 1 },
    { name: 'NodeClass', type: 'string', jsonPath: '.spec.nodeClassRef.name', priority: 1 },
    { name: 'Drifted', type: 'string', jsonPath: condition('Drifted'), priority: 1 },
  ],
  spec: object(
    'What is wanted.',
    {
      ...templateSpecProperties(false),
      resources: object('What the instance must hold.', {
        requests: quantities('Least amounts, the pods meant for it and their daemon pods summed up.'),
      }),
    },
    {
      required: ['nodeClassRef', 'requirements'],
      'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'spec is immutable' }],
    },
  ),
  status: object('What is.', {
    providerID: text('The instance as the cloud names it; equals the provider ID of its Node.'),
    nodeName: text('Name of the Node.'),
    imageID: text('Image that the instance runs.'),
    capacity: quantities('What the instance was expected to hold when it was launched.'),
    allocatable: quantities('What of it was expected to be left for pods.'),
    lastPodEventTime: text('When a pod last came to the node or left it.', { format: 'date-time' }),
    conditions: conditions(true),
  }),
})
