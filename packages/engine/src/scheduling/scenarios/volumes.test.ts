/** Volumes of pods: attach limits of nodes, and where a volume can be reached (scheduling.md 8). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type NodeSelectorRequirement, type Pod } from '@tenon/api'
import type { AttachLimits, NodeInput, PodVolumes, SchedulingInput } from '../../input/input.ts'
import type { NewClaim, SchedulingResult } from '../../input/result.ts'
import {
  aCluster,
  aFullNode,
  aNode,
  anAppPod,
  anExpression,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  boundTo,
  failureTexts,
  placedOn,
  podNames,
  requirementsOn,
  requiring,
  requiringPods,
  spreading,
  strictPolicy,
  times,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const driver = 'ebs.csi.aws.com'
const zones = ['zone-1', 'zone-2', 'zone-3'] as const
const zonalPools = [aPoolInput(aPool(), typesIn(...zones))]
const inZone = (...values: readonly string[]) => anExpression(labels.zone, 'In', ...values)

/** Volumes that count as `claims` of the driver and can be reached from everywhere. */
function attached(...claims: readonly string[]): PodVolumes {
  return { alternatives: [], claims: { [driver]: claims } }
}

/** Volumes that can be reached where one of `alternatives` holds. */
function reachable(...alternatives: readonly (readonly NodeSelectorRequirement[])[]): PodVolumes {
  return { alternatives, claims: {} }
}

/** Schedules each pod with its volumes. */
function scheduled(
  pairs: readonly (readonly [Pod, PodVolumes])[],
  overrides: Partial<SchedulingInput> = {},
): SchedulingResult {
  return schedule(
    anInput({
      pods: pairs.map(([pod]) => pod),
      volumes: new Map(pairs.map(([{ metadata }, volumes]) => [metadata.uid ?? '', volumes])),
      pools: zonalPools,
      ...overrides,
    }),
  )
}

function zoneOf(claim: NewClaim | undefined): readonly (readonly string[] | undefined)[] {
  return requirementsOn(claim, labels.zone).map(({ values }) => values)
}

/** Zones of the one claim that a pod with these volumes gets. */
function claimedZone(pod: Pod, volumes: PodVolumes, overrides: Partial<SchedulingInput> = {}) {
  const { claims, failures } = scheduled([[pod, volumes]], overrides)
  assert.deepEqual(failures, [])
  assert.equal(claims.length, 1)
  return zoneOf(claims[0])
}

