import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { kinds, type Pod } from '@tenon/api'
import type { Operator } from '@tenon/operator'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims, PoolCloud, objectsWithEvent, waitingPod } from '../testing/pools.test-support.ts'

/** Node `node-a` of 4 cores, a NodePool that is healthy, and a cloud that sells the like. */
async function openStage(t: TestContext): Promise<{ readonly stage: Stage; readonly cloud: PoolCloud }> {
  let stage: Stage | undefined
  const cloud = new PoolCloud(() => (stage as Stage).world.clock)
  cloud.instanceTypes = [aType('medium', 4)]
  stage = await Stage.open(t, { provider: cloud, idle: true })
  await stage.start()
  await stage.ready('a')
  return { stage, cloud }
}

function asking(cpu: string): Partial<Pod['spec']> {
  return { containers: [{ name: 'app', image: 'i', resources: { requests: { cpu } } }] }
}

function decisionOn(stage: Stage, { metadata }: Pod): ReturnType<Operator['state']['podDecisions']['get']> {
  return stage.operator.operator.state.podDecisions.get(metadata.uid ?? '')
}

async function bind(stage: Stage, pod: string, nodeName: string): Promise<void> {
  stage.patch(kinds.pod, pod, { spec: { nodeName } }, undefined, 'default')
  await stage.pass(100)
}

async function report(stage: Stage, pod: string, phase: string, isReady: boolean): Promise<void> {
  const conditions = [
    { type: 'PodScheduled', status: 'True' },
    { type: 'Ready', status: isReady ? 'True' : 'False' },
  ]
  stage.patch(kinds.pod, pod, { status: { phase, conditions } }, 'status', 'default')
  await stage.pass(100)
}

test('STA-121 for a pod that is bound while a pass is under way no node is bought', async (t) => {
  const { stage, cloud } = await openStage(t)
  await stage.pod('holder', 'node-a', { spec: asking('2') })
  let isListing = false
  cloud.onListTypes = async () => {
    isListing = true
    await stage.world.clock.sleep(2 * seconds)
    return cloud.instanceTypes
  }
  waitingPod(stage, 'early', { cpu: '3' })
  await stage.world.clock.advanceUntil(() => isListing, 10 * seconds)
  await bind(stage, 'early', 'node-a')
  await stage.pass(30 * seconds)
  assert.deepEqual(madeClaims(stage), [])
  assert.deepEqual(objectsWithEvent(stage, 'Nominated'), [])

  // What it takes is gone from the node for those that come later.
  waitingPod(stage, 'late', { cpu: '100m' })
  await stage.pass(30 * seconds)
  assert.equal(madeClaims(stage).length, 1)
})

test('STA-123 a volume counts as soon as its PersistentVolume exists, without news of its pod', async (t) => {
  const { stage } = await openStage(t)
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
  const claimed = (name: string, volumeName?: string) => {
    stage.world.create(kinds.persistentVolumeClaim, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'default' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fast',
        resources: { requests: { storage: '1Gi' } },
        ...(volumeName !== undefined && { volumeName }),
      },
    })
    return { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }] }
  }
  await stage.pod('holder', 'node-a', { spec: { ...asking('1'), ...claimed('used', 'pv-1') } })

  // Its volume is not known, but the node and what the pod asks are.
  waitingPod(stage, 'plain', { cpu: '3' })
  await stage.pass(5 * seconds)
  assert.deepEqual(
    stage.events('Nominated').map(({ object, message }) => `${object} ${message}`),
    ['Pod/plain Pod should schedule on: nodeclaim/a, node/node-a'],
  )
  await stage.end('plain')

  stage.world.create(kinds.persistentVolume, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      csi: { driver: 'csi.example.com', volumeHandle: 'v' },
    },
  })
  await stage.pass(seconds)
  waitingPod(stage, 'another', { cpu: '1', spec: claimed('wanted') })
  await stage.pass(5 * seconds)
  assert.equal(madeClaims(stage).length, 1)
  assert.equal(stage.events('Nominated').filter(({ message }) => message.includes('node/node-a')).length, 1)
})

test('STA-124 what was decided about a pod is kept while it starts, and forgotten once it serves or ended', async (t) => {
  const { stage } = await openStage(t)
  const [serving, ending] = ['serving', 'ending'].map((name) => waitingPod(stage, name)) as [Pod, Pod]
  await stage.pass(5 * seconds)
  const known = [serving, ending].map((pod) => decisionOn(stage, pod))
  for (const { ackMs, decidedMs, schedulableMs, schedulableHealthyMs, nodeClaim } of known) {
    assert.equal(ackMs !== undefined && decidedMs !== undefined && schedulableMs !== undefined, true)
    assert.equal(schedulableHealthyMs, schedulableMs)
    assert.equal(nodeClaim, 'a')
  }
  for (const name of ['serving', 'ending']) {
    await bind(stage, name, 'node-a')
    await report(stage, name, 'Running', false)
  }
  await stage.pass(30 * seconds)
  assert.deepEqual([decisionOn(stage, serving), decisionOn(stage, ending)], known)
  await report(stage, 'serving', 'Running', true)
  await report(stage, 'ending', 'Succeeded', false)
  assert.deepEqual([decisionOn(stage, serving), decisionOn(stage, ending)], [{}, {}])
})

test('STA-131 a pod that asks what cannot be was decided about, and is not schedulable', async (t) => {
  const { stage } = await openStage(t)
  const pod = waitingPod(stage, 'pod', { spec: { nodeSelector: { 'karpenter.sh/unknown': 'x' } } })
  await stage.pass(5 * seconds)
  const { ackMs, decidedMs, schedulableMs, schedulableHealthyMs, nodeClaim, failure } = decisionOn(stage, pod)
  assert.ok(ackMs !== undefined && decidedMs !== undefined && decidedMs >= ackMs)
  assert.deepEqual([schedulableMs, schedulableHealthyMs, nodeClaim], [undefined, undefined, undefined])
  assert.match(failure ?? '', /karpenter\.sh\/unknown/)
  await stage.pass(60 * seconds)
  assert.equal(decisionOn(stage, pod).decidedMs, decidedMs)
  assert.equal(await stage.metric('pods_scheduling_decision_duration_seconds'), 1)
})
