import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, labels, type OwnerReference } from '@tenon/api'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'

const owner = (apiVersion: string, kind: string): readonly OwnerReference[] => [
  { apiVersion, kind, name: 'owner', uid: 'c6a7d2f0-0000-4000-8000-000000000001' },
]

test('LIF-58 LIF-59 LIF-78 an empty node is tainted, waits 5 s and goes', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.deleteClaim('a')
  assert.equal(stage.state('a', 'Drained'), 'Unknown/Draining')
  assert.ok(stage.nodeNow('node-a')?.spec?.taints?.some(({ key }) => key === 'karpenter.sh/disrupted'))
  assert.equal(stage.nodeNow('node-a')?.metadata.labels?.[labels.excludeFromLoadBalancers], 'karpenter')
  await stage.pass(3500)
  assert.equal(stage.state('a', 'Drained'), 'Unknown/Draining')
  await stage.pass(3000)
  assert.equal(stage.cloud.count('delete'), 1)
  assert.equal(stage.state('a', 'Drained'), 'True/Drained')
  assert.equal(stage.state('a', 'VolumesDetached'), 'True/VolumesDetached')
  assert.equal(stage.state('a', 'InstanceTerminating'), 'True/InstanceTerminating')
  await stage.pass(10 * seconds)
  assert.equal(stage.nodeNow('node-a'), undefined)
  assert.equal(await stage.metric('nodes_drained_total', { nodepool: 'default' }), 1)
  for (const name of ['terminated_total', 'termination_duration_seconds', 'lifetime_duration_seconds'])
    assert.equal(await stage.metric(`nodes_${name}`, { nodepool: 'default' }), 1, name)
})

test('LIF-60 a Node without a claim goes at once, and its instance is not touched', async (t) => {
  const stage = await Stage.open(t)
  const metadata = {
    labels: { 'karpenter.kwok.sh/kwoknodeclass': 'default' },
    finalizers: ['karpenter.sh/termination'],
  }
  await stage.join('nobody', { name: 'lone', ...metadata })
  await stage.report('lone')
  stage.delete(kinds.node, 'lone')
  await stage.pass(50)
  assert.equal(stage.nodeNow('lone'), undefined)
  assert.equal(stage.cloud.count('delete'), 0)
})

test('LIF-61 a Node that two claims lay claim to goes as if it had none', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.claim('b')
  stage.patch(karpenterKinds.nodeClaim, 'b', { status: { providerID: 'fake://a' } }, 'status')
  await stage.pass(2 * seconds)
  await stage.pod('p', 'node-a')
  stage.delete(kinds.node, 'node-a')
  await stage.pass(seconds)
  assert.ok(stage.isLeaving('p'))
  await stage.end('p')
  assert.equal(stage.nodeNow('node-a'), undefined)
  assert.equal(stage.cloud.count('delete'), 0)
  for (const name of ['a', 'b']) {
    assert.equal(stage.claimNow(name)?.metadata.deletionTimestamp, undefined, name)
    assert.equal(stage.state(name, 'Drained'), 'absent')
  }
  assert.equal(await stage.metric('nodes_drained_total'), 0)
})

test('LIF-62 a foreign Node with the finalizer is ignored', async (t) => {
  const stage = await Stage.open(t)
  await stage.join('nobody', { name: 'lone', finalizers: ['karpenter.sh/termination'] })
  stage.delete(kinds.node, 'lone')
  await stage.pass(30 * seconds)
  assert.notEqual(stage.nodeNow('lone'), undefined)
  assert.ok(!stage.nodeNow('lone')?.spec?.taints?.some(({ key }) => key === 'karpenter.sh/disrupted'))
})

test('LIF-64 a disrupted taint of another effect is replaced before anything is evicted', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  stage.patch(kinds.node, 'node-a', {
    spec: { taints: [{ key: 'karpenter.sh/disrupted', effect: 'NoExecute' }] },
  })
  await stage.deleteClaim('a')
  const taints = stage.nodeNow('node-a')?.spec?.taints?.filter(({ key }) => key === 'karpenter.sh/disrupted')
  assert.deepEqual(taints, [{ key: 'karpenter.sh/disrupted', effect: 'NoSchedule' }])
})

