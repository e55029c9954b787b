import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, kinds, labels, type Node } from '@tenon/api'
import { platformLabels } from './names.ts'
import { aClaim, Stage } from './testing/stage.test-support.ts'

const sizes = { capacity: { cpu: '4', memory: '3715344Ki', pods: '110', 'ephemeral-storage': '40971488Ki' } }
const allocatable = { ...sizes.capacity, memory: '3612944Ki', 'ephemeral-storage': '37759323279' }

function aNode(name: string, group: string, parts: Partial<Node> = {}): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    ...parts,
    metadata: {
      name,
      labels: {
        [platformLabels.nodeGroup]: group,
        [platformLabels.flavor]: '2XS',
        [platformLabels.role]: 'worker',
        [labels.nodePool]: 'default',
      },
      ...parts.metadata,
    },
    status: { ...sizes, allocatable, ...parts.status },
  }
}

/** A stage whose loops run, with the group `one`. */
async function running(): Promise<Stage> {
  const stage = new Stage()
  await stage.launch(aClaim('one'))
  stage.provider.startControllers(new AbortController().signal)
  return stage
}

const nodeOf = (stage: Stage, name: string) =>
  stage.kube.all(kinds.node).find(({ metadata }) => metadata.name === name)

describe('provider IDs', () => {
  test('CLV-63 the first node of a managed group gets one', async () => {
    const stage = await running()
    stage.kube.put(kinds.node, aNode('one-node0', 'one'))
    await stage.clock.advance(1000)
    assert.equal(nodeOf(stage, 'one-node0')?.spec?.providerID, 'clevercloud://one')
  })

  test('a node that is seen before its group gets one as soon as the group is there', async () => {
    const stage = await running()
    stage.kube.put(kinds.node, aNode('two-node0', 'two'))
    await stage.clock.advance(1000)
    assert.equal(nodeOf(stage, 'two-node0')?.spec?.providerID, undefined)
    await stage.launch(aClaim('two'))
    await stage.clock.advance(1000)
    assert.equal(nodeOf(stage, 'two-node0')?.spec?.providerID, 'clevercloud://two')
  })

  test('CLV-64 other nodes are left as they are', async () => {
    const stage = await running()
    const group = stage.platform.group('one') ?? assert.fail()
    const { labels: _labels, ...metadata } = group.metadata
    const others = [
      aNode('one-node0', 'one', { spec: { providerID: 'other://x' } }),
      aNode('unlabelled', 'one', { metadata: { name: 'unlabelled', labels: {} } }),
      aNode('missing-node0', 'missing'),
    ]
    for (const node of others) stage.kube.put(kinds.node, node)
    await stage.clock.advance(1000)
    for (const {
      metadata: { name },
      spec,
    } of others)
      assert.equal(nodeOf(stage, name)?.spec?.providerID, spec?.providerID, name)
    const unmanaged = await running()
    unmanaged.platform.groups().forEach((each) => {
      unmanaged.kube.put(
        {
          group: 'api.clever-cloud.com',
          version: 'v1',
          kind: 'NodeGroup',
          plural: 'nodegroups',
          namespaced: false,
        },
        { ...each, metadata },
      )
    })
    unmanaged.kube.put(kinds.node, aNode('one-node0', 'one'))
    await unmanaged.clock.advance(1000)
    assert.equal(nodeOf(unmanaged, 'one-node0')?.spec?.providerID, undefined)
  })

  test('further nodes of a resized group get none, and do not claim to be of the NodePool', async () => {
    const stage = await running()
    stage.kube.put(kinds.node, aNode('one-node1', 'one'))
    await stage.clock.advance(1000)
    const node = nodeOf(stage, 'one-node1')
    assert.equal(node?.spec?.providerID, undefined)
    assert.equal(node?.metadata.labels?.[labels.nodePool], undefined)
  })
})

describe('what nodes have', () => {
  const memoryOf = (stage: Stage) =>
    stage.catalogue.types().find(({ name }) => name === '2XS')?.capacity['memory']

  test('a node of a managed group corrects its flavor', async () => {
    const stage = await running()
    const capacity = { ...sizes.capacity, memory: '3600000Ki' }
    stage.kube.put(
      kinds.node,
      aNode('one-node0', 'one', {
        status: { capacity, allocatable: { ...allocatable, memory: '3497600Ki' } },
      }),
    )
    await stage.clock.advance(1000)
    assert.equal(memoryOf(stage), 3_600_000 * 1024)
  })

  test('CLV-65 a node of the control plane, or one that is not believed, corrects nothing', async () => {
    const stage = await running()
    const before = memoryOf(stage)
    const { labels: own = {} } = aNode('one-node0', 'one').metadata
    const status = { capacity: { ...sizes.capacity, memory: '3600000Ki' }, allocatable }
    const role = { ...own, [platformLabels.role]: 'control-plane' }
    stage.kube.put(
      kinds.node,
      aNode('one-node0', 'one', { metadata: { name: 'one-node0', labels: role }, status }),
    )
    await stage.clock.advance(1000)
    const tiny = { ...sizes.capacity, memory: '100000Ki' }
    stage.kube.put(kinds.node, aNode('one-node0', 'one', { status: { capacity: tiny, allocatable: tiny } }))
    await stage.clock.advance(1000)
    assert.equal(memoryOf(stage), before)
    assert.equal(stage.value('capacityRejections'), 1)
  })
})

test('claims of other providers wake nothing', async () => {
  const stage = await running()
  stage.kube.put(karpenterKinds.nodeClaim, aClaim('other'))
  await stage.clock.advance(1000)
  assert.deepEqual(stage.events(), [])
})
