import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import {
  type DaemonSet,
  kinds,
  labels,
  type NodeClaim,
  type OwnerReference,
  type Pod,
  type SelectingWorkload,
} from '@tenon/api'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import {
  aType,
  madeClaims,
  objectsWithEvent,
  unscheduled,
  waitingPod,
} from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

const group = { app: 'web' }
const statefulSet: readonly OwnerReference[] = [
  { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'c6a7d2f0-0000-4000-8000-000000000002' },
]

function asking(cpu: string): Partial<Pod['spec']> {
  return { containers: [{ name: 'app', image: 'i', resources: { requests: { cpu } } }] }
}

/** A stage with node `node-a` of 4 cores, and a cloud that sells the like. */
async function openStage(
  t: TestContext,
  options: Parameters<typeof Stage.open>[1] = {},
  spec: Partial<NodeClaim['spec']> = {},
): Promise<Stage> {
  const stage = await Stage.open(t, options)
  stage.cloud.instanceTypes = [aType('medium', 4)]
  await stage.ready('a', spec)
  return stage
}

async function pdb(stage: Stage, name: string, spec: object): Promise<void> {
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: group }, ...spec },
  })
  await stage.pass(100)
}

/** Names of the pods that are meant for the claims made. */
function nodeClaimRequests(stage: Stage): readonly (string | undefined)[] {
  return madeClaims(stage).map(({ spec }) => spec.resources?.requests?.['pods'])
}

/** Takes the claims away that were made, and says whether others come for the pods of `node-a`. */
async function isBoughtAgain(stage: Stage): Promise<boolean> {
  for (const { metadata } of madeClaims(stage)) await stage.deleteClaim(metadata.name)
  await stage.pass(30 * seconds)
  return madeClaims(stage).length > 0
}

/** `node-a` goes, with a pod on it that a budget holds. */
async function heldDrain(
  t: TestContext,
  options: Parameters<typeof Stage.open>[1] = {},
  spec: Partial<NodeClaim['spec']> = {},
): Promise<Stage> {
  const stage = await openStage(t, options, spec)
  await stage.pod('running', 'node-a', { labels: group, spec: asking('1') })
  await pdb(stage, 'pause', { minAvailable: 1 })
  await stage.deleteClaim('a')
  await stage.pass(5 * seconds)
  return stage
}

