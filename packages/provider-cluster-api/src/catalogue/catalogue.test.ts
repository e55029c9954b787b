import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type NodePool, type Requirement } from '@tenon/api'
import { isProviderError } from '@tenon/provider'
import { capacityAnnotations } from '../names.ts'
import { clusterAPINodeClassKind } from '../node-class.ts'
import { aDeployment, names } from '../testing/deployments.test-support.ts'
import { CatalogueStage, kinds } from '../testing/hub.test-support.ts'

const team = 'node.cluster.x-k8s.io/team'

class Stage extends CatalogueStage {
  async types(pool: NodePool = aPool()): Promise<readonly string[]> {
    return (await this.catalogue.typesOf(pool)).map(({ name }) => name)
  }
}

function aPool({
  name = 'default',
  kind = clusterAPINodeClassKind.kind,
  requirements = [],
}: {
  readonly name?: string
  readonly kind?: string
  readonly requirements?: readonly Requirement[]
} = {}): NodePool {
  const nodeClassRef = { group: clusterAPINodeClassKind.group, kind, name }
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'pool' },
    spec: { template: { spec: { nodeClassRef, requirements } } },
  }
}

test('CAP-2 CAP-3 a class that is missing, or that a NodePool does not name, is a plain error that names both', async () => {
  const stage = new Stage()
  for (const [pool, message] of [
    [aPool({ name: 'gone' }), 'NodePool pool: ClusterAPINodeClass gone does not exist'],
    [aPool({ name: '' }), 'NodePool pool: spec.template.spec.nodeClassRef must name a ClusterAPINodeClass'],
    [
      aPool({ kind: 'Other' }),
      'NodePool pool: spec.template.spec.nodeClassRef must name a ClusterAPINodeClass',
    ],
  ] as const)
    await assert.rejects(
      stage.types(pool),
      (error) => isProviderError(error, 'other') && error.message === message,
    )
})

test('CAP-5 without a selector all members are used, and they alone', async () => {
  const stage = new Stage()
  stage.put({ name: 'member' })
  const other = aDeployment({ name: 'other' })
  stage.kube.put(kinds.machineDeployment, { ...other, metadata: { ...other.metadata, labels: {} } })
  assert.deepEqual(await stage.types(), ['member'])
})

test('CAP-6 a selector narrows the members, it does not add to them', async () => {
  const stage = new Stage()
  stage.put({ name: 'one', labels: { tier: 'a' } })
  stage.put({ name: 'two', labels: { tier: 'b' } })
  const other = aDeployment({ name: 'no-member' })
  stage.kube.put(kinds.machineDeployment, {
    ...other,
    metadata: { ...other.metadata, labels: { tier: 'a' } },
  })
  stage.putClass({ matchLabels: { tier: 'a' } })
  assert.deepEqual(await stage.types(), ['one'])
  stage.putClass({})
  assert.deepEqual(await stage.types(), ['one', 'two'])
  stage.putClass({ matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['a'] }] })
  assert.deepEqual(await stage.types(), ['two'])
})

test('CAP-7 a selector that matches nothing gives no types and no error', async () => {
  const stage = new Stage()
  stage.put({ name: 'one' })
  stage.putClass({ matchLabels: { tier: 'none' } })
  assert.deepEqual(await stage.types(), [])
})

test('CAP-8 a membership label with a value makes no member', async () => {
  const stage = new Stage()
  stage.put({ name: 'one', labels: { [names.member]: 'true' } })
  assert.deepEqual(await stage.types(), [])
})

test('CAP-96 a selector that cannot be understood is a plain error with field and fix', async () => {
  const stage = new Stage()
  stage.put({ name: 'one' })
  for (const [selector, message] of [
    [
      '{"matchExpressions":[{"key":"a","operator":"Near"}]}',
      /matchExpressions\[0\]\.operator: operator "Near" is not known; write In, NotIn/,
    ],
    [
      '{"matchExpressions":[{"key":"a","operator":"In"}]}',
      /\[0\]\.values: operator In has 0 values; give it at least one/,
    ],
    [
      '{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}',
      /operator Exists has 1 values; leave values out/,
    ],
    [
      '{"matchLabels":{"a b":"c"}}',
      /scalableResourceSelector\.matchLabels\[a b\]: "a b" must be .*; write the key of a label/,
    ],
  ] as const) {
    stage.putClass(JSON.parse(selector))
    await assert.rejects(
      stage.types(),
      (error) => isProviderError(error, 'other') && message.test(error.message),
    )
  }
})

