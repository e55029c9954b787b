import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  labels,
  type NodeSelectorRequirement,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  wellKnownLabels,
} from '@tenon/api'
import { schedule } from '../scheduling/schedule.ts'
import { aNode, anInput, aPod, aPool, aPoolInput, aType } from '../testing/builders.test-support.ts'
import type { ClassCapacity, EligibilityPolicy, VolumeLookups } from './lookups.ts'
import {
  aBoundClaim,
  aClaim,
  aClass,
  aPodUsing,
  aVolume,
  lookupsOf,
  type StorageObject,
} from './storage.test-support.ts'
import { FreeVolumes } from './free-volumes.ts'
import { renderVolumeProblem } from './problems.ts'
import { attachedClaims, noteFreeVolumes, resolveVolumes, volumesAdmit } from './volumes.ts'

const policy: EligibilityPolicy = { wellKnownLabels: new Set(wellKnownLabels) }

const isIn = (key: string, ...values: readonly string[]): NodeSelectorRequirement => ({
  key,
  operator: 'In',
  values,
})
const zone = (...values: readonly string[]) => isIn(labels.zone, ...values)
const host = isIn(labels.hostname, 'node-1')

/** A PersistentVolume whose nodes must meet one of the terms. */
function aPinnedVolume(
  name: string,
  terms: readonly (readonly NodeSelectorRequirement[])[],
  source: Partial<PersistentVolume['spec']> = { csi: { driver: 'csi.example.com' } },
): PersistentVolume {
  const nodeSelectorTerms = terms.map((matchExpressions) => ({ matchExpressions }))
  return aVolume(name, { ...source, nodeAffinity: { required: { nodeSelectorTerms } } })
}

function alternatives(pod: Pod, lookups: VolumeLookups, rules = policy) {
  const volumes = resolveVolumes(pod, lookups, rules)
  assert.ok('alternatives' in volumes)
  return volumes.alternatives
}

