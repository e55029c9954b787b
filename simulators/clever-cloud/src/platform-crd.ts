/** The CustomResourceDefinition of NodeGroup as the platform serves it (clever-cloud.md 2, 20). */
import {
  conditionsSchema,
  crd,
  type CrdSchema,
  integerSchema,
  listSchema,
  objectSchema,
  type ResourceType,
  textSchema,
} from '@tenon/api'
import { ApiError, type LocalApi } from '@tenon/devcluster'
import { builtInFlavors, nodeGroupKind } from '@tenon/provider-clever-cloud'

/** Maximum nodes of one group. */
export const mostNodes = 16

const crdKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}

/** Installs the CRD unless it exists. */
export function installNodeGroupKind(api: LocalApi): void {
  const definition = nodeGroupCrd()
  try {
    api.create(crdKind, definition as never)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 409) throw error
  }
}

const reservedPrefixes = ['kubernetes.io/', 'node.kubernetes.io/', 'clever-cloud.com/']

const labelValue = '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'

const unchangeable = (field: string) => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message: `${field} is immutable`,
})

const taints = (description: string): CrdSchema =>
  listSchema(
    description,
    objectSchema(
      'A taint.',
      {
        key: textSchema('Its key.', { maxLength: 316 }),
        value: textSchema('Its value.', { maxLength: 63 }),
        effect: textSchema('What it does.', { enum: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] }),
      },
      { required: ['key', 'effect'] },
    ),
    { maxItems: 50 },
  )

export function nodeGroupCrd(): Readonly<Record<string, unknown>> {
  return crd({
    ...nodeGroupKind,
    description: 'A number of like nodes of the cluster.',
    scale: { specReplicasPath: '.spec.nodeCount', statusReplicasPath: '.status.nodeCount' },
    columns: [
      { name: 'Flavor', type: 'string', jsonPath: '.spec.flavor' },
      { name: 'Wanted', type: 'integer', jsonPath: '.spec.nodeCount' },
      { name: 'Nodes', type: 'integer', jsonPath: '.status.nodeCount' },
      { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ],
    spec: objectSchema(
      'What is wanted.',
      {
        flavor: textSchema('Size of the nodes.', { enum: builtInFlavors.map(({ name }) => name) }),
        nodeCount: integerSchema('Number of nodes.', { format: 'int32', minimum: 0, maximum: mostNodes }),
        labels: {
          type: 'object',
          description: 'Labels of the nodes.',
          additionalProperties: { type: 'string', maxLength: 63, pattern: labelValue },
          maxProperties: 100,
          'x-kubernetes-validations': reservedPrefixes.map((prefix) => ({
            rule: `self.all(key, !key.startsWith('${prefix}'))`,
            message: `labels must not begin with ${prefix}`,
          })),
        },
        taints: taints('Taints of the nodes.'),
      },
      {
        required: ['flavor', 'nodeCount'],
        'x-kubernetes-validations': [
          { rule: 'self.flavor == oldSelf.flavor', message: 'flavor is immutable' },
          unchangeable('labels'),
          unchangeable('taints'),
        ],
      },
    ),
    status: objectSchema('What is.', {
      conditions: conditionsSchema(true),
      nodeCount: integerSchema('Nodes there are.', { format: 'int32' }),
      targetNodeCount: integerSchema('Nodes there will be.', { format: 'int32' }),
      phase: textSchema('Where the platform stands with it.'),
      upstreamId: textSchema('Its id at the platform.'),
      labels: {
        type: 'object',
        description: 'Labels of the nodes.',
        additionalProperties: { type: 'string' },
      },
      taints: taints('Taints of the nodes.'),
    }),
  })
}