test('what belongs to another namespace or Cluster than the scope says is not looked at', async () => {
  const all = (stage: Stage) => {
    stage.put({ name: 'one' })
    stage.put({ name: 'two', namespace: 'elsewhere', spec: { clusterName: 'other' } })
  }
  for (const scope of [{ namespace: 'elsewhere' }, { clusterName: 'other' }]) {
    const stage = new Stage({ scope })
    all(stage)
    assert.deepEqual(await stage.types(), ['two'])
  }
})

test('members of several Clusters are refused until it is said which, as Machines would join the wrong one', async () => {
  const stage = new Stage()
  stage.put({ name: 'one' })
  stage.put({ name: 'two', spec: { clusterName: 'other' } })
  stage.putClass({ matchLabels: { [names.member]: '' } })
  await assert.rejects(
    stage.types(),
    /ClusterAPINodeClass default: .* belong to several Clusters \(other, workload\); set CLUSTER_API_CLUSTER_NAME/,
  )
})

test('while the hub has not been read, that is what is told', async () => {
  const stage = new Stage({ state: { kind: 'waiting', because: 'the hub does not answer' } })
  await assert.rejects(
    stage.types(),
    (error) =>
      isProviderError(error, 'unevaluatedNodePool') &&
      error.message === 'ClusterAPINodeClass default: the hub does not answer',
  )
})

test('CAP-79 one MachineDeployment that cannot be read leaves the others', async () => {
  const stage = new Stage()
  stage.put({ name: 'bad', annotations: { [capacityAnnotations.cpu]: 'x' } })
  const nodeClass = stage.putClass(undefined)
  stage.put({ name: 'good' })
  assert.deepEqual(await stage.types(), ['good'])
  const found = await stage.catalogue.readingsOf(nodeClass)
  assert.ok(found.kind === 'read')
  assert.deepEqual(
    found.readings.map(({ kind }) => kind),
    ['excluded', 'participant'],
  )
})

test('what has not changed is the same list of the same types; replicas alone change no type', async () => {
  const stage = new Stage()
  stage.put({ name: 'one' })
  stage.put({ name: 'two' })
  const first = await stage.catalogue.typesOf(aPool())
  assert.equal(await stage.catalogue.typesOf(aPool()), first)
  stage.put({ name: 'one', spec: { replicas: 7 } })
  assert.equal(await stage.catalogue.typesOf(aPool()), first)
  stage.put({ name: 'one', annotations: { [names.price]: '2' } })
  const [one, two] = await stage.catalogue.typesOf(aPool())
  assert.notEqual(one, first[0])
  assert.equal(one?.offerings[0]?.pricePerHour, 2)
  assert.equal(two, first[1])
})

test('CAP-24 a NodePool that names a custom label sees it, another does not', async () => {
  const stage = new Stage()
  stage.put({ name: 'one', nodeLabels: { [labels.instanceType]: 'one', [team]: 'data' } })
  const says = async (pool: NodePool) =>
    (await stage.catalogue.typesOf(pool)).flatMap(({ requirements }) =>
      requirements.filter(({ key }) => key === team),
    )
  assert.deepEqual(await says(aPool()), [])
  assert.deepEqual(await says(aPool({ requirements: [{ key: team, operator: 'Exists' }] })), [
    { key: team, operator: 'In', values: ['data'] },
  ])
})

test('MachineDeployments with taints that a NodePool does not know of are not offered to it', async () => {
  const stage = new Stage()
  stage.put({ name: 'plain' })
  stage.put({ name: 'tainted', annotations: { [capacityAnnotations.taints]: 'gpu=yes:NoSchedule' } })
  assert.deepEqual(await stage.types(), ['plain'])
  const pool = aPool()
  const spec = {
    ...pool.spec.template.spec,
    taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] as const,
  }
  assert.deepEqual(await stage.types({ ...pool, spec: { template: { spec } } }), ['plain', 'tainted'])
})
