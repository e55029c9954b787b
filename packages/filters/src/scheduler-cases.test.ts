import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type {
  CsiDriver,
  CsiNode,
  CsiStorageCapacity,
  LabelSelector,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodSpec,
  Taint,
  VolumeAttachment,
} from '@tenon/api'
import {
  extendedResourceCases,
  featureCases,
  nodeFieldCases,
  nodeTermCases,
  resizeCases,
  selectorCases,
  tolerationCases,
  volumeZoneCases,
} from '@tenon/api/scheduler-cases'
import { type NodeParts, PodReader, Snapshot } from './snapshot.ts'
import { DeviceIndex } from './devices/device-index.ts'
import { VolumeIndex } from './volumes/volume-index.ts'

const textOf = (value: unknown) => JSON.stringify(value)
const driver = 'csi.example.com'

function aNode(labels: Readonly<Record<string, string>>, taints: readonly Taint[] = []): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1', labels },
    spec: { taints },
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '10' } },
  }
}

function aPod(name: string, spec: Partial<PodSpec>, labels: Readonly<Record<string, string>> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: name, namespace: 'default', labels },
    spec: { containers: [{ name: 'main' }], ...spec },
  }
}

function aClaim(name: string): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    spec: { volumeName: name, accessModes: ['ReadWriteMany'] },
    status: { phase: 'Bound' },
  }
}

function aVolume(name: string, labels: Readonly<Record<string, string>> = {}): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, labels },
    spec: { csi: { driver, volumeHandle: name } },
  }
}

const using = (...claims: readonly string[]): Partial<PodSpec> => ({
  volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
})

function snapshotWith(node: Node, volumes = new VolumeIndex()): Snapshot {
  const snapshot = new Snapshot({ reader: new PodReader(), volumes, namespaces: new Map([['default', {}]]) })
  snapshot.setNode(node)
  return snapshot
}

const fits = (node: Node, pod: Pod, volumes?: VolumeIndex) =>
  snapshotWith(node, volumes).find(pod) !== undefined

