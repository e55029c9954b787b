import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  labels,
  type ObjectMeta,
  type OwnerReference,
  type Pod,
  type ReplicationController,
  type SelectingWorkload,
  type SelectorLookups,
  type Service,
  type TopologySpreadConstraint,
  withDefaultSpread,
} from '@tenon/api'
import { schedule } from '../scheduling/schedule.ts'
import type { SchedulingInput } from '../input/input.ts'
import { anInput, aPod, aPoolInput, aType } from '../testing/builders.test-support.ts'

const zonal: TopologySpreadConstraint = {
  maxSkew: 1,
  topologyKey: labels.zone,
  whenUnsatisfiable: 'DoNotSchedule',
}

function metadata(name: string): ObjectMeta {
  return { name, namespace: 'default' }
}

function aService(name: string, selector?: Readonly<Record<string, string>>): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: metadata(name), spec: selector ? { selector } : {} }
}

function aReplicaSet(name: string, matchLabels: Readonly<Record<string, string>>): SelectingWorkload {
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: metadata(name),
    spec: { selector: { matchLabels } },
  }
}

function aController(name: string, selector: Readonly<Record<string, string>>): ReplicationController {
  return { apiVersion: 'v1', kind: 'ReplicationController', metadata: metadata(name), spec: { selector } }
}

/** Lookups that know these objects and no others. */
function knowing(
  ...objects: readonly (Service | SelectingWorkload | ReplicationController)[]
): SelectorLookups {
  const find = (kind: string) => (namespace: string, name: string) =>
    objects.find(
      (each) => each.kind === kind && each.metadata.namespace === namespace && each.metadata.name === name,
    )
  return {
    services: (namespace) =>
      objects.filter((each) => each.kind === 'Service' && each.metadata.namespace === namespace) as Service[],
    replicationController: find('ReplicationController') as SelectorLookups['replicationController'],
    replicaSet: find('ReplicaSet') as SelectorLookups['replicaSet'],
    statefulSet: find('StatefulSet') as SelectorLookups['statefulSet'],
  }
}

function owner(kind: string, name: string, apiVersion = 'apps/v1', controller = true): OwnerReference {
  return { apiVersion, kind, name, uid: `uid-${name}`, controller }
}

function aLabelledPod(
  podLabels: Readonly<Record<string, string>>,
  ...ownerReferences: readonly OwnerReference[]
): Pod {
  const pod = aPod()
  return { ...pod, metadata: { ...pod.metadata, labels: podLabels, ownerReferences } }
}

function selectorOf(pod: Pod, lookups: SelectorLookups) {
  return withDefaultSpread(pod, [zonal], lookups).spec.topologySpreadConstraints?.[0]?.labelSelector
}

/** Zones of the new claims, one for each of their pods. */
function zonesOfPods(pods: readonly Pod[], rest: Partial<SchedulingInput> = {}): readonly string[] {
  const types = [aType('type-2', 2, 8, ['zone-1', 'zone-2'])]
  const result = schedule(anInput({ pods, pools: [aPoolInput(undefined, types)], ...rest }))
  assert.deepEqual(result.failures, [])
  return result.claims
    .flatMap((claim) => {
      const values = claim.requirements.find(({ key }) => key === labels.zone)?.values ?? []
      return claim.pods.map(() => values.join())
    })
    .toSorted()
}

