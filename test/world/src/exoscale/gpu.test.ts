/** GPU pods get an instance with enough GPUs, and of those the cheapest. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeObject, karpenterKinds, type NodePool } from '@tenon/api'
import { deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

const minute = 60_000
const gpuTaint = { key: 'nvidia.com/gpu', value: 'true', effect: 'NoSchedule' } as const

const gpuFamilies = ['gpu', 'gpu2', 'gpu3', 'gpua30', 'gpua5000', 'gpu3080ti', 'gpurtx6000pro']

/** One pod that asks for `gpus` and selects its node by the label of the GPU pool. */
function aGpuWorkload(gpus: number): KubeObject {
  const labels = { app: 'cuda' }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'cuda', namespace: 'default' },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          nodeSelector: { 'workload-type': 'gpu' },
          tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }],
          containers: [
            { name: 'cuda', image: 'cuda', resources: { limits: { 'nvidia.com/gpu': String(gpus) } } },
          ],
        },
      },
    },
  }
  return object
}

/** Every GPU type of the zone, whatever its family; no other pod may come. */
function aGpuPool(): NodePool {
  const pool = aPool('gpu', [])
  const { template } = pool.spec
  return {
    ...pool,
    spec: {
      ...pool.spec,
      weight: 10,
      template: {
        metadata: { labels: { 'workload-type': 'gpu' } },
        spec: {
          ...template.spec,
          requirements: [{ key: 'exoscale.com/instance-family', operator: 'In', values: gpuFamilies }],
          taints: [gpuTaint],
        },
      },
    },
  }
}

for (const [zone, gpus, type, count] of [
  // Beside gpua30 the zone has the older gpu family, whose price is not known.
  ['ch-gva-2', 1, 'gpua30.small', '1'],
  ['ch-gva-2', 2, 'gpua30.medium', '2'],
  ['ch-gva-2', 4, 'gpua30.huge', '4'],
  // Two families with prices, and no size with three GPUs.
  ['at-vie-2', 1, 'gpu3080ti.small', '1'],
  ['at-vie-2', 3, 'gpu3080ti.large', '4'],
] as const) {
  test(`a pod with ${gpus} GPU in ${zone} runs on ${type}, the cheapest instance that has them`, async () => {
    const world = await World.start({ seed: 5, provider: 'exoscale', zone })
    world.create(
      nodeClassKind,
      aNodeClass('gpu', { imageTemplateSelector: { variant: 'nvidia' }, diskSize: 100 }),
    )
    world.create(nodeClassKind, aNodeClass('standard'))
    world.create(karpenterKinds.nodePool, aGpuPool())
    // Higher weight, but without GPUs: it must not be tried for these pods.
    world.create(karpenterKinds.nodePool, aPool('standard', ['standard.large', 'cpu.titan'], { weight: 50 }))
    const running = await world.startOperator()
    world.create(deploymentKind, aGpuWorkload(gpus))
    const pod = () => world.pods().find(({ metadata }) => metadata.labels?.['app'] === 'cuda')
    assert.ok(
      await world.clock.advanceUntil(() => pod()?.status?.phase === 'Running', 10 * minute),
      'the pod runs',
    )

    const instances = world.cluster.cloud.instances()
    assert.deepEqual(
      instances.map((instance) => instance.type),
      [type],
    )
    const node = world.nodes().find(({ metadata }) => metadata.name === pod()?.spec?.nodeName)
    assert.equal(node?.status?.allocatable?.['nvidia.com/gpu'], count)
    assert.equal(node?.metadata.labels?.['node.kubernetes.io/instance-type'], type)
    assert.equal(node?.metadata.labels?.['exoscale.com/instance-family'], type.split('.')[0])
    assert.equal(node?.metadata.labels?.['workload-type'], 'gpu')
    assert.deepEqual(
      node?.spec?.taints?.filter(({ key }) => key === gpuTaint.key),
      [gpuTaint],
    )
    await world.bury(running)
    await world.stop()
  })
}
