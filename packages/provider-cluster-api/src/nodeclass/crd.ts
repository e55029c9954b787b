/** The CustomResourceDefinition of ClusterAPINodeClass (cluster-api.md 2). */
import { conditionsSchema, crd, type CrdSchema, listSchema, objectSchema, textSchema } from '@tenon/api'
import { mostListed } from './matched.ts'
import { clusterAPINodeClassKind } from '../node-class.ts'

const selector: CrdSchema = objectSchema(
  'Narrows the MachineDeployments that are members; all of them without it. It adds none: the label node.cluster.x-k8s.io/karpenter-member is always needed.',
  {
    matchLabels: {
      type: 'object',
      description: 'Labels with the values that they must have.',
      additionalProperties: { type: 'string' },
    },
    matchExpressions: listSchema(
      'Conditions on labels; all must hold.',
      objectSchema(
        'A condition on one label.',
        {
          key: textSchema('Key of the label.'),
          operator: textSchema('How the label is compared with the values.', {
            enum: ['In', 'NotIn', 'Exists', 'DoesNotExist'],
          }),
          values: listSchema('Values for In and NotIn; none for Exists and DoesNotExist.', {
            type: 'string',
          }),
        },
        { required: ['key', 'operator'] },
      ),
    ),
  },
  { 'x-kubernetes-map-type': 'atomic' },
)

const matched: CrdSchema = objectSchema(
  'One MachineDeployment.',
  {
    namespace: textSchema('Its namespace in the management cluster.'),
    name: textSchema('Its name.'),
    instanceType: textSchema('Instance type of its nodes; absent when it is not used.'),
    zone: textSchema('Zone of its nodes, if it is known.'),
    price: textSchema('Price of a Machine for one hour; absent when it is not known.'),
    message: textSchema('Why it is not used, or not now, and what its user may have meant otherwise.'),
  },
  { required: ['namespace', 'name'] },
)

/** The CRD as a plain object, to be created or printed. */
export const clusterAPINodeClassCrd: Readonly<Record<string, unknown>> = crd({
  group: clusterAPINodeClassKind.group,
  version: clusterAPINodeClassKind.version,
  kind: clusterAPINodeClassKind.kind,
  plural: clusterAPINodeClassKind.plural,
  shortNames: ['capinc', 'capincs'],
  categories: ['karpenter'],
  columns: [
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    {
      name: 'Found',
      type: 'string',
      jsonPath: ".status.conditions[?(@.type=='MachineDeploymentsFound')].message",
      priority: 1,
    },
  ],
  description: 'Says which MachineDeployments of Cluster API the nodes of NodePools come from.',
  isSpecOptional: true,
  spec: objectSchema('Which MachineDeployments, and what is done about their Machines.', {
    scalableResourceSelector: selector,
    driftPolicy: textSchema(
      'What is done about Machines whose template has changed since, of MachineDeployments with rollout strategy OnDelete: Replace (default) replaces their nodes within the budgets of the NodePool, Ignore leaves them. All others are rolled by Cluster API.',
      { enum: ['Replace', 'Ignore'] },
    ),
  }),
  status: objectSchema('What was found.', {
    conditions: conditionsSchema(),
    machineDeployments: listSchema(
      'The MachineDeployments that the class matches, in order of namespace and name.',
      matched,
      { maxItems: mostListed },
    ),
  }),
})
