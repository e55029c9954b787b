import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kinds, type Node } from '@tenon/api'
import { KubeletFixture } from './kubelet-fixture.test-support.ts'

describe('a kubelet and its Node', () => {
  it('registers the Node not ready, with labels, addresses and sizes, and is Ready after its delay', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet('a', { taints: [{ key: 'k', effect: 'NoSchedule' }] })
    await fixture.seconds(1)
    const node = fixture.node()
    assert.equal(node?.spec?.providerID, 'test://a')
    assert.deepEqual(node.spec.taints?.[0], { key: 'k', effect: 'NoSchedule' })
    assert.equal(node.metadata.labels?.['kubernetes.io/hostname'], 'a')
    assert.equal(node.metadata.labels?.['kubernetes.io/arch'], 'amd64')
    assert.equal(node.metadata.labels?.['pool'], 'x')
    assert.equal(node.status?.allocatable?.['cpu'], '3800m')
    assert.equal(node.status?.nodeInfo?.['kubeletVersion'], 'v1.36.0')
    assert.equal(node.status?.daemonEndpoints?.kubeletEndpoint?.Port, 10250)
    assert.deepEqual(
      node.status?.addresses?.map((one) => one.type),
      ['InternalIP', 'Hostname'],
    )
    assert.deepEqual(
      node.status?.conditions?.map((one) => `${one.type} ${one.status} ${one.reason}`),
      [
        'MemoryPressure False KubeletHasSufficientMemory',
        'DiskPressure False KubeletHasNoDiskPressure',
        'PIDPressure False KubeletHasSufficientPID',
        'Ready False KubeletNotReady',
      ],
    )
    await fixture.seconds(3)
    assert.equal(fixture.ready(), 'True')
  })

  it('of an instance that never gets ready reports so for good', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet('a', { neverReady: true })
    await fixture.seconds(3600)
    assert.equal(fixture.ready(), 'False')
  })

  it('adopts a Node that exists: keeps its labels and taints, sets only what kubelets set', async () => {
    const fixture = new KubeletFixture()
    fixture.api.create<Node>(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'a', labels: { mine: 'yes' } },
      spec: { taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }] },
    })
    fixture.kubelet('a', { taints: [{ key: 'k', effect: 'NoSchedule' }] })
    await fixture.seconds(4)
    const node = fixture.node()
    assert.equal(node?.metadata.labels?.['mine'], 'yes')
    assert.equal(node.metadata.labels?.['topology.kubernetes.io/zone'], '1')
    assert.equal(node.metadata.labels?.['kubernetes.io/hostname'], 'a')
    assert.equal(node.metadata.labels?.['pool'], undefined)
    assert.deepEqual(node.spec?.taints?.[0], { key: 'karpenter.sh/unregistered', effect: 'NoExecute' })
    assert.ok(!node.spec.taints.some((one) => one.key === 'k'))
    assert.equal(node.status?.capacity?.['cpu'], '4')
    assert.equal(fixture.ready(), 'True')
  })

  it('renews its lease every ten seconds and reports its status every five minutes', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    await fixture.seconds(5)
    let renewals = 0
    let reports = 0
    fixture.api.subscribe(kinds.lease, { updated: () => renewals++ })
    fixture.api.subscribe(kinds.node, { updated: () => reports++ })
    await fixture.seconds(700)
    assert.equal(renewals, 70)
    assert.equal(reports, 2)
    const lease = fixture.api.get(kinds.lease, 'kube-node-lease', 'a')
    assert.equal(lease?.spec?.holderIdentity, 'a')
    assert.equal(lease?.spec?.leaseDurationSeconds, 40)
  })

  it('reports no sooner when somebody has written its sizes in another form', async () => {
    const fixture = new KubeletFixture()
    const capacity = { cpu: '4', memory: '8388608Ki', 'ephemeral-storage': '53687091200', pods: '110' }
    fixture.kubelet('a', { capacity, allocatable: capacity })
    await fixture.seconds(5)
    const sizes = { memory: '8Gi', 'ephemeral-storage': '50Gi' }
    fixture.api.patch(
      kinds.node,
      undefined,
      'a',
      { status: { capacity: sizes, allocatable: sizes } },
      'status',
    )
    let reports = 0
    fixture.api.subscribe(kinds.node, { updated: () => reports++ })
    await fixture.seconds(280)
    assert.equal(reports, 0)
    const more = { memory: '9Gi' }
    fixture.api.patch(kinds.node, undefined, 'a', { status: { allocatable: more } }, 'status')
    await fixture.seconds(10)
    assert.equal(fixture.node()?.status?.allocatable?.['memory'], '8Gi')
  })

  it('says Ready again when somebody else wrote that it is unknown', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    await fixture.seconds(5)
    const conditions = [
      { type: 'Ready', status: 'Unknown' },
      { type: 'Custom', status: 'True' },
    ]
    fixture.api.patch(kinds.node, undefined, 'a', { status: { conditions } }, 'status')
    await fixture.seconds(11)
    assert.equal(fixture.ready(), 'True')
    assert.ok(fixture.node()?.status?.conditions?.some((one) => one.type === 'Custom'))
  })

  it('registers again when its Node is deleted, unless told not to', async () => {
    for (const reRegister of [true, false]) {
      const fixture = new KubeletFixture({ reRegister })
      fixture.kubelet()
      await fixture.seconds(5)
      fixture.api.delete(kinds.node, undefined, 'a')
      await fixture.seconds(11)
      assert.equal(fixture.ready(), reRegister ? 'True' : undefined)
    }
  })

  it('falls silent when stopped: Node and pods stay as they are, and it can come back', async () => {
    const fixture = new KubeletFixture()
    const handle = fixture.kubelet()
    fixture.pod('p')
    await fixture.seconds(5)
    handle.stop()
    assert.deepEqual(fixture.kubelets.running(), [])
    const before = fixture.api.get(kinds.lease, 'kube-node-lease', 'a')
    fixture.api.delete(kinds.pod, 'default', 'p')
    fixture.pod('late')
    await fixture.seconds(600)
    assert.equal(fixture.api.get(kinds.lease, 'kube-node-lease', 'a'), before)
    assert.equal(fixture.brief('p'), 'Running running')
    assert.equal(fixture.brief('late'), 'Pending')
    fixture.kubelet()
    await fixture.seconds(6)
    assert.equal(fixture.api.get(kinds.pod, 'default', 'p'), undefined)
    assert.equal(fixture.brief('late'), 'Running running')
  })

  it('PGE-17 keeps a Node Ready when the whole cluster is started again, but not when its instance is', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    await fixture.seconds(5)
    assert.equal(fixture.ready(), 'True')
    fixture.kubelets.stop()
    await fixture.seconds(10)
    const again = new KubeletFixture({}, fixture)
    const second = again.kubelet()
    assert.equal(again.ready(), 'True')
    await fixture.seconds(60)
    assert.equal(again.ready(), 'True')
    second.stop()
    const third = again.kubelet()
    assert.equal(again.ready(), 'False', 'its instance starts anew')
    await fixture.seconds(5)
    third.stop()
    await fixture.seconds(5)
    new KubeletFixture({}, fixture).kubelet('a', { providerId: 'test://other' })
    assert.equal(again.ready(), 'False', 'another instance has its name')
  })

  it('publishes a CSINode with the configured drivers', async () => {
    const fixture = new KubeletFixture({ csiDrivers: [{ name: 'csi.test', volumesPerNode: 3 }] })
    fixture.kubelet()
    await fixture.seconds(1)
    assert.deepEqual(fixture.api.get(kinds.csiNode, undefined, 'a')?.spec.drivers, [
      { name: 'csi.test', nodeID: 'a', allocatable: { count: 3 } },
    ])
  })
})
