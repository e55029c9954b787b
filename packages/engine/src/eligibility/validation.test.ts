import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type NodeSelectorRequirement, type Pod, wellKnownLabels } from '@tenon/api'
import * as fc from 'fast-check'
import { schedule } from '../scheduling/schedule.ts'
import { anInput, aPod, aPool, aPoolInput } from '../testing/builders.test-support.ts'
import type { EligibilityPolicy, VolumeLookups } from './lookups.ts'
import { renderPodProblems } from './problems.ts'
import { aBoundClaim, aClaim, aClass, aPodUsing, aVolume, lookupsOf } from './storage.test-support.ts'
import { validatePod } from './validation.ts'

const policy: EligibilityPolicy = { wellKnownLabels: new Set(wellKnownLabels) }
const nothing = lookupsOf()

/** The words about a pod, `undefined` for one that proceeds. */
function verdict(pod: Pod, lookups: VolumeLookups = nothing, rules = policy): string | undefined {
  const found = validatePod(pod, lookups, rules)
  return found === undefined ? undefined : renderPodProblems(found)
}

function selecting(nodeSelector: Readonly<Record<string, string>>): Pod {
  return aPod({}, { nodeSelector })
}

function requiring(...expressions: readonly NodeSelectorRequirement[]): Pod {
  return aPod(
    {},
    {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: expressions }],
          },
        },
      },
    },
  )
}

const zoneIs = (zone: string): NodeSelectorRequirement => ({
  key: labels.zone,
  operator: 'In',
  values: [zone],
})