describe('pods of nodes that go away', () => {
  test('SCH-77 its room is not used, and its active pods get a place elsewhere', async (t) => {
    const stage = await openStage(t)
    await stage.pod('running', 'node-a', { labels: group, spec: asking('1') })
    // The budget keeps the pod active for now, but not for good.
    await pdb(stage, 'pause', { minAvailable: 1 })
    await stage.deleteClaim('a')
    await stage.pass(5 * seconds)
    assert.deepEqual(nodeClaimRequests(stage), ['1'])
    waitingPod(stage, 'pending', { cpu: '3' })
    await stage.pass(5 * seconds)
    assert.ok(!objectsWithEvent(stage, 'Nominated').includes('Pod/running'))
    assert.ok(!stage.events('Nominated').some(({ message }) => message.includes('node/node-a')))
  })

  test('once a budget has held up the drain for ten minutes, no more room is made for its pods', async (t) => {
    const stage = await heldDrain(t)
    assert.ok(await isBoughtAgain(stage), 'at first there is')
    await stage.pass(10 * minutes)
    assert.ok(!(await isBoughtAgain(stage)))
    await stage.pass(60 * minutes)
    assert.deepEqual(madeClaims(stage), [])
    stage.world.cluster.server.local.delete(kinds.podDisruptionBudget, 'default', 'pause')
    await stage.pass(30 * seconds)
    assert.ok(stage.isLeaving('running'), 'the drain goes on once the budget is gone')
  })

  test('there is again when the time comes at which the pods must go anyway', async (t) => {
    const stage = await heldDrain(t, {}, { terminationGracePeriod: '30m' })
    await stage.pass(12 * minutes)
    assert.ok(!(await isBoughtAgain(stage)))
    await stage.pass(9 * minutes)
    assert.ok(await isBoughtAgain(stage))
  })

  test('with compatibility: karpenter, there is for as long as the drain takes', async (t) => {
    const stage = await heldDrain(t, { settings: { compatibility: 'karpenter' } })
    await stage.pass(60 * minutes)
    assert.ok(await isBoughtAgain(stage))
  })

  test('SCH-78 SCH-151 of the pods that end already only those of StatefulSets get one, protected or not', async (t) => {
    const stage = await openStage(t)
    const protection = { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } }
    await stage.pod('plain', 'node-a', { spec: asking('1') })
    await stage.pod('db-0', 'node-a', { spec: asking('1'), ownerReferences: statefulSet })
    await stage.pod('db-1', 'node-a', { spec: asking('1'), ownerReferences: statefulSet, ...protection })
    for (const name of ['plain', 'db-0', 'db-1'])
      stage.world.cluster.server.local.delete(kinds.pod, 'default', name)
    await stage.deleteClaim('a')
    await stage.pass(5 * seconds)
    assert.deepEqual(nodeClaimRequests(stage), ['2'])
  })

  const holding = {
    'maxUnavailable 0': [{ maxUnavailable: 0 }],
    'maxUnavailable 0%': [{ maxUnavailable: '0%' }],
    'minAvailable 100%': [{ minAvailable: '100%' }],
    'two budgets': [{ maxUnavailable: 1 }, { maxUnavailable: 1 }],
  }
  for (const [name, specs] of Object.entries(holding)) {
    test(`SCH-79 pods that ${name} holds for good get no place elsewhere`, async (t) => {
      const stage = await openStage(t)
      await stage.pod('held', 'node-a', { labels: group, spec: asking('1') })
      for (const [i, spec] of specs.entries()) await pdb(stage, `pdb-${i}`, spec)
      await stage.deleteClaim('a')
      await stage.pass(30 * seconds)
      assert.ok(!stage.isLeaving('held'))
      assert.deepEqual(madeClaims(stage), [])
    })
  }

  test('SCH-80 pods that must not be disrupted get no place elsewhere', async (t) => {
    const stage = await openStage(t)
    await stage.pod('protected', 'node-a', {
      annotations: { 'karpenter.sh/do-not-disrupt': 'true' },
      spec: asking('1'),
    })
    await stage.deleteClaim('a')
    await stage.pass(30 * seconds)
    assert.deepEqual(madeClaims(stage), [])
  })

  test('SCH-152 pods that leave and pods that wait share one new node', async (t) => {
    const stage = await openStage(t)
    for (const name of ['r1', 'r2', 'r3'])
      await stage.pod(name, 'node-a', { labels: group, spec: asking('500m') })
    await pdb(stage, 'pause', { minAvailable: 3 })
    for (const name of ['w1', 'w2']) waitingPod(stage, name, { cpu: '500m' })
    await stage.deleteClaim('a')
    await stage.pass(5 * seconds)
    assert.deepEqual(nodeClaimRequests(stage), ['5'])
  })
})