describe('where volumes let a pod run', () => {
  test('a pod without claims may run anywhere', () => {
    assert.deepEqual(resolveVolumes(aPod(), lookupsOf(), policy), { alternatives: [], claims: {} })
  })

  test('RPT-4 a node is reached by the volumes of a pod when one alternative admits its labels', () => {
    const either = { alternatives: [[zone('zone-1'), isIn('rack', 'r1')], [zone('zone-2')]] }
    assert.ok(volumesAdmit({ alternatives: [] }, {}))
    assert.ok(volumesAdmit(either, { [labels.zone]: 'zone-2' }))
    assert.ok(volumesAdmit(either, { [labels.zone]: 'zone-1', rack: 'r1' }))
    assert.ok(!volumesAdmit(either, { [labels.zone]: 'zone-1' }))
    assert.ok(!volumesAdmit(either, { [labels.zone]: 'zone-3', rack: 'r1' }))
    assert.ok(!volumesAdmit(either, {}))
  })

  test('every term of a bound volume is an alternative, empty ones are not', () => {
    const volume = aPinnedVolume('pv', [[zone('zone-1')], [], [zone('zone-2')]])
    assert.deepEqual(alternatives(aPodUsing('data'), lookupsOf(aBoundClaim('data', 'pv'), volume)), [
      [zone('zone-1')],
      [zone('zone-2')],
    ])
  })

  test('every topology that a class allows is an alternative for an unbound claim', () => {
    const restricted = aClass('fast', {
      allowedTopologies: [
        { matchLabelExpressions: [{ key: labels.zone, values: ['zone-1', 'zone-2'] }] },
        {},
        { matchLabelExpressions: [{ key: 'example.com/rack', values: ['r1'] }] },
      ],
    })
    assert.deepEqual(alternatives(aPodUsing('data'), lookupsOf(aClaim('data'), restricted)), [
      [zone('zone-1', 'zone-2')],
      [isIn('example.com/rack', 'r1')],
    ])
  })

  test('an absent class does not restrict the pod', () => {
    const lookups = lookupsOf(aBoundClaim('data', 'pv'), aVolume('pv'), aClaim('classless', {}))
    assert.deepEqual(alternatives(aPodUsing('data', 'classless'), lookups), [])
  })

  test('zone labels of a volume restrict the pod, as the scheduler reads them', () => {
    const found = (spec?: PersistentVolume['spec']) => {
      const labelled = aVolume('pv', spec, { labels: { [labels.zone]: 'zone-1__zone-2' } })
      return alternatives(aPodUsing('data'), lookupsOf(aBoundClaim('data', 'pv'), labelled))
    }
    const absent = (key: string) => ({ key, operator: 'DoesNotExist' })
    const unlabelled = [absent(labels.zone), absent(labels.region)]
    assert.deepEqual(found(), [[zone('zone-1', 'zone-2')], unlabelled])
    const bound = (...terms: readonly NodeSelectorRequirement[]) => ({
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: terms }] } },
    })
    const rack = isIn('example.com/rack', 'r1')
    assert.deepEqual(found(bound(rack)), [
      [rack, zone('zone-1', 'zone-2')],
      [rack, ...unlabelled],
    ])
    assert.deepEqual(found(bound(zone('zone-1'))), [[zone('zone-1'), zone('zone-1', 'zone-2')]])
  })

  describe('RPT-8 claims of a class that provisions nothing', () => {
    const manual = aClass('manual', { provisioner: 'kubernetes.io/no-provisioner' })
    const claimOf = (name: string, spec: Partial<PersistentVolumeClaim['spec']> = {}) =>
      aClaim(name, { storageClassName: 'manual', resources: { requests: { storage: '5Gi' } }, ...spec })
    const free = (name: string, size: string, inZone: string, spec: Partial<PersistentVolume['spec']> = {}) =>
      aVolume(name, {
        storageClassName: 'manual',
        capacity: { storage: size },
        accessModes: ['ReadWriteOnce'],
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [zone(inZone)] }] } },
        ...spec,
      })
    const found = (pods: readonly Pod[], ...objects: readonly StorageObject[]) => {
      const lookups = lookupsOf(manual, ...objects)
      const volumes = new FreeVolumes(lookups)
      for (const pod of pods) noteFreeVolumes(pod, lookups, volumes)
      return pods.map((pod) => {
        const resolved = resolveVolumes(pod, lookups, policy, volumes)
        return 'kind' in resolved ? resolved.kind : resolved.alternatives
      })
    }

    test('wait for a volume, and are told so', () => {
      const resolved = resolveVolumes(aPodUsing('a'), lookupsOf(manual, claimOf('a')), policy)
      assert.ok('kind' in resolved && resolved.kind === 'noVolumeToBind')
      assert.match(
        renderVolumeProblem(resolved),
        /default\/a is not bound, its StorageClass manual provisions no/,
      )
    })

    test('go where any volume that suits them can be reached', () => {
      const pods = [aPodUsing('a')]
      const volumes = [free('big', '20Gi', 'zone-2'), free('small', '5Gi', 'zone-1')]
      assert.deepEqual(found(pods, claimOf('a'), ...volumes), [[[zone('zone-1')], [zone('zone-2')]]])
      assert.deepEqual(found(pods, claimOf('a'), free('anywhere', '5Gi', '', { nodeAffinity: {} })), [[]])
    })

    test('are not given volumes that do not suit them', () => {
      const unsuitable: readonly PersistentVolume[] = [
        free('small', '4Gi', 'zone-1'),
        free('of-others', '9Gi', 'zone-1', { claimRef: { namespace: 'default', name: 'b' } }),
        free('raw', '9Gi', 'zone-1', { volumeMode: 'Block' }),
        free('read-only', '9Gi', 'zone-1', { accessModes: ['ReadOnlyMany'] }),
        { ...free('leaving', '9Gi', 'zone-1'), metadata: { name: 'leaving', deletionTimestamp: 'now' } },
        { ...free('released', '9Gi', 'zone-1'), status: { phase: 'Released' } },
      ]
      const claim = claimOf('a', { accessModes: ['ReadWriteOnce'] })
      for (const volume of unsuitable)
        assert.deepEqual(found([aPodUsing('a')], claim, volume), ['noVolumeToBind'], volume.metadata.name)
      const selecting = claimOf('a', { selector: { matchLabels: { disk: 'fast' } } })
      assert.deepEqual(found([aPodUsing('a')], selecting, free('any', '9Gi', 'zone-1')), ['noVolumeToBind'])
    })

    test('a local volume keeps its pod on its host', () => {
      const local = free('disk', '5Gi', '', {
        local: { path: '/mnt' },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [host] }] } },
      })
      assert.deepEqual(found([aPodUsing('a')], claimOf('a'), local), [[[host]]])
    })

    test('pods of one decision share the volumes out, claims of one pod get one each', () => {
      const pods = [aPodUsing('a'), aPodUsing('b'), aPodUsing('c'), aPodUsing('a')]
      const claims = ['a', 'b', 'c'].map((name) => claimOf(name))
      const volumes = [free('v1', '5Gi', 'zone-1'), free('v2', '6Gi', 'zone-2')]
      assert.deepEqual(found(pods, ...claims, ...volumes), [
        [[zone('zone-1')]],
        [[zone('zone-2')]],
        'noVolumeToBind',
        [[zone('zone-1')]],
      ])
      assert.deepEqual(found([aPodUsing('a', 'b')], ...claims, free('v1', '5Gi', 'zone-1')), [
        'noVolumeToBind',
      ])
      const twice = [free('v1', '5Gi', 'zone-1'), free('v2', '6Gi', 'zone-2'), free('v3', '7Gi', 'zone-2')]
      assert.deepEqual(found([aPodUsing('a', 'b')], ...claims, ...twice), [[[zone('zone-2')]]])
    })
  })

  test('a claim that is being bound keeps its pod on the node that the scheduler chose', () => {
    const claim = aClaim('a', undefined, { annotations: { 'volume.kubernetes.io/selected-node': 'n1' } })
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1', labels: { [labels.hostname]: 'h1' } },
    }
    const found = (...objects: readonly StorageObject[]) =>
      alternatives(aPodUsing('a'), lookupsOf(claim, aClass('fast'), ...objects))
    assert.deepEqual(found(node), [[{ key: labels.hostname, operator: 'In', values: ['h1'] }]])
    assert.deepEqual(found(), [])
  })

  test('keys are the ones that nodes carry', () => {
    const keys = ['failure-domain.beta.kubernetes.io/zone', 'topology.csi.example.com/zone']
    const volume = aPinnedVolume(
      'pv',
      keys.map((key) => [isIn(key, 'zone-1')]),
    )
    const aliased = { ...policy, labelAliases: new Map([['topology.csi.example.com/zone', labels.zone]]) }
    assert.deepEqual(alternatives(aPodUsing('data'), lookupsOf(aBoundClaim('data', 'pv'), volume), aliased), [
      [zone('zone-1')],
      [zone('zone-1')],
    ])
  })

  test('the host of a local volume does not bind, the host of another one does', () => {
    const resolved = (source: Partial<PersistentVolume['spec']>) =>
      alternatives(
        aPodUsing('data'),
        lookupsOf(aBoundClaim('data', 'pv'), aPinnedVolume('pv', [[host], [host, zone('zone-1')]], source)),
      )
    for (const source of [{ local: { path: '/mnt' } }, { hostPath: { path: '/mnt' } }])
      assert.deepEqual(resolved(source), [[], [zone('zone-1')]])
    assert.deepEqual(resolved({ csi: { driver: 'csi.example.com' } }), [[host], [host, zone('zone-1')]])
  })

  test('of two volumes only the combinations that can hold together are left', () => {
    const lookups = lookupsOf(
      aBoundClaim('a', 'pv-a'),
      aBoundClaim('b', 'pv-b'),
      aPinnedVolume('pv-a', [[zone('zone-1')], [zone('zone-2')]]),
      aPinnedVolume('pv-b', [[zone('zone-3')], [zone('zone-2', 'zone-4')]]),
    )
    assert.deepEqual(alternatives(aPodUsing('a', 'b'), lookups), [[zone('zone-2')]])
  })

  test('volumes that can never meet leave an alternative that no node meets', () => {
    const lookups = lookupsOf(
      aBoundClaim('a', 'pv-a'),
      aBoundClaim('b', 'pv-b'),
      aPinnedVolume('pv-a', [[zone('zone-1')]]),
      aPinnedVolume('pv-b', [[zone('zone-2')]]),
    )
    assert.deepEqual(alternatives(aPodUsing('a', 'b'), lookups), [[zone()]])
  })

  test('many volumes of the same zones do not multiply', () => {
    const names = Array.from({ length: 12 }, (_, i) => `c${i}`)
    const zones = ['zone-1', 'zone-2', 'zone-3']
    const lookups = lookupsOf(
      ...names.map((name) => aBoundClaim(name, `pv-${name}`)),
      ...names.map((name) =>
        aPinnedVolume(
          `pv-${name}`,
          zones.map((each) => [zone(each)]),
        ),
      ),
    )
    assert.deepEqual(
      alternatives(aPodUsing(...names), lookups),
      zones.map((each) => [zone(each)]),
    )
  })

  test('what cannot be looked up or read is the answer', () => {
    const pod = aPodUsing('data')
    const problem = (...objects: readonly StorageObject[]) => {
      const found = resolveVolumes(pod, lookupsOf(...objects), policy)
      return 'kind' in found ? found.kind : undefined
    }
    assert.equal(problem(), 'claimMissing')
    assert.equal(problem(aBoundClaim('data', 'pv')), 'volumeMissing')
    assert.equal(problem(aClaim('data')), 'storageClassMissing')
    const broken = aVolume('pv', {
      nodeAffinity: JSON.parse('{ "required": { "nodeSelectorTerms": "zone-1" } }') as {
        readonly required: never
      },
    })
    assert.equal(problem(aBoundClaim('data', 'pv'), broken), 'volumeUnreadable')
  })
})