describe('the choice of nodes', () => {
  test('a plain pod proceeds', () => {
    assert.equal(verdict(aPod()), undefined)
  })

  test('a pod may not choose its host', () => {
    const found = validatePod(selecting({ [labels.hostname]: 'x' }), nothing, policy)
    assert.equal(found?.silent, false)
    assert.equal(
      found && renderPodProblems(found),
      'spec.nodeSelector["kubernetes.io/hostname"]: label kubernetes.io/hostname names one node, and no new node gets that name; remove it or use another label',
    )
  })

  test('SCH-7 labels of karpenter.sh that are not well-known are refused, others left to the pools', () => {
    assert.match(
      verdict(selecting({ 'karpenter.sh/foo': 'bar' })) ?? '',
      /karpenter\.sh\/foo cannot be chosen/,
    )
    assert.match(
      verdict(selecting({ 'compatibility.karpenter.sh/x': 'y' })) ?? '',
      /compatibility\.karpenter\.sh\/x cannot be chosen/,
    )
    const pod = selecting({ 'kubernetes.io/foo': 'bar' })
    assert.equal(verdict(pod), undefined)
    const pool = aPool('default', {}, { requirements: [{ key: 'kubernetes.io/foo', operator: 'Exists' }] })
    assert.deepEqual(schedule(anInput({ pods: [pod], pools: [aPoolInput(pool)] })).failures, [])
  })

  test('a provider may restrict more labels and whole domains', () => {
    const strict = {
      ...policy,
      restrictedLabels: new Set(['example.com/rack']),
      restrictedDomains: ['cloud.example'],
    }
    for (const key of ['example.com/rack', 'cloud.example/x', 'sub.cloud.example/x'])
      assert.match(verdict(selecting({ [key]: 'a' }), nothing, strict) ?? '', /cannot be chosen/)
    assert.equal(verdict(selecting({ 'othercloud.example/x': 'a' }), nothing, strict), undefined)
  })

  test('a pod that wants no pool is refused in silence, with its other problems', () => {
    const pod = requiring(
      { key: labels.nodePool, operator: 'DoesNotExist' },
      { key: '-', operator: 'Exists' },
    )
    const found = validatePod(pod, nothing, policy)
    assert.equal(found?.silent, true)
    assert.deepEqual(
      found.problems.map(({ kind }) => kind),
      ['optedOut', 'invalidKey'],
    )
  })

  test('RPT-15 two pools at once count as wanting none, a preference for none does not', () => {
    const preference = { matchExpressions: [{ key: labels.nodePool, operator: 'DoesNotExist' as const }] }
    const wish = aPod(
      {},
      {
        affinity: {
          nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference }] },
        },
      },
    )
    const both = {
      ...requiring({ key: labels.nodePool, operator: 'In', values: ['a'] }),
      spec: {
        ...requiring({ key: labels.nodePool, operator: 'In', values: ['a'] }).spec,
        nodeSelector: { [labels.nodePool]: 'b' },
      },
    }
    assert.equal(validatePod(both, nothing, policy)?.silent, true)
    assert.equal(verdict(wish), undefined)
    const unless = [labels.nodePool, 'tier'].map((key) => ({
      matchExpressions: [{ key, operator: 'DoesNotExist' as const }],
    }))
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: unless } }
    assert.equal(verdict(aPod({}, { affinity: { nodeAffinity: required } })), undefined)
    assert.equal(verdict(selecting({ [labels.nodePool]: 'a' })), undefined)
  })

  test('RPB-21 terms that name nodes are let through, other fields are refused', () => {
    const choosing = (key: string, operator: 'In' | 'NotIn' | 'Exists', ...values: string[]) => {
      const nodeSelectorTerms = [
        { matchExpressions: [zoneIs('zone-1')] },
        { matchFields: [{ key, operator, values }] },
      ]
      const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } }
      return aPod({}, { affinity: { nodeAffinity: required } })
    }
    assert.equal(verdict(choosing('metadata.name', 'In', 'node-1')), undefined)
    assert.equal(verdict(choosing('metadata.name', 'NotIn', 'node-1')), undefined)
    const refusal =
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchFields[0]: matchFields take metadata.name with operator In or NotIn and at least one value; choose by label in matchExpressions'
    assert.equal(verdict(choosing('metadata.uid', 'In', 'x')), refusal)
    assert.equal(verdict(choosing('metadata.name', 'Exists')), refusal)
  })

  test('SCH-10 a capacity type nobody knows is refused, beside a known one it is let through', () => {
    const bogus = requiring({ key: labels.capacityType, operator: 'In', values: ['bogus'] })
    assert.match(
      verdict(bogus) ?? '',
      /karpenter\.sh\/capacity-type never has the value bogus; use spot, on-demand, reserved$/,
    )
    const mixed = requiring({ key: labels.capacityType, operator: 'In', values: ['bogus', 'on-demand'] })
    assert.equal(verdict(mixed), undefined)
    assert.equal(schedule(anInput({ pods: [mixed] })).claims.length, 1)
  })

  test('an alias is judged as the label it stands for', () => {
    const aliased = { ...policy, labelAliases: new Map([['old.example/host', labels.hostname]]) }
    assert.match(
      verdict(selecting({ 'old.example/host': 'x' }), nothing, aliased) ?? '',
      /kubernetes\.io\/hostname names one node/,
    )
  })

  test('SCH-30 the beta zone label of a selector means the zone', () => {
    const pod = selecting({ 'failure-domain.beta.kubernetes.io/zone': 'zone-1' })
    assert.equal(verdict(pod), undefined)
    const [claim] = schedule(anInput({ pods: [pod] })).claims
    assert.deepEqual(
      claim?.requirements.find(({ key }) => key === labels.zone),
      zoneIs('zone-1'),
    )
  })

  test('every expression that cannot be judged is named', () => {
    const pod = requiring(
      { key: 'bad key', operator: 'Exists' },
      { key: 'x/y', operator: 'In', values: [] },
      { key: 'x/y', operator: 'In', values: ['not a value'] },
      { key: 'x/y', operator: 'Gt', values: ['-1'] },
      { key: 'x/y', operator: 'Lt', values: ['1', '2'] },
      { key: 'x/y', operator: 'Gt', values: ['9223372036854775808'] },
    )
    assert.deepEqual(
      validatePod(pod, nothing, policy)?.problems.map(({ kind }) => kind),
      [
        'invalidKey',
        'noValues',
        'invalidValue',
        'invalidValue',
        'notAnInteger',
        'notAnInteger',
        'notAnInteger',
      ],
    )
  })
})