describe('what nodes have room for', () => {
  test('a pod that fits an existing node is sent there, and the node is kept for it', async (t) => {
    const stage = await openStage(t)
    waitingPod(stage, 'small')
    await stage.pass(5 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    assert.deepEqual(
      stage.events('Nominated').map(({ message }) => message),
      ['Pod should schedule on: nodeclaim/a, node/node-a'],
    )
    assert.ok(stage.operator.operator.state.isNominated('fake://a'))
    await stage.pass(10 * seconds)
    assert.ok(stage.operator.operator.state.isNominated('fake://a'))
  })

  test('a node takes no more volumes than its driver can attach', async (t) => {
    const stage = await openStage(t)
    const local = stage.world.cluster.server.local
    stage.world.create(kinds.storageClass, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast' },
      provisioner: 'csi.example.com',
      volumeBindingMode: 'WaitForFirstConsumer',
    })
    stage.world.create(kinds.csiNode, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: { name: 'node-a' },
      spec: {
        drivers: [{ name: 'csi.example.com', nodeID: 'a', topologyKeys: [], allocatable: { count: 1 } }],
      },
    })
    for (const name of ['used', 'wanted']) {
      local.create(kinds.persistentVolumeClaim, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace: 'default' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'fast',
          resources: { requests: { storage: '1Gi' } },
        },
      })
    }
    const mounting = (claimName: string) => ({
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
    })
    await stage.pod('holder', 'node-a', { spec: { ...asking('100m'), ...mounting('used') } })
    waitingPod(stage, 'same', { cpu: '100m', spec: mounting('used') })
    await stage.pass(5 * seconds)
    assert.deepEqual(madeClaims(stage), [])
    waitingPod(stage, 'another', { cpu: '100m', spec: mounting('wanted') })
    await stage.pass(5 * seconds)
    assert.equal(madeClaims(stage).length, 1)
  })

  test('SCH-69 a live daemon pod that is smaller than its template counts as it is', async (t) => {
    const stage = await openStage(t)
    stage.world.create(kinds.daemonSet, {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'agent', namespace: 'default' },
      spec: {
        selector: { matchLabels: { app: 'agent' } },
        updateStrategy: { type: 'OnDelete' },
        template: { metadata: { labels: { app: 'agent' } }, spec: asking('500m') as Pod['spec'] },
      } as DaemonSet['spec'],
    })
    await stage.pass(2 * seconds)
    assert.equal(stage.world.pods()[0]?.spec.nodeName, 'node-a')
    const containers = [{ name: 'app', image: 'i', resources: { requests: { cpu: '2' } } }]
    stage.patch(
      kinds.daemonSet,
      'agent',
      { spec: { template: { spec: { containers } } } },
      undefined,
      'default',
    )
    await stage.pass(100)
    await stage.pod('filler', 'node-a', { spec: asking('1') })
    waitingPod(stage, 'pod', { cpu: '3500m' })
    await stage.pass(5 * seconds)
    assert.equal(madeClaims(stage)[0]?.spec.resources?.requests?.['cpu'], '4')
  })
})

describe('labels of the claim', () => {
  test('SCH-141 a custom key that must exist gets a value, one that must not gets none', async (t) => {
    const { template } = aKwokPool().spec
    const stage = await openStage(t, {
      pool: {
        template: {
          spec: {
            ...template.spec,
            requirements: [
              { key: 'example.com/present', operator: 'Exists' },
              { key: 'example.com/absent', operator: 'DoesNotExist' },
              { key: labels.zone, operator: 'NotIn', values: ['zone-9'] },
            ],
          },
        },
      },
    })
    waitingPod(stage, 'pod', { cpu: '4' })
    await stage.pod('filler', 'node-a', { spec: asking('1') })
    await stage.pass(5 * seconds)
    const [made] = madeClaims(stage)
    const key = (name: string) => made?.metadata.labels?.[`example.com/${name}`]
    assert.deepEqual([/^\d+$/.test(key('present') ?? ''), key('absent')], [true, undefined])
    assert.deepEqual(made?.spec.requirements.find((each) => each.key === labels.zone)?.operator, 'NotIn')
  })
})

describe('the default spread', () => {
  test('BUF-102 pods of a ReplicaSet that ask for no spread go to different zones', async (t) => {
    const stage = await openStage(t, {
      settings: {
        defaultSpread: [{ maxSkew: 1, topologyKey: labels.zone, whenUnsatisfiable: 'DoNotSchedule' }],
      },
    })
    stage.cloud.instanceTypes = [aType('medium', 4, ['zone-1', 'zone-2'])]
    await stage.pod('filler', 'node-a', { spec: asking('4') })
    stage.world.create(kinds.replicaSet, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web', namespace: 'default' },
      spec: {
        replicas: 2,
        selector: { matchLabels: group },
        template: { metadata: { labels: group }, spec: { ...asking('1'), schedulerName: 'by-hand' } },
      } as SelectingWorkload['spec'],
    })
    await stage.pass(seconds)
    for (const { metadata, spec } of stage.world.pods()) {
      if (spec.nodeName === undefined)
        stage.patch(kinds.pod, metadata.name, { status: unscheduled() }, 'status', 'default')
    }
    for (const name of ['bare-1', 'bare-2']) waitingPod(stage, name, { cpu: '500m' })
    await stage.pass(5 * seconds)
    const zones = madeClaims(stage).map(
      ({ spec }) => spec.requirements.find(({ key }) => key === labels.zone)?.values?.join() ?? '',
    )
    assert.deepEqual(zones.toSorted(), ['zone-1', 'zone-2'])
    assert.equal(objectsWithEvent(stage, 'Nominated').length, 4)
  })
})