describe('who gets the default constraints', () => {
  const set = aReplicaSet('web', { app: 'web' })

  test('SCH-110 BUF-103 BUF-104 pods of a ReplicaSet, but neither bare pods nor those with a constraint of their own', () => {
    const bare = aLabelledPod({ app: 'web' })
    assert.equal(withDefaultSpread(bare, [zonal], knowing(set)), bare)
    const owned = aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'web'))
    assert.deepEqual(withDefaultSpread(owned, [zonal], knowing(set)).spec.topologySpreadConstraints, [
      {
        ...zonal,
        labelSelector: {
          matchLabels: {},
          matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }],
        },
      },
    ])
    const own = { ...owned, spec: { ...owned.spec, topologySpreadConstraints: [{ ...zonal, maxSkew: 3 }] } }
    assert.equal(withDefaultSpread(own, [zonal], knowing(set)), own)
  })

  test('SCH-112 the pod of a Job that a Service selects', () => {
    const pod = aLabelledPod({ app: 'batch', run: '1' }, owner('Job', 'batch', 'batch/v1'))
    assert.deepEqual(selectorOf(pod, knowing(aService('front', { app: 'batch' }))), {
      matchLabels: { app: 'batch' },
      matchExpressions: [],
    })
  })

  test('BUF-101 nobody where there are none', () => {
    const owned = aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'web'))
    assert.equal(withDefaultSpread(owned, [], knowing(set, aService('front', { app: 'web' }))), owned)
  })

  test('BUF-104 a bare pod that a Service selects, by the labels of the Service', () => {
    const pod = aLabelledPod({ app: 'web', run: '1' })
    assert.deepEqual(selectorOf(pod, knowing(aService('front', { app: 'web' }))), {
      matchLabels: { app: 'web' },
      matchExpressions: [],
    })
  })

  test('BUF-130 of the ReplicaSet of another API group, only what Services say', () => {
    const pod = aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'web', 'example.com/v1'))
    const narrow = aReplicaSet('web', { app: 'web', revision: '1' })
    assert.equal(selectorOf(pod, knowing(narrow)), undefined)
    assert.deepEqual(selectorOf(pod, knowing(narrow, aService('front', { app: 'web' }))), {
      matchLabels: { app: 'web' },
      matchExpressions: [],
    })
  })

  test('the pod given is not changed', () => {
    const pod = aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'web'))
    const before = structuredClone(pod)
    withDefaultSpread(pod, [zonal], knowing(set))
    assert.deepEqual(pod, before)
  })

  test('owners that do not control, or are of another group, tell nothing', () => {
    for (const reference of [
      owner('ReplicaSet', 'web', 'apps/v1', false),
      owner('ReplicaSet', 'web', 'example.com/v1'),
      owner('ReplicaSet', 'gone'),
    ])
      assert.equal(selectorOf(aLabelledPod({ app: 'web' }, reference), knowing(set)), undefined)
  })

  test('BUF-105 Services without a selector, of other labels or of other namespaces tell nothing', () => {
    const elsewhere = { ...aService('front', { app: 'web' }), metadata: { name: 'x', namespace: 'other' } }
    const services = knowing(aService('headless'), aService('db', { app: 'db' }), elsewhere)
    assert.equal(selectorOf(aLabelledPod({ app: 'web' }), services), undefined)
  })

  test('labels of all Services that select the pod count', () => {
    const services = knowing(
      aService('b', { tier: 'front' }),
      aService('a', { app: 'web' }),
      aService('c', {}),
    )
    assert.deepEqual(selectorOf(aLabelledPod({ app: 'web', tier: 'front' }), services)?.matchLabels, {
      app: 'web',
      tier: 'front',
    })
  })
})