describe('the claims of volumes', () => {
  const pod = aPodUsing('data')
  const classy = aClass('fast')

  test('claims that are missing, going away or lost keep the pod back', () => {
    assert.equal(verdict(pod), 'volume v0: PersistentVolumeClaim default/data does not exist; create it')
    const going = aClaim('data', undefined, { deletionTimestamp: '2026-01-01T00:00:00Z' })
    assert.match(verdict(pod, lookupsOf(going, classy)) ?? '', /is being deleted/)
    const lost = { ...aClaim('data'), status: { phase: 'Lost' } }
    assert.match(verdict(pod, lookupsOf(lost, classy)) ?? '', /phase Lost/)
  })

  test('SCH-12 a claim that only names its volume is not bound yet', () => {
    const named = aClaim('data', { volumeName: 'pv' })
    assert.match(verdict(pod, lookupsOf(named, aVolume('pv'))) ?? '', /not bound to it yet/)
    assert.equal(verdict(pod, lookupsOf(aBoundClaim('data', 'pv'), aVolume('pv'))), undefined)
  })

  test('SCH-13 an unbound claim needs a class that waits for its first pod', () => {
    assert.match(
      verdict(pod, lookupsOf(aClaim('data'), aClass('fast', { volumeBindingMode: 'Immediate' }))) ?? '',
      /StorageClass fast binds at once/,
    )
    for (const spec of [{}, { storageClassName: '' }])
      assert.match(verdict(pod, lookupsOf(aClaim('data', spec), classy)) ?? '', /names no StorageClass/)
    assert.match(verdict(pod, lookupsOf(aClaim('data'))) ?? '', /StorageClass fast, which does not exist/)
    assert.equal(verdict(pod, lookupsOf(aClaim('data'), classy)), undefined)
  })

  test('SCH-14 a bound claim no longer needs its class', () => {
    assert.equal(verdict(pod, lookupsOf(aBoundClaim('data', 'pv', 'gone'), aVolume('pv'))), undefined)
  })

  test('SCH-15 a bound claim needs its volume, and needs it to stay', () => {
    const claim = aBoundClaim('data', 'pv')
    const going = aVolume('pv', undefined, { deletionTimestamp: '2026-01-01T00:00:00Z' })
    assert.match(verdict(pod, lookupsOf(claim, going)) ?? '', /PersistentVolume pv, which is being deleted/)
    assert.match(verdict(pod, lookupsOf(claim)) ?? '', /PersistentVolume pv, which does not exist/)
  })

  test('SCH-16 drivers and topology keys that the provider cannot serve are refused', () => {
    const rules = {
      ...policy,
      unsupportedProvisioners: new Set(['csi.example.com', 'ebs.csi.aws.com']),
      unsupportedTopologyKeys: new Set(['topology.example.com/rack']),
    }
    assert.match(
      verdict(pod, lookupsOf(aClaim('data'), classy), rules) ?? '',
      /provisioned by csi\.example\.com/,
    )
    assert.match(
      verdict(pod, lookupsOf(aBoundClaim('data', 'pv'), aVolume('pv')), rules) ?? '',
      /provisioned by csi\.example\.com/,
    )
    const inTree = aClass('fast', { provisioner: 'kubernetes.io/aws-ebs' })
    assert.match(verdict(pod, lookupsOf(aClaim('data'), inTree), rules) ?? '', /by ebs\.csi\.aws\.com/)
    const racks = aClass('fast', {
      provisioner: 'fine.example.com',
      allowedTopologies: [{ matchLabelExpressions: [{ key: 'topology.example.com/rack', values: ['1'] }] }],
    })
    assert.match(
      verdict(pod, lookupsOf(aClaim('data'), racks), rules) ?? '',
      /allowedTopologies use topology\.example\.com\/rack/,
    )
  })

  test('a generic ephemeral volume has the claim named after pod and volume', () => {
    const volumes = [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } }]
    const ephemeral = aPod({}, { volumes })
    const name = `${ephemeral.metadata.name}-scratch`
    assert.match(verdict(ephemeral) ?? '', new RegExp(`default/${name} does not exist`))
    assert.equal(verdict(ephemeral, lookupsOf(aClaim(name), classy)), undefined)
  })

  test('problems of several volumes and of the selector are told together', () => {
    const two = { ...aPodUsing('a', 'b') }
    const found = validatePod(
      { ...two, spec: { ...two.spec, nodeSelector: { [labels.hostname]: 'x' } } },
      nothing,
      policy,
    )
    assert.deepEqual(
      found?.problems.map(({ kind }) => kind),
      ['restrictedLabel', 'claimMissing', 'claimMissing'],
    )
  })
})

