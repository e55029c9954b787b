/** The manifests of Exoscale's public documentation, with the settings they come with. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, type NodePool, type ResourceType } from '@tenon/api'
import { aDeployment, deploymentKind, World } from '../world.ts'

const nodeClassKind: ResourceType = {
  group: 'karpenter.exoscale.com',
  version: 'v1',
  kind: 'ExoscaleNodeClass',
  plural: 'exoscalenodeclasses',
  namespaced: false,
}
const minutes = 60_000

function aNodeClass(name: string, spec: object): KubeObject {
  const object = {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: { name },
    spec: { securityGroupSelectorTerms: [], privateNetworkSelectorTerms: [], ...spec },
  }
  return object
}

type Template = NodePool['spec']['template']['spec']

/** A pool as documented: half an hour of life, a taint that only registration takes off. */
function aPool(
  name: string,
  weight: number,
  types: readonly string[],
  disruption: NodePool['spec']['disruption'] & object,
  template: Partial<Template> = {},
): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      weight,
      template: {
        metadata: { labels: { nodepool: name } },
        spec: {
          nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name },
          startupTaints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }],
          requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: types }],
          expireAfter: '30m',
          ...template,
        },
      },
      disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', ...disruption },
    },
  }
}

function aGpuDeployment(replicas: number): KubeObject {
  const labels = { app: 'gpu' }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'gpu', namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }],
          containers: [{ name: 'cuda', image: 'cuda', resources: { limits: { 'nvidia.com/gpu': '1' } } }],
        },
      },
    },
  }
  return object
}

for (const variant of ['image selector', 'template id'] as const) {
  test(`200 pods of mixed requests run on the documented pools (${variant}), and every instance goes with them`, async () => {
    const world = await World.start({ seed: 3, provider: 'exoscale' })
    const image = (kind: 'standard' | 'nvidia') =>
      variant === 'image selector'
        ? { imageTemplateSelector: kind === 'standard' ? {} : { variant: kind } }
        : { templateID: world.cluster.cloud.publishTemplate({ version: '1.34.1', variant: kind }) }
    world.create(nodeClassKind, aNodeClass('standard', { ...image('standard'), diskSize: 100 }))
    world.create(nodeClassKind, aNodeClass('gpu', { ...image('nvidia'), diskSize: 50 }))
    world.create(
      karpenterKinds.nodePool,
      aPool('standard', 50, ['standard.medium', 'standard.large', 'standard.extra-large'], {
        consolidateAfter: '30m',
        budgets: [{ nodes: '10%' }],
      }),
    )
    world.create(
      karpenterKinds.nodePool,
      aPool(
        'gpu',
        10,
        ['gpua30.small', 'gpua30.medium', 'gpua30.large'],
        { consolidateAfter: '1m', budgets: [{ nodes: '100%' }] },
        { taints: [{ key: 'nvidia.com/gpu', value: 'true', effect: 'NoSchedule' }] },
      ),
    )
    const running = await world.startOperator()
    world.create(deploymentKind, aDeployment('small', 80, { cpu: '100m', memory: '128Mi' }))
    world.create(deploymentKind, aDeployment('middle', 70, { cpu: '500m', memory: '1Gi' }))
    world.create(deploymentKind, aDeployment('large', 48, { cpu: '1', memory: '3Gi' }))
    world.create(deploymentKind, aGpuDeployment(2))
    const isRunning = () => world.pods().filter((pod) => pod.status?.phase === 'Running').length === 200
    assert.ok(await world.clock.advanceUntil(isRunning, 10 * minutes), 'all 200 pods run')
    const pools = new Set(world.claims().map((claim) => claim.metadata.labels?.['nodepool']))
    assert.deepEqual(pools, new Set(['gpu', 'standard']))

    for (const name of ['small', 'middle', 'large', 'gpu']) world.scale(name, 0)
    const isEmpty = () =>
      world.claims().length === 0 &&
      world.nodes().length === 0 &&
      world.cluster.cloud.instances().length === 0
    assert.ok(await world.clock.advanceUntil(isEmpty, 60 * minutes), 'no claim, node or instance is left')
    await world.bury(running)
    await world.stop()
  })
}