describe('attach limits', () => {
  test('SCH-81 of six pods with two claims each, ten fit and the sixth pod goes to a new node', () => {
    const pairs = times(6, (index) => [aPod(), attached(`default/a-${index}`, `default/b-${index}`)] as const)
    const nodes = [aNode('n1', { volumeLimits: { [driver]: 10 } })]
    const result = scheduled(pairs, { nodes })
    const names = pairs.map(([pod]) => pod.metadata.name)
    assert.deepEqual(result.failures, [])
    assert.deepEqual(placedOn(result), Object.fromEntries(names.slice(0, 5).map((name) => [name, 'n1'])))
    assert.deepEqual(
      result.claims.map((claim) => podNames(claim.pods)),
      [names.slice(5)],
    )
  })

  test('SCH-82 a hundred pods that share one claim need one attachment, so one node', () => {
    const pairs = times(100, () => [aPod({ cpu: '10m' }), attached('default/shared')] as const)
    const nodes = [aNode('n1', { volumeLimits: { [driver]: 1 } })]
    const onNode = scheduled(pairs, { nodes })
    assert.deepEqual([onNode.claims, onNode.failures], [[], []])
    assert.equal(onNode.placements.length, 100)
    const onClaim = scheduled(pairs)
    assert.deepEqual(
      onClaim.claims.map((claim) => claim.pods.length),
      [100],
    )
  })

  test('claims of bound pods count, and those the node has already are not counted twice', () => {
    const nodes = [
      aNode('n1', {
        volumeLimits: { [driver]: 2 },
        volumesInUse: { [driver]: ['default/data', 'default/logs'] },
      }),
    ]
    const [known, other] = [aPod(), aPod()]
    const result = scheduled(
      [
        [known, attached('default/logs')],
        [other, attached('default/more')],
      ],
      { nodes },
    )
    assert.deepEqual(placedOn(result), { [known.metadata.name]: 'n1' })
    assert.deepEqual(
      result.claims.map((claim) => podNames(claim.pods)),
      [[other.metadata.name]],
    )
  })

  test('claims of a driver without limit, and volumes without driver, count against nothing', () => {
    const nodes = [aNode('n1', { volumeLimits: { [driver]: 0 } })]
    const elsewhere = { alternatives: [], claims: { 'csi.other.example': ['default/a', 'default/b'] } }
    const result = scheduled(
      [
        [aPod(), elsewhere],
        [aPod(), reachable()],
      ],
      { nodes },
    )
    assert.deepEqual([result.placements.length, result.claims.length], [2, 0])
  })

  test('a node over its limit refuses every pod, even one without volumes', () => {
    const nodes = [
      aNode('n1', {
        volumeLimits: { [driver]: 1 },
        volumesInUse: { [driver]: ['default/a', 'default/b'] },
      }),
    ]
    const result = scheduled([[aPod(), reachable()]], { nodes })
    assert.deepEqual([result.placements.length, result.claims.length], [0, 1])
    assert.equal(schedule(anInput({ pods: [aPod()], nodes })).placements.length, 0)
  })

  test('pods whose volumes are unknown go to a new node', () => {
    const result = scheduled([[aPod(), { ...reachable(), unknownClaims: true }]], { nodes: [aNode('n1')] })
    assert.deepEqual([result.placements.length, result.claims.length], [0, 1])
  })

  test('new claims have no attach limit', () => {
    const pairs = times(40, (index) => [aPod({ cpu: '10m' }), attached(`default/${index}`)] as const)
    assert.equal(scheduled(pairs).claims.length, 1)
  })
})