describe('pods that are not what the API promises', () => {
  const misshapen: Readonly<Record<string, unknown>> = {
    'spec.containers must be a list': { spec: {} },
    'spec must be an object': { spec: 7 },
    'spec.containers[0].resources.requests["cpu"] must be a quantity of 0 or more (for example 500m, 4Gi or 2)':
      { spec: { containers: [{ name: 'a', resources: { requests: { cpu: 'much' } } }] } },
    'spec.containers[0].resources.requests["memory"] must be a quantity of 0 or more (for example 500m, 4Gi or 2)':
      { spec: { containers: [{ name: 'a', resources: { requests: { memory: '-1Gi' } } }] } },
    'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms must be a list':
      {
        spec: {
          containers: [],
          affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } },
        },
      },
    'spec.topologySpreadConstraints[0].maxSkew must be an integer above 0': {
      spec: {
        containers: [],
        topologySpreadConstraints: [{ topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      },
    },
    'spec.volumes must be a list': { spec: { containers: [], volumes: {} } },
  }
  for (const [words, part] of Object.entries(misshapen)) {
    test(words, () => {
      assert.equal(verdict({ ...aPod(), ...(part as object) }), words)
    })
  }

  test('whatever the pod is, the judgement comes back, and what it lets through can be scheduled', () => {
    const strange = fc.oneof(
      fc.constantFrom<unknown>(null, 7, '', 'x', true, [], {}, [null], { key: 1 }),
      fc.jsonValue({ maxDepth: 2 }),
    )
    const paths = [
      ['spec', 'containers'],
      ['spec', 'nodeSelector'],
      ['spec', 'affinity'],
      ['spec', 'affinity', 'nodeAffinity'],
      ['spec', 'affinity', 'podAntiAffinity'],
      ['spec', 'tolerations'],
      ['spec', 'topologySpreadConstraints'],
      ['spec', 'volumes'],
      ['spec', 'overhead'],
      ['spec', 'resources'],
      ['metadata', 'labels'],
      ['status'],
    ] as const
    fc.assert(
      fc.property(fc.constantFrom(...paths), strange, (path, value) => {
        const pod = withAt(aPod(), path, value)
        const found = validatePod(pod, nothing, policy)
        if (found === undefined) schedule(anInput({ pods: [pod] }))
        else assert.notEqual(renderPodProblems(found), '')
      }),
      { numRuns: 500, seed: 1 },
    )
  })
})

/** The object with a value at a path, whether or not it may be there. */
function withAt<T extends object>(object: T, [first = '', ...rest]: readonly string[], value: unknown): T {
  const inner = Object.entries(object).find(([key]) => key === first)?.[1] as object | undefined
  return { ...object, [first]: rest.length === 0 ? value : withAt(inner ?? {}, rest, value) }
}