describe('RPB-41 the filters decide as kube-scheduler', () => {
  test('about tolerations', () => {
    for (const each of tolerationCases)
      assert.equal(
        fits(aNode({}, [each.taint]), aPod('p', { tolerations: [each.toleration] })),
        each.isTolerated,
        textOf(each),
      )
  })

  test('about node affinity', () => {
    for (const each of [...nodeTermCases, ...nodeFieldCases]) {
      const affinity = {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [each.term] } },
      }
      assert.equal(fits(aNode(each.labels), aPod('p', { affinity })), each.isMet, textOf(each))
    }
  })

  test('about the pods that a selector selects', () => {
    for (const each of selectorCases) {
      const snapshot = snapshotWith(aNode({ 'kubernetes.io/hostname': 'node-1' }))
      snapshot.assign(aPod('other', {}, each.labels), 'node-1')
      const affinity = {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'kubernetes.io/hostname', ...(each.selector && { labelSelector: each.selector }) },
          ],
        },
      }
      assert.equal(snapshot.find(aPod('p', { affinity })) === undefined, each.isMet, textOf(each))
    }
  })

  test('VER-38 VER-39 VER-40 about pods that are resized in place', () => {
    for (const { about, spec, status, cpu } of resizeCases)
      for (const rule of ['sumOfMaxima', 'maximumOfSums'] as const) {
        const snapshot = new Snapshot({
          reader: new PodReader(rule),
          volumes: new VolumeIndex(),
          namespaces: new Map(),
        })
        const allocatable = { cpu: '10', pods: '10' }
        const node: Node = { ...aNode({}), status: { allocatable } }
        snapshot.setNode(node)
        snapshot.assign({ ...aPod('resized', spec), status }, 'node-1')
        const asking = (amount: number) =>
          aPod(`p-${amount}`, {
            containers: [{ name: 'main', resources: { requests: { cpu: `${amount}m` } } }],
          })
        assert.ok(snapshot.find(asking(10_000 - cpu[rule])), `${about}, ${rule}`)
        assert.equal(snapshot.find(asking(10_001 - cpu[rule])), undefined, `${about}, ${rule}`)
      }
  })

  test('VER-23 about features that nodes declare', () => {
    for (const each of featureCases) {
      const { declared } = each
      const plain = aNode({})
      const node: Node = {
        ...plain,
        status: { ...plain.status, ...(declared && { declaredFeatures: declared }) },
      }
      assert.equal(fits(node, aPod('p', each.spec)), each.isMet, textOf(each))
    }
  })

  test('VER-37 about zone labels of volumes', () => {
    for (const each of volumeZoneCases) {
      const volumes = new VolumeIndex()
      volumes.setClaim(aClaim('v'))
      volumes.setVolume(aVolume('v', each.volume))
      assert.equal(fits(aNode(each.node), aPod('p', using('v')), volumes), each.isReachable, textOf(each))
    }
  })

  test('about attached volumes that no pod of the node uses', () => {
    const volumes = new VolumeIndex()
    for (const name of ['a', 'b', 'c']) {
      volumes.setClaim(aClaim(name))
      volumes.setVolume(aVolume(name))
    }
    volumes.setCsiNode(limitedTo(2))
    const snapshot = snapshotWith(aNode({}), volumes)
    snapshot.assign(aPod('first', using('a')), 'node-1')
    volumes.setAttachment(attached('a'))
    assert.ok(snapshot.find(aPod('p', using('b'))), 'a volume of a pod counts once')
    volumes.setAttachment(attached('c', 'other.example.com'))
    assert.ok(snapshot.find(aPod('q', using('b'))), 'other drivers do not count')
    volumes.setAttachment(attached('c'))
    assert.equal(snapshot.find(aPod('r', using('b'))), undefined)
    assert.ok(snapshot.find(aPod('s', using('c'))), 'what is attached already is no further one')
    volumes.removeAttachment(attached('c'))
    assert.ok(snapshot.find(aPod('t', using('b'))))
  })

  test('VER-32 after three attachments of no pod, a limit of four leaves room for one volume', () => {
    const volumes = new VolumeIndex()
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      volumes.setClaim(aClaim(name))
      volumes.setVolume(aVolume(name))
    }
    volumes.setCsiNode(limitedTo(4))
    for (const name of ['a', 'b', 'c']) volumes.setAttachment(attached(name))
    const snapshot = snapshotWith(aNode({}), volumes)
    assert.ok(snapshot.find(aPod('first', using('d'))))
    snapshot.assign(aPod('first', using('d')), 'node-1')
    assert.equal(snapshot.find(aPod('second', using('e'))), undefined)
  })
})