describe('claims that count against attach limits', () => {
  test('a claim counts once for the driver of its volume, or of its class', () => {
    const lookups = lookupsOf(
      aBoundClaim('bound', 'pv'),
      aVolume('pv'),
      aClaim('unbound', { storageClassName: 'other' }),
      aClass('other', { provisioner: 'other.example.com' }),
    )
    assert.deepEqual(attachedClaims(aPodUsing('bound', 'bound', 'unbound'), lookups), {
      'csi.example.com': ['default/bound'],
      'other.example.com': ['default/unbound'],
    })
  })

  /** Whether a node that has one EBS volume, and can attach no other volume, still takes the pod. */
  function fitsFullNode(pod: Pod, lookups: VolumeLookups): boolean {
    const volumes = resolveVolumes(pod, lookups, policy)
    assert.ok('claims' in volumes)
    const node = aNode('node-1', {
      volumeLimits: { 'ebs.csi.aws.com': 1 },
      volumesInUse: { 'ebs.csi.aws.com': ['default/other'] },
    })
    const { placements } = schedule(
      anInput({ pods: [pod], nodes: [node], volumes: new Map([[pod.metadata.uid ?? '', volumes]]) }),
    )
    return placements.length === 1
  }

  test('SCH-83 a volume without a driver does not count', () => {
    const lookups = lookupsOf(aBoundClaim('share', 'nfs'), aVolume('nfs', {}))
    const pod = aPodUsing('share')
    assert.deepEqual(resolveVolumes(pod, lookups, policy), { alternatives: [], claims: {} })
    assert.ok(fitsFullNode(pod, lookups))
  })

  test('SCH-84 the claim of an in-tree EBS class counts for the CSI driver of EBS', () => {
    const ebs = lookupsOf(aClaim('data'), aClass('fast', { provisioner: 'kubernetes.io/aws-ebs' }))
    assert.ok(!fitsFullNode(aPodUsing('data'), ebs))
    assert.ok(fitsFullNode(aPodUsing('data'), lookupsOf(aClaim('data'), aClass('fast'))))
  })

  const migrated = {
    'kubernetes.io/aws-ebs': 'ebs.csi.aws.com',
    'kubernetes.io/gce-pd': 'pd.csi.storage.gke.io',
    'kubernetes.io/cinder': 'cinder.csi.openstack.org',
    'kubernetes.io/azure-disk': 'disk.csi.azure.com',
    'kubernetes.io/azure-file': 'file.csi.azure.com',
    'kubernetes.io/vsphere-volume': 'csi.vsphere.vmware.com',
    'kubernetes.io/portworx-volume': 'pxd.portworx.com',
  }
  for (const [provisioner, driver] of Object.entries(migrated)) {
    test(`${provisioner} counts as ${driver}`, () => {
      const lookups = lookupsOf(aClaim('data'), aClass('fast', { provisioner }))
      assert.deepEqual(attachedClaims(aPodUsing('data'), lookups), { [driver]: ['default/data'] })
    })
  }

  test('a volume of the former EBS kind counts for its CSI driver', () => {
    const volume = aVolume('pv', { awsElasticBlockStore: { volumeID: 'vol-1' } })
    assert.deepEqual(attachedClaims(aPodUsing('data'), lookupsOf(aBoundClaim('data', 'pv'), volume)), {
      'ebs.csi.aws.com': ['default/data'],
    })
  })

  test('of a running pod what cannot be looked up is left out', () => {
    assert.deepEqual(attachedClaims(aPodUsing('gone', 'lost'), lookupsOf(aBoundClaim('lost', 'pv'))), {})
  })
})