test('LIF-65 ten nodes go side by side', async (t) => {
  const stage = await Stage.open(t)
  const names = Array.from({ length: 10 }, (_, i) => `n${i}`)
  for (const name of names) await stage.ready(name)
  for (const name of names) stage.delete(kinds.node, `node-${name}`)
  await stage.pass(30 * seconds)
  assert.deepEqual([stage.world.nodes(), stage.world.claims()], [[], []])
})

test('LIF-66 LIF-69 LIF-70 pods that accept the end, have ended or are mirrored are neither evicted nor awaited', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('equal', 'node-a', {
    spec: { tolerations: [{ key: 'karpenter.sh/disrupted', operator: 'Equal', effect: 'NoSchedule' }] },
  })
  await stage.pod('exists', 'node-a', { spec: { tolerations: [{ operator: 'Exists' }] } })
  await stage.pod('succeeded', 'node-a', { status: { phase: 'Succeeded' } })
  await stage.pod('failed', 'node-a', { status: { phase: 'Failed' } })
  await stage.pod('mirror', 'node-a', { ownerReferences: owner('v1', 'Node') })
  stage.cloud.deletionMs = minutes
  await stage.deleteClaim('a')
  await stage.pass(8 * seconds)
  assert.equal(stage.state('a', 'Drained'), 'True/Drained')
  assert.equal(await stage.metric('pods_eviction_requests_total'), 0)
})

test('LIF-67 LIF-68 LIF-73 LIF-82 pods without an owner or with only a toleration for cordons are evicted and awaited', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('cordon', 'node-a', {
    spec: { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] },
  })
  await stage.deleteClaim('a')
  await stage.pass(8 * seconds)
  assert.ok(stage.isLeaving('cordon'))
  assert.equal(stage.state('a', 'Drained'), 'Unknown/Draining')
  assert.match(stage.events('FailedDraining')[0]?.message ?? '', /1 pod/)
  assert.match(stage.events('Evicted')[0]?.message ?? '', /Forceful Termination/)
  assert.equal(await stage.metric('pods_eviction_requests_total', { code: '200' }), 1)
  assert.equal(await stage.metric('pods_drained_total', { reason: 'Forceful Termination' }), 1)
  await stage.end('cordon')
  assert.equal(stage.state('a', 'Drained'), 'True/Drained')
})

test('LIF-71 LIF-72 pods go tier by tier, all of one tier together', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  const daemon = { ownerReferences: [await stage.daemonSet('agent')] }
  const critical = (priorityClassName: string) => ({ spec: { priorityClassName } })
  await stage.pod('plain-1', 'node-a')
  await stage.pod('plain-2', 'node-a')
  await stage.pod('daemon', 'node-a', daemon)
  await stage.pod('critical-1', 'node-a', critical('system-node-critical'))
  await stage.pod('critical-2', 'node-a', critical('system-cluster-critical'))
  await stage.pod('critical-daemon', 'node-a', { ...daemon, ...critical('system-node-critical') })
  const leaving = () =>
    stage.world
      .pods()
      .map(({ metadata }) => metadata.name)
      .filter((name) => stage.isLeaving(name))
  await stage.deleteClaim('a')
  await stage.pass(seconds)
  assert.deepEqual(leaving(), ['plain-1', 'plain-2'])
  await stage.end('plain-1')
  assert.deepEqual(leaving(), ['plain-2'])
  await stage.end('plain-2')
  assert.deepEqual(leaving(), ['daemon'])
  await stage.end('daemon')
  assert.deepEqual(leaving(), ['critical-1', 'critical-2'])
  await stage.end('critical-1')
  await stage.end('critical-2')
  assert.deepEqual(leaving(), ['critical-daemon'])
})

test('LIF-74 an instance that is gone ends the drain of a node that is not Ready', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('p', 'node-a')
  await stage.deleteClaim('a')
  stage.cloud.lose('fake://a')
  await stage.pass(10 * seconds)
  assert.notEqual(stage.nodeNow('node-a'), undefined)
  await stage.report('node-a', 'Unknown')
  assert.equal(stage.nodeNow('node-a'), undefined)
})

test('LIF-75 an error of the cloud is tried again', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.report('node-a', 'False')
  stage.cloud.onGet = () => {
    throw new Error('no answer')
  }
  await stage.deleteClaim('a')
  await stage.pass(10 * seconds)
  assert.notEqual(stage.nodeNow('node-a'), undefined)
  stage.cloud.onGet = () => undefined
  await stage.pass(30 * seconds)
  assert.equal(stage.nodeNow('node-a'), undefined)
})