describe('where volumes can be reached', () => {
  test('SCH-85 a volume in two zones serves two pods that avoid each other’s zone, in one pass', () => {
    const apart = requiringPods('podAntiAffinity', labels.zone, 'web')
    const volumes = reachable([inZone('zone-1')], [inZone('zone-2')])
    const { claims, failures } = scheduled(times(2, () => [anAppPod('web', apart), volumes] as const))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.pods.length),
      [1, 1],
    )
    assert.deepEqual(new Set(claims.flatMap((claim) => zoneOf(claim).flat())), new Set(['zone-1', 'zone-2']))
  })

  test('SCH-86 a class with zones that the pool has not leaves the pod unscheduled', () => {
    const pod = aPod()
    const result = scheduled([[pod, reachable([inZone('mars', 'venus')])]], { nodes: [aNode('n1')] })
    assert.deepEqual([result.claims, result.placements], [[], []])
    assert.match(failureTexts(result)[pod.metadata.name] ?? '', /topology\.kubernetes\.io\/zone/)
  })

  test('SCH-87 a volume pinned to a host needs that node, a local one goes along to a new node', () => {
    // A local volume's host name is taken out of its term, which leaves a term that asks for nothing.
    assert.deepEqual(claimedZone(aPod(), reachable([])), [])
    const pod = aPod({ cpu: '1' })
    const pinned = reachable([anExpression(labels.hostname, 'In', 'n9')])
    const gone = scheduled([[pod, pinned]], { nodes: [aNode('n1')] })
    assert.deepEqual([gone.claims, gone.placements], [[], []])
    assert.match(failureTexts(gone)[pod.metadata.name] ?? '', /volume/)
    const there = scheduled([[pod, pinned]], { nodes: [aNode('n1'), aNode('n9')] })
    assert.deepEqual(placedOn(there), { [pod.metadata.name]: 'n9' })
  })

  test('SCH-88 a local volume with a host or a zone that nobody has can be scheduled', () => {
    for (const volumes of [reachable([], [inZone('mars')]), reachable([inZone('mars')], [])])
      assert.deepEqual(claimedZone(aPod(), volumes), [])
  })

  test('SCH-89 of two volumes the combination that can be met is taken', () => {
    const volumes = reachable(
      [inZone('zone-1'), inZone('zone-2')],
      [inZone('zone-1'), inZone('zone-3')],
      [inZone('zone-2'), inZone('zone-2')],
      [inZone('zone-2'), inZone('zone-3')],
    )
    assert.deepEqual(claimedZone(aPod(), volumes), [['zone-2']])
    const nodes = ['zone-1', 'zone-3', 'zone-2'].map((zone, index) =>
      aNode(`n${index}`, { labels: { [labels.zone]: zone } }),
    )
    assert.deepEqual(Object.values(placedOn(scheduled([[aPod(), volumes]], { nodes }))), ['n2'])
  })

  test('SCH-90 the zone of the volume holds after required terms were given up', () => {
    const pod = aPod({}, requiring([inZone('zone-1')], [anExpression(labels.os, 'In', 'linux')]))
    const volumes = reachable([inZone('zone-2')])
    assert.deepEqual(claimedZone(pod, volumes), [['zone-2']])
    const nodes = [aNode('n1'), aNode('n2', { labels: { [labels.zone]: 'zone-2', [labels.os]: 'linux' } })]
    assert.deepEqual(placedOn(scheduled([[pod, volumes]], { nodes })), { [pod.metadata.name]: 'n2' })
  })

  test('pods with volumes in different zones do not share a claim, those in one zone do', () => {
    const pairs = ['zone-1', 'zone-2', 'zone-1'].map((zone) => [aPod(), reachable([inZone(zone)])] as const)
    const { claims, failures } = scheduled(pairs)
    assert.deepEqual(failures, [])
    const byZone = Object.fromEntries(claims.map((claim) => [zoneOf(claim).flat().join(), claim.pods.length]))
    assert.deepEqual(byZone, { 'zone-1': 2, 'zone-2': 1 })
  })

  test('a beta key means the zone, a key that no pool knows refuses every new claim', () => {
    const beta = anExpression('failure-domain.beta.kubernetes.io/zone', 'In', 'zone-3')
    assert.deepEqual(claimedZone(aPod(), reachable([beta])), [['zone-3']])
    const rack = anExpression('topology.example.com/rack', 'In', 'r1')
    const pod = aPod()
    const unknown = scheduled([[pod, reachable([rack])]])
    assert.deepEqual(unknown.claims, [])
    assert.match(failureTexts(unknown)[pod.metadata.name] ?? '', /topology\.example\.com\/rack/)
    const pools = [aPoolInput(aPool('racks', {}, { requirements: [rack] }), typesIn(...zones))]
    const { claims } = scheduled([[aPod(), reachable([rack])]], { pools })
    assert.equal(claims[0]?.labels['topology.example.com/rack'], 'r1')
  })

  test('a node must carry the label that a volume asks for, also a well-known one', () => {
    const nodes = [aNode('n1', { labels: { [labels.os]: 'linux' } })]
    const result = scheduled([[aPod(), reachable([inZone('zone-1')])]], { nodes })
    assert.deepEqual([result.placements.length, result.claims.length], [0, 1])
  })
})