describe('what the default constraints do', () => {
  test('SCH-111 two revisions of a ReplicaSet spread apart from each other', () => {
    const sets = ['1', '2'].map((hash) => aReplicaSet(`web-${hash}`, { app: 'web', hash }))
    const revision = (hash: string) =>
      withDefaultSpread(
        aLabelledPod({ app: 'web', hash }, owner('ReplicaSet', `web-${hash}`)),
        [zonal],
        knowing(...sets),
      )
    const pods = ['1', '1', '2', '2'].map(revision)
    const { claims } = schedule(
      anInput({ pods, pools: [aPoolInput(undefined, [aType('type-2', 2, 8, ['zone-1', 'zone-2'])])] }),
    )
    const placed = claims.flatMap((claim) => {
      const zone = claim.requirements.find(({ key }) => key === labels.zone)?.values?.join()
      return claim.pods.map((pod) => `${pod.metadata.labels?.['hash']} ${zone}`)
    })
    assert.deepEqual(placed.toSorted(), ['1 zone-1', '1 zone-2', '2 zone-1', '2 zone-2'])
  })

  test('SCH-159 BUF-102 new pods of a ReplicaSet fill up the zone where it has none', () => {
    const set = aReplicaSet('web', { app: 'web' })
    const existing = [1, 2].map(() => {
      const pod = aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'web'))
      return { ...pod, spec: { ...pod.spec, nodeName: 'node-1' } }
    })
    const node = { hostname: 'node-1', labels: { [labels.zone]: 'zone-1' }, taints: [], isCandidate: false }
    const pods = [1, 2].map(() =>
      withDefaultSpread(aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'web')), [zonal], knowing(set)),
    )
    const topology = {
      pods: existing,
      nodes: new Map([['node-1', node]]),
      namespaces: new Map([['default', {}]]),
    }
    assert.deepEqual(zonesOfPods(pods, { topology }), ['zone-2', 'zone-2'])
  })

  test('SCH-160 BUF-106 a Service and a ReplicaSet that contradict each other select nothing', () => {
    const lookups = knowing(aService('front', { app: 'web' }), aReplicaSet('other', { app: 'other' }))
    const pods = [1, 2, 3].map(() =>
      withDefaultSpread(aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'other')), [zonal], lookups),
    )
    // No pod counts, so that all of them may stay in one zone.
    assert.deepEqual(zonesOfPods(pods), ['zone-1', 'zone-1', 'zone-1'])
  })

  test('SCH-160 BUF-106 the selector of a ReplicationController overrides the label of a Service', () => {
    const lookups = knowing(
      aService('front', { app: 'web', tier: 'front' }),
      aController('old', { app: 'replicated' }),
    )
    const pod = aLabelledPod({ app: 'web', tier: 'front' }, owner('ReplicationController', 'old', 'v1'))
    assert.deepEqual(selectorOf(pod, lookups), {
      matchLabels: { app: 'replicated', tier: 'front' },
      matchExpressions: [],
    })
  })

  describe('where a zone has nothing to offer', () => {
    const set = aReplicaSet('web', { app: 'web' })
    const nodeIn = (zone: string) => ({
      hostname: `node-in-${zone}`,
      labels: { [labels.zone]: zone },
      taints: [],
      isCandidate: false,
    })
    /** Two pods are in zone-1, and one in zone-2. */
    const topologyOf = (aPodThere: () => Pod): SchedulingInput['topology'] => ({
      pods: ['zone-1', 'zone-1', 'zone-2'].map((zone) => {
        const pod = aPodThere()
        return { ...pod, spec: { ...pod.spec, nodeName: `node-in-${zone}` } }
      }),
      nodes: new Map(['zone-1', 'zone-2'].map((zone) => [`node-in-${zone}`, nodeIn(zone)])),
      namespaces: new Map([['default', {}]]),
    })
    const softly: TopologySpreadConstraint = { ...zonal, whenUnsatisfiable: 'ScheduleAnyway' }
    const spread = (constraint: TopologySpreadConstraint, more: Partial<Pod['spec']> = {}) => {
      const pod = aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'web'))
      return withDefaultSpread({ ...pod, spec: { ...pod.spec, ...more } }, [constraint], knowing(set))
    }
    const decided = (pods: readonly Pod[], zones: readonly string[]) =>
      schedule(
        anInput({
          pods,
          pools: [aPoolInput(undefined, [aType('type-2', 2, 8, zones)])],
          topology: topologyOf(() => aLabelledPod({ app: 'web' }, owner('ReplicaSet', 'web'))),
        }),
      )

    test('BUF-107 ScheduleAnyway gives way, DoNotSchedule does not', () => {
      const yielding = decided([spread(softly)], ['zone-1'])
      assert.deepEqual([yielding.claims.length, yielding.failures], [1, []])
      const strict = decided([spread(zonal)], ['zone-1'])
      assert.deepEqual([strict.claims, strict.failures.length], [[], 1])
    })

    test('BUF-110 the constraint of one pod that gives way stays with the others', () => {
      const pinned = spread(softly, { nodeSelector: { [labels.zone]: 'zone-1' } })
      const others = [spread(softly), spread(softly)]
      const before = structuredClone([pinned, ...others])
      const { claims, failures } = decided([pinned, ...others], ['zone-1', 'zone-2'])
      assert.deepEqual(failures, [])
      const zoneOf = new Map(
        claims.flatMap((claim) =>
          claim.pods.map((pod) => [
            pod.metadata.uid,
            claim.requirements.find(({ key }) => key === labels.zone)?.values?.join(),
          ]),
        ),
      )
      assert.deepEqual(
        [pinned, ...others].map((pod) => zoneOf.get(pod.metadata.uid)),
        ['zone-1', 'zone-2', 'zone-2'],
      )
      assert.deepEqual([pinned, ...others], before)
    })
  })
})