test('LIF-76 a pod that does not end 60 s after its time no longer counts', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.pod('stuck', 'node-a')
  await stage.deleteClaim('a')
  await stage.pass(80 * seconds)
  assert.notEqual(stage.nodeNow('node-a'), undefined)
  await stage.pass(30 * seconds)
  assert.equal(stage.nodeNow('node-a'), undefined)
})

test('LIF-77 a pod that was bound after the taint is drained, too', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  await stage.deleteClaim('a')
  await stage.pass(2 * seconds)
  await stage.pod('late', 'node-a')
  await stage.pass(10 * seconds)
  assert.ok(stage.isLeaving('late'))
  assert.equal(stage.state('a', 'Drained'), 'Unknown/Draining')
})

test('LIF-79 a pod that comes after the drain is drained before the instance is asked to go again', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.deletionMs = minutes
  await stage.ready('a')
  await stage.deleteClaim('a')
  await stage.pass(8 * seconds)
  assert.equal(stage.state('a', 'Drained'), 'True/Drained')
  const before = stage.cloud.count('delete')
  await stage.pod('late', 'node-a')
  await stage.pass(15 * seconds)
  assert.ok(stage.isLeaving('late'))
  assert.equal(stage.cloud.count('delete'), before)
})

function attach(stage: Stage, name: string, source: object): void {
  stage.world.create(kinds.volumeAttachment, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name },
    spec: { attacher: 'csi.example.com', nodeName: 'node-a', source },
  })
}

const storage = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }

/** The volume of a pod: a persistent volume claim of that name. */
const volume = (claimName: string) => ({ name: claimName, persistentVolumeClaim: { claimName } })

function bindClaim(stage: Stage, name: string, volumeName: string): void {
  stage.world.create(kinds.persistentVolumeClaim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { ...storage, volumeName },
  })
}

test('LIF-102 LIF-105 volumes of pods that stay are not awaited, also when one of their claims is gone', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  bindClaim(stage, 'data', 'pv-staying')
  bindClaim(stage, 'agent-cache', 'pv-ephemeral')
  await stage.pod('agent', 'node-a', {
    spec: {
      tolerations: [{ operator: 'Exists' }],
      volumes: [
        volume('missing'),
        volume('data'),
        { name: 'cache', ephemeral: { volumeClaimTemplate: { spec: storage } } },
      ],
    },
  })
  for (const name of ['pv-staying', 'pv-ephemeral', 'pv-other'])
    attach(stage, name, { persistentVolumeName: name })
  await stage.deleteClaim('a')
  await stage.pass(10 * seconds)
  assert.equal(stage.state('a', 'VolumesDetached'), 'Unknown/AwaitingVolumeDetachment')
  assert.match(stage.events('AwaitingVolumeDetachment')[0]?.message ?? '', /: pv-other$/)
  stage.delete(kinds.volumeAttachment, 'pv-other')
  await stage.pass(3 * seconds)
  assert.equal(stage.state('a', 'VolumesDetached'), 'True/VolumesDetached')
  await stage.pass(20 * seconds)
  assert.equal(stage.nodeNow('node-a'), undefined)
})

test('LIF-101 LIF-104 attached volumes are awaited, those without a volume name are not', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a')
  attach(stage, 'one', { persistentVolumeName: 'pv-1' })
  attach(stage, 'inline', { inlineVolumeSpec: { hostPath: { path: '/' } } })
  await stage.deleteClaim('a')
  await stage.pass(10 * seconds)
  assert.equal(stage.state('a', 'VolumesDetached'), 'Unknown/AwaitingVolumeDetachment')
  assert.match(stage.events('AwaitingVolumeDetachment')[0]?.message ?? '', /pv-1$/)
  stage.delete(kinds.volumeAttachment, 'one')
  await stage.pass(20 * seconds)
  assert.equal(stage.nodeNow('node-a'), undefined)
})

test('LIF-103 past the deadline volumes are not awaited', async (t) => {
  const stage = await Stage.open(t)
  stage.cloud.deletionMs = minutes
  await stage.ready('a', { terminationGracePeriod: '20s' })
  attach(stage, 'one', { persistentVolumeName: 'pv-1' })
  await stage.deleteClaim('a')
  await stage.pass(25 * seconds)
  assert.equal(stage.state('a', 'VolumesDetached'), 'False/TerminationGracePeriodElapsed')
  assert.ok(stage.cloud.count('delete') > 0)
})
