import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  labels,
  type NodeSelectorRequirement,
  type PersistentVolume,
  type Pod,
  wellKnownLabels,
} from '@tenon/api'
import { schedule } from '../provisioning/schedule.ts'
import { aNode, anInput, aPod } from '../testing/builders.ts'
import type { EligibilityPolicy, VolumeLookups } from './lookups.ts'
import {
  aBoundClaim,
  aClaim,
  aClass,
  aPodUsing,
  aVolume,
  lookupsOf,
  type StorageObject,
} from './storage.test-support.ts'
import { attachedClaims, resolveVolumes } from './volumes.ts'

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

  test('neither labels of the volume nor an absent class restrict the pod', () => {
    const labelled = aVolume('pv', undefined, { labels: { [labels.zone]: 'zone-1' } })
    const lookups = lookupsOf(aBoundClaim('data', 'pv'), labelled, aClaim('classless', {}))
    assert.deepEqual(alternatives(aPodUsing('data', 'classless'), lookups), [])
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
      nodeAffinity: { required: { nodeSelectorTerms: 'zone-1' as unknown as [] } },
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
