/** Node classes and pools of Exoscale for tests. */
import type { KubeObject, NodePool, ResourceType } from '@tenon/api'

export const nodeClassKind: ResourceType = {
  group: 'karpenter.exoscale.com',
  version: 'v1',
  kind: 'ExoscaleNodeClass',
  plural: 'exoscalenodeclasses',
  namespaced: false,
}

/** A node class whose image follows the control plane unless `spec` says otherwise. */
export function aNodeClass(name: string, spec: object = {}): KubeObject {
  const image = 'templateID' in spec ? {} : { imageTemplateSelector: {} }
  const object = {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: { name },
    spec: { ...image, ...spec },
  }
  return object
}

/** A pool of the node class of its name that launches `types`. */
export function aPool(
  name: string,
  types: readonly string[],
  spec: Partial<NodePool['spec']> = {},
): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name },
          requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: types }],
        },
      },
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '30s', budgets: [{ nodes: '100%' }] },
      ...spec,
    },
  }
}