describe('volumes beside a spread', () => {
  const spread = spreading(labels.zone, 'db', { minDomains: 3 })

  /** One node in each zone, each with one bound pod of the app. */
  function onePodPerZone(makeNode: (name: string, zone: string) => NodeInput): Partial<SchedulingInput> {
    // The node in zone-1 comes last by name.
    const nodes = zones.map((zone, index) => makeNode(`n${zones.length - index}`, zone))
    const pods = nodes.map(({ name }) => boundTo(name, anAppPod('db')))
    return { nodes, topology: aCluster(nodes, pods) }
  }

  test('SCH-91 with one pod per zone, the next lands in the zone of its volume', () => {
    const pod = anAppPod('db', spread)
    const emptyNode = (name: string, zone: string) => aNode(name, { labels: { [labels.zone]: zone } })
    const withRoom = scheduled([[pod, reachable([inZone('zone-1')])]], onePodPerZone(emptyNode))
    assert.deepEqual(placedOn(withRoom), { [pod.metadata.name]: 'n3' })
    const full = onePodPerZone(aFullNode)
    assert.deepEqual(claimedZone(pod, reachable([inZone('zone-1')]), full), [['zone-1']])
  })

  test('the zone of the volume is not among those that the spread counts as wanted', () => {
    const full = onePodPerZone(aFullNode)
    for (const zone of ['zone-2', 'zone-3'])
      assert.deepEqual(claimedZone(anAppPod('db', spread), reachable([inZone(zone)]), full), [[zone]])
    // A second pod in that zone would be two more than elsewhere.
    const pairs = times(2, () => [anAppPod('db', spread), reachable([inZone('zone-2')])] as const)
    const { claims, failures } = scheduled(pairs, full)
    assert.deepEqual([claims.map((claim) => claim.pods.length), failures.length], [[1], 1])
  })
})

describe('RPT-7 claims for one pod alone', () => {
  const exclusive = (...claims: readonly string[]): PodVolumes => ({
    ...attached(...claims),
    exclusive: claims,
  })

  test('of two pods that share one, one gets a node and the other is told', () => {
    const pods = [aPod({ cpu: '1' }), aPod({ cpu: '1' })]
    const result = scheduled(pods.map((pod) => [pod, exclusive('default/data')]))
    assert.deepEqual(
      result.claims.map((claim) => podNames(claim.pods)),
      [[pods[0]?.metadata.name]],
    )
    assert.match(
      failureTexts(result)[pods[1]?.metadata.name ?? ''] ?? '',
      /default\/data has access mode ReadWriteOncePod/,
    )
  })

  test('a pod that finds no place leaves the claim to the next', () => {
    const large = aPod({ cpu: '100' })
    const small = aPod({ cpu: '1' })
    const pairs = [large, small].map((pod) => [pod, exclusive('default/data')] as const)
    assert.deepEqual(
      scheduled(pairs).claims.map((claim) => podNames(claim.pods)),
      [[small.metadata.name]],
    )
  })

  test('they count on existing and planned nodes too', () => {
    const [first, second] = [aPod({ cpu: '1' }), aPod({ cpu: '1' })]
    const pairs = [first, second].map((pod) => [pod, exclusive('default/data')] as const)
    const nodes = [aNode('n1'), aNode('n2')]
    const planned = new Map([[second.metadata.uid ?? '', 'n2']])
    assert.deepEqual(placedOn(scheduled(pairs, { nodes, planned })), { [second.metadata.name]: 'n2' })
  })
})

describe('CSI drivers that pods with their volumes need', () => {
  const lacking = { missingDrivers: [driver] }
  const ofType = (...types: readonly string[]) =>
    Object.fromEntries(types.map((name) => [name, [driver]] as const))
  const poolLacking = (...types: readonly string[]) => [
    { ...aPoolInput(aPool(), typesIn(...zones)), missingDrivers: ofType(...types) },
  ]
  const typeNames = typesIn(...zones).map(({ name }) => name)

  test('VER-27 a node without the driver refuses pods with its volumes, and a node is launched', () => {
    const pod = aPod()
    const { claims, placements } = scheduled([[pod, attached('default/a')]], {
      nodes: [aNode('n1', lacking)],
    })
    assert.deepEqual(
      [placements.length, claims.map((claim) => podNames(claim.pods))],
      [0, [[pod.metadata.name]]],
    )
  })

  test('VER-30 pods without its volumes do not need the driver', () => {
    const elsewhere = { alternatives: [], claims: { 'csi.other.example': ['default/a'] } }
    const pairs = [
      [aPod(), elsewhere],
      [aPod(), reachable()],
    ] as const
    const { claims, placements } = scheduled(pairs, { nodes: [aNode('n1', lacking)] })
    assert.deepEqual([placements.length, claims.length], [2, 0])
  })

  test('VER-27 no node is launched of types that lack the driver, and the driver is named', () => {
    const pod = aPod()
    const result = scheduled([[pod, attached('default/a')]], { pools: poolLacking(...typeNames) })
    assert.deepEqual(result.claims, [])
    assert.match(failureTexts(result)[pod.metadata.name] ?? '', /do not run CSI driver ebs\.csi\.aws\.com/)
    const [first = '', ...others] = typeNames
    const [claim] = scheduled([[pod, attached('default/a')]], { pools: poolLacking(...others) }).claims
    assert.deepEqual(claim?.instanceTypes, [first])
    assert.equal(scheduled([[pod, reachable()]], { pools: poolLacking(...typeNames) }).claims.length, 1)
  })
})

