import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kinds, type PodSpec } from '@tenon/api'
import { aCluster, hostKey, inZone, zoneKey } from '../scheduling-fixture.test-support.ts'

function mounts(...claims: string[]): Pick<PodSpec, 'volumes'> {
  return {
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
  }
}

describe('pods with volumes', () => {
  it('waits for a missing claim and binds when it is there', async () => {
    const cluster = aCluster().node('a').pod('p', mounts('data'))
    await cluster.settle()
    assert.match(
      cluster.reason('p') ?? '',
      /^0\/1 nodes are available: persistentvolumeclaim "data" not found\./,
    )
    cluster.volume('pv', undefined).claim('data', { volumeName: 'pv' })
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('p'), 'a')
  })

  it('RPT-58 does not take a claim of an ephemeral volume that is not its own', async () => {
    const cluster = aCluster().node('a').volume('pv', undefined).claim('p-data', { volumeName: 'pv' })
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    cluster.pod('p', { volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec } } }] })
    await cluster.settle()
    assert.match(
      cluster.reason('p') ?? '',
      /PVC default\/p-data was not created for pod default\/p \(pod is not owner\)/,
    )
  })

  it('waits for an immediate claim that is not bound', async () => {
    const cluster = aCluster().node('a').storageClass('fast', { volumeBindingMode: 'Immediate' })
    cluster.claim('data', { storageClassName: 'fast' }).pod('p', mounts('data'))
    await cluster.settle()
    assert.match(cluster.reason('p') ?? '', /pod has unbound immediate PersistentVolumeClaims/)
  })

  it('follows the node affinity and the zone label of a bound volume', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2'))
    cluster.volume('pv', '2').claim('data', { volumeName: 'pv' }).pod('p', mounts('data'))
    cluster.volume('old', undefined, { [zoneKey]: '1' }).claim('zonal', { volumeName: 'old' })
    cluster.pod('q', mounts('zonal'))
    cluster.volume('far', '3').claim('away', { volumeName: 'far' }).pod('r', mounts('away'))
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('p'), cluster.nodeOf('q')], ['b', 'a'])
    assert.match(cluster.reason('r') ?? '', /2 node\(s\) had volume node affinity conflict/)
  })

  it('places a WaitForFirstConsumer claim within allowed topologies and tells it the node', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2'))
    const allowedTopologies = [{ matchLabelExpressions: [{ key: zoneKey, values: ['2'] }] }]
    cluster.storageClass('late', { volumeBindingMode: 'WaitForFirstConsumer', allowedTopologies })
    cluster.claim('data', { storageClassName: 'late' }).pod('p', mounts('data'))
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'b')
    const claim = cluster.api.get(kinds.persistentVolumeClaim, 'default', 'data')
    assert.equal(claim?.metadata.annotations?.['volume.kubernetes.io/selected-node'], 'b')
  })

  it('finds no volume where nothing provisions one', async () => {
    const cluster = aCluster().node('a')
    const fields = {
      volumeBindingMode: 'WaitForFirstConsumer',
      provisioner: 'kubernetes.io/no-provisioner',
    }
    cluster
      .storageClass('local', fields)
      .claim('data', { storageClassName: 'local' })
      .pod('p', mounts('data'))
    await cluster.settle()
    assert.match(cluster.reason('p') ?? '', /1 node\(s\) didn't find available persistent volumes to bind/)
  })

  it('binds only volumes that suit a claim in every respect', async () => {
    const cluster = aCluster().node('a')
    const fields = { volumeBindingMode: 'WaitForFirstConsumer', provisioner: 'kubernetes.io/no-provisioner' }
    cluster.storageClass('local', fields)
    const offered = (name: string, more: object, labels = {}) => {
      cluster.create(kinds.persistentVolume, {
        metadata: { name, labels },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'local',
          csi: { driver: 'csi.test', volumeHandle: name },
          ...more,
        },
      })
      if (name !== 'pending')
        cluster.api.patch(
          kinds.persistentVolume,
          undefined,
          name,
          { status: { phase: 'Available' } },
          'status',
        )
    }
    offered('pending', {})
    offered('raw', { volumeMode: 'Block' })
    offered('read-only', { accessModes: ['ReadOnlyMany'] })
    offered('released', { claimRef: { namespace: 'default', name: 'gone' } })
    const selector = { matchLabels: { disk: 'fast' } }
    cluster.claim('data', { storageClassName: 'local' }).pod('p', mounts('data'))
    cluster.claim('picky', { storageClassName: 'local', selector }).pod('q', mounts('picky'))
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('p'), cluster.nodeOf('q')], [undefined, undefined])
    offered('plain', {})
    await cluster.settle(2000)
    assert.deepEqual([cluster.nodeOf('p'), cluster.nodeOf('q')], ['a', undefined])
    offered('fast', {}, { disk: 'fast' })
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('q'), 'a')
  })

  it('PGE-17 lets the second of two pods wait for a free local volume', async () => {
    const cluster = aCluster().node('a')
    const fields = { volumeBindingMode: 'WaitForFirstConsumer', provisioner: 'kubernetes.io/no-provisioner' }
    cluster.storageClass('local', fields)
    const term = { matchExpressions: [{ key: hostKey, operator: 'In' as const, values: ['a'] }] }
    const offer = (name: string) =>
      cluster.create(kinds.persistentVolume, {
        metadata: { name },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'local',
          csi: { driver: 'disks.test', volumeHandle: name },
          nodeAffinity: { required: { nodeSelectorTerms: [term] } },
        },
      })
    const makeAvailable = (name: string) =>
      cluster.api.patch(kinds.persistentVolume, undefined, name, { status: { phase: 'Available' } }, 'status')
    offer('one')
    makeAvailable('one')
    cluster.claim('first', { storageClassName: 'local' }).pod('p', mounts('first'))
    cluster.claim('second', { storageClassName: 'local' }).pod('q', mounts('second'))
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('p'), cluster.nodeOf('q')], ['a', undefined])
    assert.match(cluster.reason('q') ?? '', /1 node\(s\) didn't find available persistent volumes to bind/)
    const claim = cluster.api.get(kinds.persistentVolumeClaim, 'default', 'first')
    const volume = cluster.api.get(kinds.persistentVolume, undefined, 'one')
    assert.equal(volume?.spec.claimRef?.uid, claim?.metadata.uid)
    assert.equal(claim?.metadata.annotations, undefined, 'nothing is provisioned for it')
    offer('two')
    makeAvailable('two')
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('q'), 'a')
  })

  it('PGE-17 reads the beta zone label of a volume as kube-scheduler does', async () => {
    const cluster = aCluster().node('a', inZone('1')).node('b', inZone('2'))
    const beta = { 'failure-domain.beta.kubernetes.io/zone': '2' }
    cluster.volume('old', undefined, beta).claim('data', { volumeName: 'old' }).pod('p', mounts('data'))
    await cluster.settle()
    assert.equal(cluster.nodeOf('p'), 'b')
  })

  it('waits until the controller of volumes has bound a claim that names its volume', async () => {
    const cluster = aCluster().node('a').volume('v', undefined)
    const resources = { requests: { storage: '1Gi' } }
    cluster.create(kinds.persistentVolumeClaim, {
      metadata: { name: 'c', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], volumeName: 'v', resources },
    })
    cluster.pod('p', mounts('c'))
    await cluster.settle()
    assert.match(cluster.reason('p') ?? '', /pod has unbound immediate PersistentVolumeClaims/)
    const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' }
    cluster.api.patch(kinds.persistentVolumeClaim, 'default', 'c', { metadata: { annotations } })
    await cluster.settle(2000)
    assert.equal(cluster.nodeOf('p'), 'a')
  })

  it('keeps a pod off whose claim has lost its volume', async () => {
    const cluster = aCluster().node('a').volume('v', undefined).claim('c', { volumeName: 'v' })
    const status = { phase: 'Lost' }
    cluster.api.patch(kinds.persistentVolumeClaim, 'default', 'c', { status }, 'status')
    cluster.pod('p', mounts('c'))
    await cluster.settle()
    assert.match(cluster.reason('p') ?? '', /"c" bound to non-existent persistentvolume "v"/)
  })

  it('finds no volume for a claim whose class provisions none once its node was selected', async () => {
    const cluster = aCluster().node('a').storageClass('local', {
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    })
    cluster.claim('c', { storageClassName: 'local' })
    const annotations = { 'volume.kubernetes.io/selected-node': 'a' }
    cluster.api.patch(kinds.persistentVolumeClaim, 'default', 'c', { metadata: { annotations } })
    cluster.pod('p', mounts('c'))
    await cluster.settle()
    assert.match(cluster.reason('p') ?? '', /1 node\(s\) didn't find available persistent volumes to bind/)
  })

  it('keeps to the CSI limit of a node, counting a shared volume once', async () => {
    const cluster = aCluster().node('a')
    const driver = { name: 'csi.test', nodeID: 'a', allocatable: { count: 1 } }
    cluster.create(kinds.csiNode, { metadata: { name: 'a' }, spec: { drivers: [driver] } })
    cluster.volume('v1', undefined).claim('c1', { volumeName: 'v1' })
    cluster.volume('v2', undefined).claim('c2', { volumeName: 'v2' })
    cluster.pod('p1', mounts('c1')).pod('p1-too', mounts('c1')).pod('p2', mounts('c2'))
    await cluster.settle()
    assert.deepEqual([cluster.nodeOf('p1'), cluster.nodeOf('p1-too')], ['a', 'a'])
    assert.match(cluster.reason('p2') ?? '', /1 node\(s\) exceed max volume count/)
  })

  it('lets one pod at a time use a ReadWriteOncePod claim', async () => {
    const cluster = aCluster().node('a').volume('v', undefined)
    cluster.claim('c', { volumeName: 'v', accessModes: ['ReadWriteOncePod'] })
    cluster.pod('p1', mounts('c')).pod('p2', mounts('c'))
    await cluster.settle()
    assert.equal(cluster.nodeOf('p1'), 'a')
    assert.match(cluster.reason('p2') ?? '', /ReadWriteOncePod access mode/)
  })

  it('mounts a disk that pods name themselves once per node, several times only to read', async () => {
    const disks: readonly (readonly [string, object, object, boolean])[] = [
      ['gce', { gcePersistentDisk: { pdName: 'd' } }, { gcePersistentDisk: { pdName: 'd' } }, false],
      [
        'gce-read',
        { gcePersistentDisk: { pdName: 'd', readOnly: true } },
        { gcePersistentDisk: { pdName: 'd', readOnly: true } },
        true,
      ],
      ['gce-other', { gcePersistentDisk: { pdName: 'd' } }, { gcePersistentDisk: { pdName: 'e' } }, true],
      [
        'ebs-read',
        { awsElasticBlockStore: { volumeID: 'v', readOnly: true } },
        { awsElasticBlockStore: { volumeID: 'v', readOnly: true } },
        false,
      ],
      ['iscsi', iscsi('x', 0), iscsi('x', 1), false],
      ['iscsi-other', iscsi('x', 0), iscsi('y', 0), true],
      ['rbd', rbd(['m1', 'm2'], 'i'), rbd(['m2', 'm3'], 'i'), false],
      ['rbd-monitors', rbd(['m1'], 'i'), rbd(['m2'], 'i'), true],
      ['rbd-image', rbd(['m1'], 'i'), rbd(['m1'], 'j'), true],
    ]
    const cluster = aCluster()
    for (const [name, first, second] of disks) {
      cluster.node(name)
      const nodeSelector = { [hostKey]: name }
      cluster.pod(`${name}-1`, { nodeName: name, volumes: [{ name: 'v', ...first }] })
      cluster.pod(`${name}-2`, { nodeSelector, volumes: [{ name: 'v', ...second }] })
    }
    await cluster.settle()
    assert.deepEqual(
      disks.map(([name]) => [name, cluster.nodeOf(`${name}-2`) !== undefined]),
      disks.map(([name, , , fits]) => [name, fits]),
    )
    assert.match(cluster.reason('gce-2') ?? '', /1 node\(s\) had no available disk/)
  })
})

function iscsi(iqn: string, lun: number): object {
  return { iscsi: { targetPortal: '10.0.0.9', iqn: `iqn.2026-01.test:${iqn}`, lun } }
}

function rbd(monitors: readonly string[], image: string): object {
  return { rbd: { monitors, pool: 'rbd', image } }
}
