import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TemplateFacts } from '../catalogue/template-facts.ts'
import { exampleOf, groupCapacityOf } from './example.ts'
import type { Scalable } from './scalable.ts'

const domain = 'capacity.cluster-autoscaler.kubernetes.io'

/** A MachineDeployment with capacity annotations, without their domain. */
function aResource(annotations: Readonly<Record<string, string>>, template: object = {}): Scalable {
  const full = Object.entries(annotations).map(([key, value]) => [`${domain}/${key}`, value])
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    metadata: { name: 'md', namespace: 'a', annotations: Object.fromEntries(full) },
    spec: { template },
  }
}

const sized = { cpu: '4', memory: '16Gi' } as const

function example(object: Scalable, facts?: TemplateFacts, architecture: 'amd64' | 's390x' = 'amd64') {
  const capacity = groupCapacityOf(object, facts)
  if (capacity.kind === 'unknown') return assert.fail(capacity.reason)
  const warnings: string[] = []
  return { ...exampleOf(object, facts, capacity.capacity, architecture, warnings), warnings }
}

describe('what the first Node of a group will be', () => {
  test('CAG-43 the annotations tell every amount, and pods are 110', () => {
    const { node } = example(
      aResource({
        cpu: '16',
        memory: '128G',
        'ephemeral-disk': '100Gi',
        'gpu-type': 'nvidia.com/gpu',
        'gpu-count': '2',
      }),
    )
    assert.deepEqual(node.status?.capacity, {
      cpu: '16',
      memory: '125000000Ki',
      'ephemeral-storage': '100Gi',
      'nvidia.com/gpu': '2',
      pods: '110',
    })
  })

  test('CAG-44 an annotation wins over the template by resource, and 110 over its pods', () => {
    const facts = { capacity: { cpu: 2, memory: 4 * 1024 ** 3, pods: 50 } }
    const { node } = example(aResource({ cpu: '4' }), facts)
    assert.deepEqual(node.status?.capacity, { cpu: '4', memory: '4Gi', pods: '110' })
  })

  test('CAG-45 an annotation that cannot be read leaves the capacity unknown, by name', () => {
    const capacity = groupCapacityOf(aResource({ ...sized, maxPods: '1k' }), undefined)
    assert.ok(capacity.kind === 'unknown' && capacity.reason.includes(`${domain}/maxPods is "1k"`))
    assert.equal(groupCapacityOf(aResource({ ...sized, cpu: '0' }), undefined).kind, 'unknown')
  })

  test('CAG-47 labels of the Machine template reach the Node if Cluster API propagates them', () => {
    const labels = { 'node-restriction.kubernetes.io/type': 't', 'example.com/other': 'x' }
    const { node } = example(aResource(sized, { metadata: { labels } }))
    assert.equal(node.metadata.labels?.['node-restriction.kubernetes.io/type'], 't')
    assert.equal(node.metadata.labels?.['example.com/other'], undefined)
  })

  test('CAG-48 the architecture is that of annotation, template, or environment, in this order', () => {
    const arch = 'kubernetes.io/arch'
    const facts = { capacity: {}, architecture: 'arm64' }
    const of = (...parts: Parameters<typeof example>) => example(...parts).node.metadata.labels?.[arch]
    assert.equal(of(aResource(sized), facts), 'arm64')
    assert.equal(of(aResource({ ...sized, labels: `${arch}=amd64` }), facts), 'amd64')
    assert.equal(of(aResource(sized), undefined, 's390x'), 's390x')
  })

  test('CAG-49 annotated taints replace those of equal key and effect; one without an effect is told', () => {
    const taints = [{ key: 'd', value: 'gpu', effect: 'NoSchedule' }]
    const annotated = { ...sized, taints: 'd=x:NoSchedule,n=y:NoExecute,z=1' }
    const { node, warnings } = example(aResource(annotated, { spec: { taints } }))
    assert.deepEqual(node.spec?.taints, [
      { key: 'd', value: 'x', effect: 'NoSchedule' },
      { key: 'n', value: 'y', effect: 'NoExecute' },
    ])
    assert.match(warnings.join(), /"z=1" is left out/)
  })

  test('CAG-50 CSI drivers with and without a limit', () => {
    const { csiNode } = example(aResource({ ...sized, 'csi-driver': 'a=25, b=0,c=-1,d' }))
    assert.deepEqual(csiNode?.spec.drivers, [
      { name: 'a', nodeID: 'first-node-of-md', allocatable: { count: 25 } },
      { name: 'b', nodeID: 'first-node-of-md' },
    ])
  })

  test('CAG-51 GPUs of a DRA driver are devices of the Node', () => {
    const { resourceSlices } = example(
      aResource({ ...sized, 'dra-driver': 'gpu.example.com', 'gpu-count': '2' }),
    )
    const [slice] = resourceSlices ?? []
    assert.equal(slice?.spec.driver, 'gpu.example.com')
    assert.equal(slice.spec.pool.name, slice.spec.nodeName)
    assert.deepEqual(
      slice.spec.devices?.map(({ name, attributes }) => [name, attributes?.['type']]),
      [
        ['gpu-0', { string: 'gpu' }],
        ['gpu-1', { string: 'gpu' }],
      ],
    )
  })
})
