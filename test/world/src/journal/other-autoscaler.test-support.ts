/** Another autoscaler at work in the cluster: it leaves the objects that the Go Karpenter leaves. */
import { type Condition, formatResources, type InstanceType, karpenterKinds, kinds, labels } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { Stage } from '../testing/stage.test-support.ts'

/** Brings up node `node-NAME` of claim NAME. */
export function launch(stage: Stage, name: string, type: InstanceType): void {
  const at = rfc3339(stage.now)
  const amounts = formatResources(type.capacity)
  const isSo = (condition: string): Condition => ({
    type: condition,
    status: 'True',
    reason: condition,
    message: '',
    lastTransitionTime: at,
  })
  const tags = {
    [labels.nodePool]: 'default',
    [labels.os]: 'linux',
    [labels.arch]: 'amd64',
    [labels.instanceType]: type.name,
    [labels.zone]: 'zone-1',
    [labels.capacityType]: 'on-demand',
    'karpenter.kwok.sh/kwoknodeclass': 'default',
  }
  const providerID = `fake://${name}`
  stage.world.create(karpenterKinds.nodeClaim, stage.aClaim(name, {}, { labels: tags }))
  const conditions = ['Launched', 'Registered', 'Initialized', 'Ready', 'Consolidatable'].map(isSo)
  const claimStatus = {
    providerID,
    nodeName: `node-${name}`,
    capacity: amounts,
    allocatable: amounts,
    conditions,
  }
  stage.patch(karpenterKinds.nodeClaim, name, { status: claimStatus }, 'status')
  stage.world.create(kinds.node, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `node-${name}`,
      labels: { ...tags, [labels.registered]: 'true', [labels.initialized]: 'true' },
    },
    spec: { providerID },
  })
  const nodeStatus = { capacity: amounts, allocatable: amounts, conditions: [isSo('Ready')] }
  stage.patch(kinds.node, `node-${name}`, { status: nodeStatus }, 'status')
}

/** Takes the node and its claim away. */
export function remove(stage: Stage, name: string): void {
  stage.delete(kinds.node, `node-${name}`)
  stage.delete(karpenterKinds.nodeClaim, name)
}