describe('CSI drivers that pods with their volumes need', () => {
  const csiDriver = (preventPodSchedulingIfMissing?: boolean): CsiDriver => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: driver },
    spec: { ...(preventPodSchedulingIfMissing !== undefined && { preventPodSchedulingIfMissing }) },
  })
  const opened = (csiNode?: CsiNode) => {
    const volumes = new VolumeIndex()
    volumes.setClaim(aClaim('v'))
    volumes.setVolume(aVolume('v'))
    if (csiNode !== undefined) volumes.setCsiNode(csiNode)
    return volumes
  }
  const without: CsiNode = { ...limitedTo(1), spec: { drivers: [] } }

  for (const [what, csiNode] of [
    ['without CSINode', undefined],
    ['whose CSINode lacks the driver', without],
  ] as const)
    test(`VER-27 VER-28 a node ${what} is refused until its CSINode has it`, () => {
      const volumes = opened(csiNode)
      volumes.setCsiDriver(csiDriver(true))
      const snapshot = snapshotWith(aNode({}), volumes)
      const [entry] = snapshot.nodes
      assert.ok(entry !== undefined)
      assert.deepEqual(snapshot.check(aPod('p', using('v')), entry), {
        filter: 'NodeVolumeLimits',
        reasons: ['csi.example.com CSI driver is not installed on the node'],
        helpedByPreemption: false,
      })
      assert.equal(snapshot.check(aPod('plain', {}), entry), undefined)
      volumes.setCsiNode(limitedTo(1))
      assert.equal(snapshot.check(aPod('p', using('v')), entry), undefined)
    })

  test('VER-30 without CSIDriver, or where it does not ask for it, the driver is not required', () => {
    for (const each of [undefined, csiDriver(), csiDriver(false)]) {
      const volumes = opened(without)
      if (each !== undefined) volumes.setCsiDriver(each)
      assert.ok(fits(aNode({}), aPod('p', using('v')), volumes))
    }
  })

  test('VER-29 a node that does not exist yet is assumed to have it, unless its CSINode is known', () => {
    const volumes = opened()
    volumes.setCsiDriver(csiDriver(true))
    const snapshot = snapshotWith(aNode({}), volumes)
    const added = (parts: NodeParts) => snapshot.setNode(aNode({}), parts)
    assert.equal(snapshot.check(aPod('p', using('v')), added({})), undefined)
    assert.ok(snapshot.check(aPod('p', using('v')), added({ csiNode: without })))
    assert.equal(snapshot.check(aPod('p', using('v')), added({ csiNode: limitedTo(1) })), undefined)
  })
})

describe('free storage that drivers publish', () => {
  const zoneKey = 'topology.kubernetes.io/zone'
  const capacityOf = (name: string, nodeTopology: LabelSelector | undefined, rest: object) =>
    ({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIStorageCapacity',
      metadata: { name, namespace: 'driver' },
      storageClassName: 'fast',
      ...(nodeTopology && { nodeTopology }),
      ...rest,
    }) satisfies CsiStorageCapacity
  const inZone = (zone: string) => ({ matchLabels: { [zoneKey]: zone } })
  const waiting = (name: string, storage: string): PersistentVolumeClaim => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { storageClassName: 'fast', resources: { requests: { storage } } },
  })
  const opened = (storageCapacity: boolean, ...capacities: readonly CsiStorageCapacity[]) => {
    const volumes = new VolumeIndex()
    volumes.setCsiDriver({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: driver },
      spec: { storageCapacity },
    })
    volumes.setClass({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast' },
      provisioner: driver,
      volumeBindingMode: 'WaitForFirstConsumer',
    })
    volumes.setClaim(waiting('a', '20Gi'))
    for (const each of capacities) volumes.setCapacity(each)
    return volumes
  }
  const fitsIn = (zone: string, volumes: VolumeIndex, ...claims: readonly string[]) =>
    fits(aNode({ [zoneKey]: zone }), aPod('p', using(...claims)), volumes)

  test('VER-33 a claim fits where one object is large enough', () => {
    const [a, b] = [
      capacityOf('a', inZone('a'), { capacity: '10Gi' }),
      capacityOf('b', inZone('b'), { capacity: '50Gi' }),
    ]
    const volumes = opened(true, a, b)
    assert.deepEqual([fitsIn('a', volumes, 'a'), fitsIn('b', volumes, 'a')], [false, true])
    const [entry] = snapshotWith(aNode({ [zoneKey]: 'a' }), volumes).nodes
    assert.ok(entry !== undefined)
    assert.deepEqual(snapshotWith(aNode({}), volumes).check(aPod('p', using('a')), entry)?.reasons, [
      'node(s) did not have enough free storage',
    ])
    assert.ok(fitsIn('a', opened(false, a), 'a'), 'the driver does not ask for it')
    volumes.removeCapacity(b)
    assert.ok(!fitsIn('b', volumes, 'a'), 'no object is no storage')
  })

  test('VER-33 the largest volume counts before the capacity, and an object without nodes for none', () => {
    const rest = { capacity: '50Gi', maximumVolumeSize: '10Gi' }
    assert.ok(!fitsIn('a', opened(true, capacityOf('a', inZone('a'), rest)), 'a'))
    assert.ok(!fitsIn('a', opened(true, capacityOf('a', undefined, { capacity: '50Gi' })), 'a'))
    assert.ok(fitsIn('a', opened(true, capacityOf('a', {}, { capacity: '50Gi' })), 'a'))
  })

  test('VER-36 two claims that are small enough each pass, though not together', () => {
    const volumes = opened(true, capacityOf('a', inZone('a'), { capacity: '100Gi' }))
    for (const name of ['a', 'b']) volumes.setClaim(waiting(name, '60Gi'))
    assert.ok(fitsIn('a', volumes, 'a', 'b'))
  })

  test('a new node brings its own storage, but not that of a zone', () => {
    const local = capacityOf('a', { matchLabels: { 'example.com/node': 'node-1' } }, { capacity: '1Gi' })
    const isTaken = (volumes: VolumeIndex) => {
      const snapshot = snapshotWith(aNode({}), volumes)
      const entry = snapshot.setNode(aNode({ [zoneKey]: 'a' }), {})
      return snapshot.check(aPod('p', using('a')), entry) === undefined
    }
    assert.ok(isTaken(opened(true, local)))
    assert.ok(!isTaken(opened(true, local, capacityOf('b', inZone('a'), { capacity: '1Gi' }))))
  })
})