describe('free storage that drivers publish', () => {
  const gi = 2 ** 30
  const instanceType = (operator: 'NotIn', ...values: readonly string[]) => ({
    key: labels.instanceType,
    operator,
    values,
  })
  const claimOf = (name: string, storage: string) =>
    aClaim(name, { storageClassName: 'fast', resources: { requests: { storage } } })
  const withCapacity = (
    capacity: ClassCapacity | undefined,
    ...claims: readonly PersistentVolumeClaim[]
  ) => ({
    ...lookupsOf(aClass('fast'), ...claims),
    storageCapacity: () => capacity,
  })
  const zonal: ClassCapacity = {
    shared: [
      { term: [zone('zone-1')], bytes: 10 * gi },
      { term: [zone('zone-2')], bytes: 50 * gi },
    ],
    local: undefined,
  }

  test('VER-33 a claim goes to the zone that has enough', () => {
    const claim = claimOf('data', '20Gi')
    assert.deepEqual(alternatives(aPodUsing('data'), withCapacity(zonal, claim)), [[zone('zone-2')]])
    assert.deepEqual(alternatives(aPodUsing('data'), withCapacity(undefined, claim)), [])
    const resolved = resolveVolumes(aPodUsing('data'), withCapacity(zonal, claimOf('data', '60Gi')), policy)
    assert.ok('kind' in resolved)
    assert.match(
      renderVolumeProblem(resolved),
      /asks for 60Gi, and no CSIStorageCapacity of StorageClass fast offers as much/,
    )
  })

  test('VER-36 claims are compared one by one, never summed', () => {
    const shared = [{ term: [zone('zone-1')], bytes: 100 * gi }]
    const lookups = withCapacity({ shared, local: undefined }, claimOf('a', '60Gi'), claimOf('b', '60Gi'))
    assert.deepEqual(alternatives(aPodUsing('a', 'b'), lookups), [[zone('zone-1')]])
  })

  describe('VER-34 of single nodes', () => {
    const local = {
      byHost: new Map([
        ['full', 0],
        ['half', 50 * gi],
      ]),
      byType: new Map([
        ['small', 100 * gi],
        ['large', 400 * gi],
      ]),
    }
    const isNew = { key: labels.hostname, operator: 'NotIn', values: ['full', 'half'] }
    const found = (storage: string) =>
      alternatives(aPodUsing('data'), withCapacity({ shared: [], local }, claimOf('data', storage)))

    test('a claim goes to a node that has enough, or a new one of a type whose empty node had', () => {
      assert.deepEqual(found('50Gi'), [[isIn(labels.hostname, 'half')], [isNew]])
      assert.deepEqual(found('100Gi'), [[isNew]])
      assert.deepEqual(found('200Gi'), [[isNew, instanceType('NotIn', 'small')]])
    })

    test('a node is launched if its type has enough when empty, and none otherwise', () => {
      const pools = [aPoolInput(aPool(), [aType('type-2', 2, 8, ['zone-1'])])]
      const launched = (storage: string) => {
        const pod = aPodUsing('data')
        const capacity: ClassCapacity = {
          shared: [],
          local: { byHost: new Map([['n1', 0]]), byType: new Map([['type-2', 100 * gi]]) },
        }
        const volumes = resolveVolumes(pod, withCapacity(capacity, claimOf('data', storage)), policy)
        assert.ok('claims' in volumes)
        const byPod = new Map([[pod.metadata.uid ?? '', volumes]])
        const { claims, placements } = schedule(
          anInput({ pods: [pod], pools, nodes: [aNode('n1')], volumes: byPod }),
        )
        return [placements.length, claims.length]
      }
      assert.deepEqual(
        [launched('50Gi'), launched('200Gi')],
        [
          [0, 1],
          [0, 0],
        ],
      )
    })
  })

  test('VER-35 of a type that was never seen, a new node is assumed to have enough', () => {
    const capacity = { shared: [], local: { byHost: new Map(), byType: new Map() } }
    assert.deepEqual(alternatives(aPodUsing('data'), withCapacity(capacity, claimOf('data', '1Ti'))), [])
  })
})