describe('RPT-3 attach limits that nodes have told', () => {
  const volumesOf = (...names: readonly string[]) => attached(...names.map((name) => `default/${name}`))
  const limits = (count: number, byType: AttachLimits['byType'] = {}): Partial<SchedulingInput> => ({
    attachLimits: { byType, others: { [driver]: count } },
  })

  test('a pod with more volumes than a node attaches gets no node and is told of driver and count', () => {
    const pod = aPod({ cpu: '1' })
    const result = scheduled([[pod, volumesOf('a', 'b', 'c', 'd')]], limits(3))
    assert.deepEqual(result.claims, [])
    assert.match(
      failureTexts(result)[pod.metadata.name] ?? '',
      /4 volumes of CSI driver ebs\.csi\.aws\.com, and nodes attach at most 3/,
    )
    assert.equal(scheduled([[pod, volumesOf('a', 'b', 'c', 'd')]]).claims.length, 1)
    assert.equal(scheduled([[pod, volumesOf('a', 'b', 'c')]], limits(3)).claims.length, 1)
  })

  test('pods that are alike but for their volumes stay apart when they give up a wish', () => {
    const [plain, pod] = [aPod({ cpu: '1' }), aPod({ cpu: '1' })]
    const taints = [{ key: 'soft', effect: 'PreferNoSchedule' as const }]
    const pools = [aPoolInput(aPool('default', {}, { taints }))]
    const result = scheduled(
      [
        [plain, volumesOf()],
        [pod, volumesOf('a', 'b')],
      ],
      { ...limits(1), pools },
    )
    assert.deepEqual(
      result.claims.map((claim) => podNames(claim.pods)),
      [[plain.metadata.name]],
    )
  })

  test('types whose nodes attach enough are chosen, requests name no volumes', () => {
    const pod = aPod({ cpu: '1' })
    const byType = { 'type-8': { [driver]: 8 }, 'type-2': { [driver]: 2 } }
    const { claims } = scheduled([[pod, volumesOf('a', 'b', 'c', 'd')]], limits(3, byType))
    assert.deepEqual(
      claims.map((claim) => [claim.instanceTypes, Object.keys(claim.requests)]),
      [[['type-8'], ['cpu', 'pods']]],
    )
  })

  for (const improvement of ['planned', 'free', undefined] as const) {
    test(`no new node gets more than it attaches (${improvement ?? 'first fit'})`, () => {
      const pairs = times(10, (i) => [aPod({ cpu: '100m' }), volumesOf(`a${i}`)] as const)
      const policy = { ...strictPolicy, ...(improvement && { improvement }) }
      const { claims, failures } = scheduled(pairs, { ...limits(3), policy })
      assert.deepEqual(failures, [])
      assert.deepEqual(
        claims.map(({ pods }) => pods.length).toSorted((a, b) => a - b),
        [1, 3, 3, 3],
      )
    })
  }

  test('nodes that exist keep their own limits', () => {
    const pods = times(3, () => aPod({ cpu: '100m' }))
    const pairs = pods.map((pod, i) => [pod, volumesOf(`a${i}`, 'shared')] as const)
    const nodes = [aNode('n1', { volumeLimits: { [driver]: 3 }, volumesInUse: {} })]
    const result = scheduled(pairs, { ...limits(2), nodes })
    assert.deepEqual(Object.keys(placedOn(result)).length, 2)
    assert.equal(result.claims.length, 1)
  })
})