function limitedTo(count: number): CsiNode {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name: 'node-1' },
    spec: { drivers: [{ name: driver, nodeID: 'node-1', allocatable: { count } }] },
  }
}

function attached(name: string, attacher = driver): VolumeAttachment {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: `attached-${name}` },
    spec: { attacher, nodeName: 'node-1', source: { persistentVolumeName: name } },
  }
}

describe('VER-13 extended resources that devices serve', () => {
  const resource = 'example.com/gpu'

  /** A node with devices, of a class with the name of the resource. */
  function withDevices(count: number, reported?: number): Snapshot {
    const devices = new DeviceIndex()
    devices.setClass({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { name: 'gpu' },
      spec: { extendedResourceName: resource },
    })
    const volumes = new VolumeIndex()
    const namespaces = new Map([['default', {}]])
    const snapshot = new Snapshot({ reader: new PodReader(), volumes, namespaces, devices })
    const node = aNode({})
    const amounts = reported === undefined ? {} : { [resource]: String(reported) }
    const status = { allocatable: { ...node.status?.allocatable, ...amounts } }
    const slice = {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
      metadata: { name: 'node-1' },
      spec: {
        driver: 'gpu.example.com',
        pool: { name: 'node-1', generation: 1, resourceSliceCount: 1 },
        nodeName: 'node-1',
        devices: Array.from({ length: count }, (_, at) => ({ name: `gpu-${at}` })),
      },
    }
    snapshot.setNode({ ...node, status }, { resourceSlices: [slice] })
    return snapshot
  }

  const asking = (name: string, count: number) =>
    aPod(name, { containers: [{ name: 'main', resources: { requests: { [resource]: String(count) } } }] })

  for (const { title, allocatable, used, devices, requested, fits: isExpected } of extendedResourceCases)
    test(title, () => {
      const snapshot = withDevices(devices, allocatable)
      if (used > 0) snapshot.assign(asking('running', used), 'node-1')
      assert.equal(snapshot.find(asking('new', requested)) !== undefined, isExpected)
    })

  test('devices of an assigned pod are in use until that is reverted', () => {
    const snapshot = withDevices(1)
    const mark = snapshot.mark()
    snapshot.assign(asking('first', 1), 'node-1')
    assert.equal(snapshot.find(asking('second', 1)), undefined)
    snapshot.revert(mark)
    assert.equal(snapshot.find(asking('second', 1))?.name, 'node-1')
  })
})
