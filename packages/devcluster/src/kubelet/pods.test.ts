import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kinds, type PersistentVolume, type Pod, type VolumeAttachment } from '@tenon/api'
import { KubeletFixture } from './kubelet-fixture.test-support.ts'

describe('pods on a kubelet', () => {
  it('brings a pod from ContainerCreating to Ready with three writes at most', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    await fixture.seconds(4)
    let writes = 0
    fixture.api.subscribe<Pod>(kinds.pod, { updated: () => writes++ })
    fixture.pod('p')
    await fixture.seconds(1)
    assert.equal(fixture.brief('p'), 'Pending waiting ContainerCreating')
    await fixture.seconds(2)
    assert.equal(fixture.brief('p'), 'Running running')
    const status = fixture.status('p')
    assert.equal(status.hostIP, '192.0.2.1')
    assert.match(status.podIP ?? '', /^10\./)
    assert.deepEqual(
      status.conditions?.filter((one) => one.status === 'True').map((one) => one.type),
      ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'],
    )
    assert.equal(writes, 2)
  })

  it('gives every pod of a node an address of its own, and host network pods that of the node', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    fixture.pod('p1')
    fixture.pod('p2')
    fixture.pod('host', { hostNetwork: true })
    await fixture.seconds(3)
    const [first, second, host] = ['p1', 'p2', 'host'].map((name) => fixture.status(name).podIP)
    assert.notEqual(first, second)
    assert.equal(host, '192.0.2.1')
  })

  it('runs init containers one after the other and keeps sidecars', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    const initContainers = [{ name: 'side', restartPolicy: 'Always' }, { name: 'one' }, { name: 'two' }]
    fixture.pod('p', { initContainers })
    const inits = () => {
      const { initContainerStatuses = [] } = fixture.api.get(kinds.pod, 'default', 'p')?.status ?? {}
      return initContainerStatuses.map((one) => Object.keys(one.state ?? {})[0])
    }
    await fixture.seconds(1.5)
    assert.deepEqual(inits(), ['running', 'waiting', 'waiting'])
    await fixture.seconds(2)
    assert.deepEqual(inits(), ['running', 'terminated', 'running'])
    await fixture.seconds(3)
    assert.deepEqual(inits(), ['running', 'terminated', 'terminated'])
    assert.equal(fixture.brief('p'), 'Running running')
  })

  it('ends a pod that is active for longer than its deadline', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    const late = { activeDeadlineSeconds: 20 }
    fixture.pod('late', late)
    fixture.pod('done', { ...late, annotations: { 'tenon.sh/run-seconds': '5' }, restartPolicy: 'Never' })
    await fixture.seconds(15)
    assert.equal(fixture.brief('late'), 'Running running')
    await fixture.seconds(6)
    assert.equal(fixture.status('late').phase, 'Failed')
    assert.equal(fixture.api.get(kinds.pod, 'default', 'late')?.status?.reason, 'DeadlineExceeded')
    assert.equal(fixture.status('done').phase, 'Succeeded')
    await fixture.seconds(60)
    assert.equal(fixture.status('late').phase, 'Failed')
  })

  it('takes a pod for ready once somebody has opened its readiness gates', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    const gates = { readinessGates: [{ conditionType: 'example.com/reachable' }] }
    fixture.pod('p', gates)
    await fixture.seconds(10)
    const ready = () =>
      ['Ready', 'ContainersReady'].map(
        (type) => fixture.status('p').conditions?.find((one) => one.type === type)?.status,
      )
    assert.deepEqual(ready(), ['False', 'True'])
    const conditions = [
      ...(fixture.status('p').conditions ?? []),
      { type: 'example.com/reachable', status: 'True' },
    ]
    fixture.api.patch(kinds.pod, 'default', 'p', { status: { conditions } }, 'status')
    await fixture.seconds(1)
    assert.deepEqual(ready(), ['True', 'True'])
  })

  it('starts no more pods at once than it may', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet('a', { maxParallelStarts: 1 })
    for (const name of ['p1', 'p2', 'p3']) fixture.pod(name)
    const running = () => ['p1', 'p2', 'p3'].filter((name) => fixture.status(name).phase === 'Running').length
    await fixture.seconds(2.5)
    assert.equal(running(), 1)
    await fixture.seconds(2)
    assert.equal(running(), 2)
    fixture.api.delete(kinds.pod, 'default', 'p3', { gracePeriodSeconds: 0 })
    fixture.pod('p4')
    await fixture.seconds(5)
    assert.equal(fixture.status('p4').phase, 'Running')
  })

  it('refuses what does not fit: resources, host ports, node selector', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    const containers = [{ name: 'main', ports: [{ containerPort: 80, hostPort: 80 }] }]
    fixture.pod('big', { requests: { cpu: '3' } })
    fixture.pod('more', { requests: { cpu: '1' } })
    fixture.pod('port', { containers })
    fixture.pod('same-port', { containers })
    fixture.pod('picky', { nodeSelector: { pool: 'y' } })
    await fixture.seconds(4)
    const seen = ['big', 'more', 'port', 'same-port', 'picky'].map((name) => {
      const { phase, reason } = fixture.status(name)
      return [phase, reason]
    })
    assert.deepEqual(seen, [
      ['Running', undefined],
      ['Failed', 'OutOfcpu'],
      ['Running', undefined],
      ['Failed', 'NodePorts'],
      ['Failed', 'NodeAffinity'],
    ])
    assert.equal(
      fixture.status('more').message,
      "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 3000, capacity: 3800",
    )
  })

  it('ends pods that say how long they run, and frees their room', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    const annotations = { 'tenon.sh/run-seconds': '3' }
    fixture.pod('done', { annotations, restartPolicy: 'Never', requests: { cpu: '3' } })
    fixture.pod('broken', {
      annotations: { ...annotations, 'tenon.sh/exit-code': '2' },
      restartPolicy: 'Never',
    })
    await fixture.seconds(4)
    assert.equal(fixture.brief('done'), 'Running running')
    await fixture.seconds(2)
    assert.equal(fixture.brief('done'), 'Succeeded terminated Completed')
    assert.equal(fixture.brief('broken'), 'Failed terminated Error')
    assert.equal(fixture.status('broken').containerStatuses?.[0]?.state['terminated']?.exitCode, 2)
    fixture.pod('next', { requests: { cpu: '3' } })
    await fixture.seconds(3)
    assert.equal(fixture.status('next').phase, 'Running')
  })

  it('ends pods of Jobs after the set time', async () => {
    const fixture = new KubeletFixture({ jobRunSeconds: 10 })
    fixture.kubelet()
    fixture.pod('job', { ownerKind: 'Job', restartPolicy: 'Never' })
    await fixture.seconds(11)
    assert.equal(fixture.status('job').phase, 'Running')
    await fixture.seconds(2)
    assert.equal(fixture.status('job').phase, 'Succeeded')
  })

  it('gives the room of a deleted pod to the next one, and takes none for a refused one', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    fixture.pod('first', { requests: { cpu: '3' } })
    fixture.pod('refused', { requests: { cpu: '3' } })
    await fixture.seconds(4)
    assert.equal(fixture.status('refused').reason, 'OutOfcpu')
    fixture.api.delete(kinds.pod, 'default', 'first', { gracePeriodSeconds: 1 })
    await fixture.seconds(4)
    fixture.pod('next', { requests: { cpu: '3' } })
    await fixture.seconds(4)
    assert.equal(fixture.status('next').phase, 'Running')
  })

  it('restarts containers as the policy says, waiting longer after each crash', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    const annotations = { 'tenon.sh/run-seconds': '1', 'tenon.sh/exit-code': '1' }
    fixture.pod('p', { annotations, restartPolicy: 'OnFailure' })
    fixture.pod('ok', { annotations: { 'tenon.sh/run-seconds': '1' }, restartPolicy: 'OnFailure' })
    await fixture.seconds(3.5)
    assert.equal(fixture.status('p').containerStatuses?.[0]?.restartCount, 1)
    assert.equal(fixture.status('ok').phase, 'Succeeded')
    await fixture.seconds(1)
    assert.equal(fixture.brief('p'), 'Running waiting CrashLoopBackOff')
    await fixture.seconds(10)
    assert.equal(fixture.brief('p'), 'Running running')
    await fixture.seconds(1)
    assert.equal(fixture.status('p').containerStatuses?.[0]?.restartCount, 3)
  })

  it('stops a deleted pod within its grace period and then removes it', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    fixture.pod('p')
    fixture.pod('hasty')
    fixture.pod('starting')
    await fixture.seconds(4)
    fixture.pod('unstarted')
    await fixture.seconds(0.5)
    fixture.api.delete(kinds.pod, 'default', 'p')
    fixture.api.delete(kinds.pod, 'default', 'hasty', { gracePeriodSeconds: 1 })
    fixture.api.delete(kinds.pod, 'default', 'unstarted')
    await fixture.seconds(1.5)
    const left = () => fixture.api.list(kinds.pod).map((one) => one.metadata.name)
    assert.deepEqual(left().toSorted(), ['p', 'starting'])
    await fixture.seconds(1)
    assert.deepEqual(left(), ['starting'])
  })

  it('reports a deleted pod as ended even when a finalizer keeps the object', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    fixture.pod('p', {
      ownerKind: 'Job',
      annotations: { 'tenon.sh/run-seconds': '100' },
      restartPolicy: 'Never',
    })
    fixture.api.patch(kinds.pod, 'default', 'p', {
      metadata: { finalizers: ['batch.kubernetes.io/job-tracking'] },
    })
    await fixture.seconds(4)
    fixture.api.delete(kinds.pod, 'default', 'p')
    await fixture.seconds(4)
    assert.equal(fixture.brief('p'), 'Failed terminated Error')
  })

  it('attaches CSI volumes before the pod starts and detaches them after it', async () => {
    const fixture = new KubeletFixture()
    fixture.kubelet()
    withVolume(fixture)
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
    fixture.pod('p', { volumes })
    await fixture.seconds(1.1)
    const attachments = () => fixture.api.list<VolumeAttachment>(kinds.volumeAttachment)
    assert.equal(attachments()[0]?.spec.source.persistentVolumeName, 'pv')
    assert.equal(fixture.status('p').phase, 'Pending')
    await fixture.seconds(4)
    assert.equal(fixture.status('p').phase, 'Running')
    assert.deepEqual(fixture.node()?.status?.volumesInUse, ['kubernetes.io/csi/csi.test^h1'])
    assert.deepEqual(fixture.node()?.status?.volumesAttached, [
      { name: 'kubernetes.io/csi/csi.test^h1', devicePath: '' },
    ])
    fixture.api.delete(kinds.pod, 'default', 'p')
    await fixture.seconds(5)
    assert.deepEqual(attachments(), [])
    assert.deepEqual(fixture.node()?.status?.volumesInUse, [])
  })

  it('PGE-17 detaches volumes of a silent node after minutes, or at once if it is out of service', async () => {
    for (const isOutOfService of [false, true]) {
      const fixture = new KubeletFixture()
      const kubelet = fixture.kubelet()
      withVolume(fixture)
      fixture.pod('p', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] })
      await fixture.seconds(5.1)
      assert.equal(fixture.status('p').phase, 'Running')
      kubelet.stop()
      fixture.api.delete(kinds.pod, 'default', 'p', { gracePeriodSeconds: 0 })
      await fixture.seconds(60)
      const attached = () => fixture.api.list<VolumeAttachment>(kinds.volumeAttachment).length
      assert.equal(attached(), 1)
      const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
      if (isOutOfService) fixture.api.patch(kinds.node, undefined, kubelet.nodeName, { spec: { taints } })
      await fixture.seconds(1)
      assert.equal(attached(), isOutOfService ? 0 : 1)
      await fixture.seconds(360)
      assert.equal(attached(), 0)
    }
  })
})

/** Creates the claim `data` with a CSI volume. */
function withVolume({ api }: KubeletFixture): void {
  api.create<PersistentVolume>(kinds.persistentVolume, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver: 'csi.test', volumeHandle: 'h1' },
    },
  })
  api.create(kinds.persistentVolumeClaim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'default' },
    spec: { volumeName: 'pv', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  })
}
