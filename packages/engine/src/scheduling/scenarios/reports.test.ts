/** Where the plans of comparable systems went wrong (reports.md 2 and 12). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type InstanceType,
  labels,
  type NodePool,
  type NodeSelectorRequirement,
  type Pod,
  type PodSpec,
  type Taint,
} from '@tenon/api'
import { lookupsOf } from '../../eligibility/storage.test-support.ts'
import { validatePod } from '../../eligibility/validation.ts'
import {
  aCluster,
  aDaemon,
  aFullNode,
  aNode,
  anAppPod,
  anExpression,
  anInput,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  boundTo,
  placedOn,
  podsPerDomain,
  requiring,
  requiringPods,
  soldAs,
  spreading,
  strictPolicy,
  times,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const { zone, hostname } = labels
const team = 'example.com/team'
const rack = 'example.com/rack'
const gpu = 'example.com/gpu'

/** A pool with a label, in certain zones. */
function aTeamPool(name: string, zones: readonly string[], more: { label?: string; taints?: Taint[] } = {}) {
  const requirements = [{ key: zone, operator: 'In' as const, values: zones }]
  const pool: NodePool = aPool(name, {}, { requirements, ...(more.taints && { taints: more.taints }) })
  const { template } = pool.spec
  const labelled = more.label === undefined ? {} : { metadata: { labels: { [team]: more.label } } }
  return aPoolInput(
    { ...pool, spec: { ...pool.spec, template: { ...template, ...labelled } } },
    typesIn(...zones),
  )
}

const ofTeam = (spec: Partial<PodSpec>): Pod => anAppPod('web', { nodeSelector: { [team]: 'a' }, ...spec })

/** The type with its offerings of a zone sold out. */
function soldOutIn(type: InstanceType, soldOut: string): InstanceType {
  const isIn = (offering: InstanceType['offerings'][number]) =>
    offering.requirements.some(({ key, values }) => key === zone && values?.includes(soldOut) === true)
  return soldAs(
    type,
    ...type.offerings.map((offering) => ({ ...offering, available: offering.available && !isIn(offering) })),
  )
}

describe('domains that count for a spread', () => {
  const two = [aTeamPool('a', ['z1', 'z2'], { label: 'a' }), aTeamPool('b', ['z3'])]

  test('RPT-11 only domains that the selector of the pod admits count', () => {
    const pods = times(4, () => ofTeam(spreading(zone, 'web')))
    const { claims, failures } = schedule(anInput({ pods, pools: two }))
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, zone), { z1: 2, z2: 2 })
  })

  test('RPT-11 nodes of another pool do not count either', () => {
    const nodes = [aFullNode('n3', 'z3')]
    const pods = times(4, () => ofTeam(spreading(zone, 'web')))
    const { claims } = schedule(anInput({ pods, pools: two, nodes, topology: aCluster(nodes) }))
    assert.deepEqual(podsPerDomain(claims, zone), { z1: 2, z2: 2 })
  })

  test('RPT-11 a custom topology key', () => {
    const racks = (name: string, label: string | undefined, ...values: readonly string[]) => {
      const input = aTeamPool(name, ['z1'], label === undefined ? {} : { label })
      const { template } = input.nodePool.spec
      const requirements = [...template.spec.requirements, { key: rack, operator: 'In' as const, values }]
      const spec = { ...template.spec, requirements }
      return { ...input, nodePool: { ...input.nodePool, spec: { template: { ...template, spec } } } }
    }
    const pools = [racks('a', 'a', 'r1', 'r2'), racks('b', undefined, 'r3')]
    const pods = times(4, () => ofTeam(spreading(rack, 'web')))
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, rack), { r1: 2, r2: 2 })
  })

  test('RPT-11 taints that the pod does not tolerate, hard ones only, under the policy Honor', () => {
    const taint = (effect: Taint['effect']) => [{ key: 'dedicated', effect }]
    const pools = (effect: Taint['effect']) => [
      aTeamPool('a', ['z1', 'z2']),
      aTeamPool('b', ['z3'], { taints: taint(effect) }),
    ]
    const placed = (effect: Taint['effect'], nodeTaintsPolicy: 'Honor' | 'Ignore') => {
      const pods = times(4, () => anAppPod('web', spreading(zone, 'web', { nodeTaintsPolicy })))
      return podsPerDomain(schedule(anInput({ pods, pools: pools(effect) })).claims, zone)
    }
    assert.deepEqual(placed('NoSchedule', 'Honor'), { z1: 2, z2: 2 })
    assert.deepEqual(placed('NoSchedule', 'Ignore'), { z1: 1, z2: 1 })
    assert.equal(placed('PreferNoSchedule', 'Honor')['z3'], 1)
  })

  test('RPT-11 minDomains counts only what the pod can reach', () => {
    const pods = (minDomains: number) => times(4, () => ofTeam(spreading(zone, 'web', { minDomains })))
    const reached = (minDomains: number) =>
      podsPerDomain(schedule(anInput({ pods: pods(minDomains), pools: two })).claims, zone)
    assert.deepEqual(reached(2), { z1: 2, z2: 2 })
    assert.deepEqual(reached(3), { z1: 1, z2: 1 })
  })

  test('RPT-11 a way of selling that the selector excludes opens no domain', () => {
    const type = soldAs(
      aType('type', 4, 16, ['z1', 'z2', 'z3']),
      anOffering('on-demand', 0.1, 'z1'),
      anOffering('on-demand', 0.1, 'z2'),
      anOffering('spot', 0.1, 'z3'),
    )
    const onDemand = { nodeSelector: { [labels.capacityType]: 'on-demand' } }
    const pods = times(4, () => anAppPod('web', { ...spreading(zone, 'web'), ...onDemand }))
    const { claims } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), [type])] }))
    assert.deepEqual(podsPerDomain(claims, zone), { z1: 2, z2: 2 })
  })

  test('RPT-50 with nodeAffinityPolicy Ignore the minimum is over all domains', () => {
    const pods = times(4, () => ofTeam(spreading(zone, 'web', { nodeAffinityPolicy: 'Ignore' })))
    const { claims, failures } = schedule(anInput({ pods, pools: two }))
    assert.deepEqual(podsPerDomain(claims, zone), { z1: 1, z2: 1 })
    assert.equal(failures.length, 2)
  })

  test('RPT-50 all terms of node affinity count, also those that were given up', () => {
    const pools = [aTeamPool('pool', ['z1', 'z2'])]
    const terms = requiring(
      [anExpression(zone, 'In', 'z9')],
      [anExpression(zone, 'In', 'z1')],
      [anExpression(zone, 'In', 'z2')],
    )
    const nodes = [aFullNode('n9', 'z9')]
    const pods = times(3, () => anAppPod('web', { ...terms, ...spreading(zone, 'web') }))
    const { claims, failures } = schedule(anInput({ pods, pools, nodes, topology: aCluster(nodes) }))
    assert.deepEqual(podsPerDomain(claims, zone), { z1: 1, z2: 1 })
    assert.equal(failures.length, 1)
  })

  test('RPT-50 a selector without requirements counts no pod', () => {
    const pods = times(3, () => anAppPod('web', spreading(zone, 'web', { labelSelector: {} })))
    const nodes = [aFullNode('n1', 'z1'), aFullNode('n2', 'z2')]
    const bound = times(3, () => boundTo('n1', anAppPod('web')))
    const pools = [aTeamPool('pool', ['z1'])]
    const { claims, failures } = schedule(anInput({ pods, pools, nodes, topology: aCluster(nodes, bound) }))
    assert.deepEqual([podsPerDomain(claims, zone), failures], [{ z1: 3 }, []])
  })

  test('RPT-50 a pod meets required affinity terms if all of them select it', () => {
    const nodes = [aFullNode('n1', 'z1'), aFullNode('n2', 'z2')]
    const labelled = (name: string, podLabels: Readonly<Record<string, string>>) => {
      const pod = boundTo(name, anAppPod('db'))
      return { ...pod, metadata: { ...pod.metadata, labels: { app: 'db', ...podLabels } } }
    }
    const term = (matchLabels: Readonly<Record<string, string>>) => ({
      topologyKey: zone,
      labelSelector: { matchLabels },
    })
    const required = [term({ app: 'db' }), term({ tier: 'front' })]
    const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } }
    const zonesWith = (...bound: readonly Pod[]) => {
      const pools = [aTeamPool('pool', ['z1', 'z2'])]
      const pods = [anAppPod('web', { affinity })]
      const { claims } = schedule(anInput({ pods, pools, nodes, topology: aCluster(nodes, bound) }))
      return podsPerDomain(claims, zone)
    }
    const other = { ...labelled('n1', { tier: 'front', app: 'cache' }) }
    assert.deepEqual(zonesWith(labelled('n1', {}), other), {})
    assert.deepEqual(zonesWith(labelled('n1', {}), other, labelled('n2', { tier: 'front' })), { z2: 1 })
  })

  test('RPT-50 a node counts only if it has the keys of all hard constraints', () => {
    const nodes = [aFullNode('n3', 'z3')]
    const constraints = [zone, rack].flatMap((key) => spreading(key, 'web').topologySpreadConstraints ?? [])
    const requirements = [
      { key: zone, operator: 'In' as const, values: ['z1', 'z2'] },
      { key: rack, operator: 'In' as const, values: ['r1', 'r2'] },
    ]
    const pools = [aPoolInput(aPool('default', {}, { requirements }), typesIn('z1', 'z2'))]
    const pods = times(4, () => anAppPod('web', { topologySpreadConstraints: constraints }))
    const { claims, failures } = schedule(anInput({ pods, pools, nodes, topology: aCluster(nodes) }))
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, zone), { z1: 2, z2: 2 })
  })
})

test('RPT-12 spreads over the zones of 20 NodePools take no more than twice what they take in one', () => {
  const pods = (teams: number) =>
    times(1000, (index) =>
      anAppPod(`app-${index % 100}`, {
        ...spreading(zone, `app-${index % 100}`),
        ...(teams > 1 && { nodeSelector: { [team]: `team-${index % teams}` } }),
      }),
    )
  const inputOf = (teams: number) =>
    anInput({
      pods: pods(teams),
      pools: times(teams, (index) =>
        aTeamPool(`team-${index}`, index % 2 === 0 ? ['z1', 'z2', 'z3'] : ['z1', 'z2'], {
          label: `team-${index}`,
        }),
      ),
    })
  const [one, twenty] = [inputOf(1), inputOf(20)]
  const timed = (input: typeof one) => {
    const start = process.cpuUsage()
    assert.deepEqual(schedule(input).failures, [])
    return process.cpuUsage(start).user
  }
  const ratios = times(7, () => timed(twenty) / timed(one))
  assert.ok(Math.min(...ratios) < 2, `ratios ${ratios.map((ratio) => ratio.toFixed(2)).join(' ')}`)
})

describe('hosts', () => {
  const excluding = (...names: readonly string[]) => requiring([anExpression(hostname, 'NotIn', ...names)])

  test('RPT-13 a host that is excluded rules out no new node, and is not used', () => {
    const pod = aPod({}, excluding('x'))
    assert.equal(validatePod(pod, lookupsOf(), strictPolicy), undefined)
    const nodes = [aNode('x')]
    const { claims, placements } = schedule(anInput({ pods: [pod], nodes, topology: aCluster(nodes) }))
    assert.deepEqual([claims.length, placements], [1, []])
  })

  test('RPT-13 a spread over zones regards such a pod as free to go anywhere else', () => {
    const pods = times(4, () => anAppPod('web', { ...excluding('x'), ...spreading(zone, 'web') }))
    const { claims, failures } = schedule(
      anInput({ pods, pools: [aPoolInput(aPool(), typesIn('z1', 'z2'))] }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, zone), { z1: 2, z2: 2 })
  })

  test('RPT-14 an affinity to pods of a DaemonSet is met by a new node', () => {
    for (const key of [hostname, zone]) {
      const near = requiringPods('podAffinity', key, 'agent').affinity?.podAffinity
      const [term] = near?.requiredDuringSchedulingIgnoredDuringExecution ?? []
      const podAffinity = {
        requiredDuringSchedulingIgnoredDuringExecution: term
          ? [{ ...term, namespaces: ['kube-system'] }]
          : [],
      }
      const pod = aPod({}, { affinity: { podAffinity } })
      const daemons = [aDaemon({ cpu: '100m' })]
      assert.equal(schedule(anInput({ pods: [pod], daemons })).claims.length, 1, key)
      assert.equal(schedule(anInput({ pods: [pod] })).claims.length, 0, `${key}, no DaemonSet`)
      const elsewhere = [aDaemon({ cpu: '100m' }, { nodeSelector: { [labels.arch]: 'arm64' } })]
      assert.equal(
        schedule(anInput({ pods: [pod], daemons: elsewhere })).claims.length,
        0,
        `${key}, not there`,
      )
      // The node is on its way, its DaemonSet pod is not there yet.
      const nodes = [aNode('n1', { initialized: false })]
      const later = schedule(anInput({ pods: [pod], daemons, nodes, topology: aCluster(nodes) }))
      assert.deepEqual(placedOn(later), { [pod.metadata.name]: 'n1' }, `${key}, on its way`)
      const started = [aNode('n1')]
      const without = schedule(anInput({ pods: [pod], daemons, nodes: started, topology: aCluster(started) }))
      assert.deepEqual(placedOn(without), {}, `${key}, started without it`)
    }
  })

  test('RPT-14 pods of a DaemonSet meet no affinity on a node without the label', () => {
    const pod = anAppPod('new', requiringPods('podAffinity', rack, 'agent'))
    const daemons = [{ ...aDaemon({ cpu: '100m' }), namespace: 'default' }]
    const claimsOf = (...requirements: readonly NodeSelectorRequirement[]) => {
      const pools = [aPoolInput(aPool('default', {}, { requirements }))]
      return schedule(anInput({ pods: [pod], daemons, pools })).claims.length
    }
    assert.equal(claimsOf(), 0)
    assert.equal(claimsOf(anExpression(rack, 'NotIn', 'r1')), 0)
    assert.equal(claimsOf(anExpression(rack, 'In', 'r1', 'r2')), 1)
    assert.equal(claimsOf(anExpression(rack, 'Exists')), 1)
  })

  test('RPT-14 an anti-affinity to pods of a DaemonSet rules out nodes that run it', () => {
    const term = {
      topologyKey: hostname,
      namespaces: ['kube-system'],
      labelSelector: { matchLabels: { app: 'agent' } },
    }
    const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] }
    const pod = aPod({}, { affinity: { podAntiAffinity } })
    assert.equal(schedule(anInput({ pods: [pod], daemons: [aDaemon({ cpu: '100m' })] })).claims.length, 0)
  })

  test('RPT-14 a DaemonSet that selects a label which no new node gets keeps no pod away', () => {
    const color = 'example.com/color'
    const podAntiAffinity = requiringPods('podAntiAffinity', hostname, 'agent')
    const claimsOf = (requirement: NodeSelectorRequirement, wanted: PodSpec['nodeSelector'] = {}) => {
      const pool = aPool('default', {}, { requirements: [requirement] })
      const agent = aDaemon({ cpu: '100m' }, { nodeSelector: { [color]: 'blue' } })
      const pod = anAppPod('new', { ...podAntiAffinity, nodeSelector: wanted })
      const daemons = [{ ...agent, namespace: 'default' }]
      return schedule(anInput({ pods: [pod], daemons, pools: [aPoolInput(pool)] })).claims.length
    }
    assert.equal(claimsOf(anExpression(color, 'NotIn', 'red')), 1)
    assert.equal(claimsOf(anExpression(color, 'Exists')), 1)
    assert.equal(claimsOf(anExpression(color, 'In', 'amber', 'blue')), 1)
    assert.equal(claimsOf(anExpression(color, 'In', 'blue', 'red')), 0)
    assert.equal(claimsOf(anExpression(color, 'NotIn', 'red'), { [color]: 'blue' }), 0)
  })

  test('RPT-48 neither do pods of a DaemonSet keep a pod from nodes without the label', () => {
    const pod = anAppPod('new', requiringPods('podAntiAffinity', rack, 'agent'))
    const daemons = [{ ...aDaemon({ cpu: '100m' }), namespace: 'default' }]
    assert.equal(schedule(anInput({ pods: [pod], daemons })).claims.length, 1)
  })

  test('RPT-16 a pod that takes long to end keeps away pods with an anti-affinity to it', () => {
    const ending = anAppPod('old')
    const gone = { ...ending, metadata: { ...ending.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
    const pod = anAppPod('new', requiringPods('podAntiAffinity', hostname, 'old'))
    const nodes = [aNode('n1')]
    const topology = aCluster(nodes, [boundTo('n1', gone)])
    const result = schedule(anInput({ pods: [pod], nodes, topology }))
    assert.deepEqual([placedOn(result), result.claims.length], [{}, 1])
    const near = anAppPod('new', requiringPods('podAffinity', hostname, 'old'))
    assert.deepEqual(placedOn(schedule(anInput({ pods: [near], nodes, topology }))), {
      [near.metadata.name]: 'n1',
    })
  })

  test('RPT-17 a zonal affinity starts in the zone to which a volume binds one of its pods', () => {
    const pools = [aPoolInput(aPool(), typesIn('z1', 'z2', 'z3'))]
    for (const [free, bound] of [
      ['1', '500m'],
      ['500m', '1'],
    ] as const) {
      const near = requiringPods('podAffinity', zone, 'web')
      const [mobile, pinned] = [anAppPod('web', near, free), anAppPod('web', near, bound)]
      const volumes = new Map([
        [pinned.metadata.uid ?? '', { alternatives: [[anExpression(zone, 'In', 'z3')]], claims: {} }],
      ])
      const { claims, failures } = schedule(anInput({ pods: [mobile, pinned], pools, volumes }))
      assert.deepEqual(failures, [])
      assert.deepEqual(podsPerDomain(claims, zone), { z3: 2 })
    }
  })

  test('RPT-17 neither does a node in another zone start it', () => {
    const near = requiringPods('podAffinity', zone, 'web')
    const [mobile, pinned] = [anAppPod('web', near, '1'), anAppPod('web', near)]
    const volumes = new Map([
      [pinned.metadata.uid ?? '', { alternatives: [[anExpression(zone, 'In', 'z3')]], claims: {} }],
    ])
    const pools = [aPoolInput(aPool(), typesIn('z1', 'z3'))]
    const nodes = [aNode('n1', { labels: { [zone]: 'z1' } })]
    const input = anInput({ pods: [mobile, pinned], pools, nodes, topology: aCluster(nodes), volumes })
    assert.deepEqual(podsPerDomain(schedule(input).claims, zone), { z3: 2 })
  })
})

describe('ties between domains', () => {
  const withGpu = (type: InstanceType): InstanceType => ({
    ...type,
    capacity: { ...type.capacity, [gpu]: 1000 },
  })
  const pools = [
    aPoolInput(aPool(), [aType('small', 2, 8, ['a', 'b', 'c']), withGpu(aType('gpu', 8, 32, ['b', 'c']))]),
  ]
  const rules = {
    'a hard spread': spreading(zone, 'web'),
    'a soft spread': spreading(zone, 'web', { whenUnsatisfiable: 'ScheduleAnyway' }),
    'an affinity': requiringPods('podAffinity', zone, 'web'),
  }

  test('RPT-43 pods go to a zone where a type that holds them is sold', () => {
    for (const [name, rule] of Object.entries(rules)) {
      const containers = [{ name: 'app', resources: { requests: { cpu: '1', [gpu]: '1' } } }]
      const pods = times(2, () => anAppPod('web', { ...rule, containers }))
      const { claims, failures } = schedule(anInput({ pods, pools }))
      assert.deepEqual(failures, [], name)
      const expected: Readonly<Record<string, number>> = name === 'an affinity' ? { b: 2 } : { b: 1, c: 1 }
      assert.deepEqual(podsPerDomain(claims, zone), expected, name)
    }
  })

  test('RPT-43 a zone where only smaller types are sold counts once a node is there', () => {
    const containers = [{ name: 'app', resources: { requests: { cpu: '1', [gpu]: '1' } } }]
    const pods = times(4, () => anAppPod('web', { ...rules['a hard spread'], containers }))
    assert.deepEqual(podsPerDomain(schedule(anInput({ pods, pools })).claims, zone), { b: 2, c: 2 })
    const nodes = [aFullNode('small', 'a')]
    const { claims, failures } = schedule(anInput({ pods, pools, nodes, topology: aCluster(nodes) }))
    assert.deepEqual([podsPerDomain(claims, zone), failures.length], [{ b: 1, c: 1 }, 2])
  })

  test('RPT-44 while a zone is sold out, as many pods are placed as the rules allow', () => {
    const type = aType('only', 2, 8, ['a', 'b', 'c'])
    for (const [name, rule] of Object.entries(rules)) {
      const pods = times(3, () => anAppPod('web', rule))
      const placedWith = (sold: InstanceType) => {
        const { claims, failures } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), [sold])] }))
        return [podsPerDomain(claims, zone), failures.length]
      }
      const out = soldOutIn(type, 'a')
      if (name === 'an affinity') assert.deepEqual(placedWith(out), [{ b: 3 }, 0])
      else if (name === 'a hard spread') assert.deepEqual(placedWith(out), [{ b: 1, c: 1 }, 1])
      else assert.equal(placedWith(out)[1], 0)
      assert.equal(placedWith(type)[1], 0, name)
    }
  })

  test('RPT-46 of several domains the cheapest in which the pod can be bought', () => {
    const priced = (prices: Readonly<Record<string, number>>) =>
      soldAs(
        aType('only', 2, 8, Object.keys(prices)),
        ...Object.entries(prices).map(([at, price]) => anOffering('on-demand', price, at)),
      )
    for (const [name, rule] of Object.entries(rules)) {
      const input = anInput({
        pods: [anAppPod('web', rule)],
        pools: [aPoolInput(aPool(), [priced({ a: 0.3, b: 0.2, c: 0.1 })])],
      })
      assert.deepEqual(podsPerDomain(schedule(input).claims, zone), { c: 1 }, name)
    }
    const spot = soldAs(
      aType('only', 2, 8, ['a']),
      anOffering('on-demand', 0.1, 'a'),
      anOffering('spot', 0.03, 'a'),
    )
    const pods = [anAppPod('web', spreading(labels.capacityType, 'web'))]
    const { claims } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), [spot])] }))
    assert.deepEqual(podsPerDomain(claims, labels.capacityType), { spot: 1 })
  })

  test('RPT-45 with two spreads pods leave the only zone of a capacity type to those that need it', () => {
    const spreads = [zone, labels.capacityType].flatMap((key) => {
      const maxSkew = key === zone ? 2 : 1
      return spreading(key, 'web', { maxSkew }).topologySpreadConstraints ?? []
    })
    const zones = ['a', 'b', 'c']
    for (const only of zones)
      for (const topologySpreadConstraints of [spreads, spreads.toReversed()]) {
        const offerings = [
          ...zones.map((at) => anOffering('spot', 0.03, at)),
          anOffering('on-demand', 0.1, only),
        ]
        const sold = soldAs(aType('some', 2, 8, zones), ...offerings)
        const pods = times(4, () => anAppPod('web', { topologySpreadConstraints }))
        const { claims, failures } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), [sold])] }))
        assert.deepEqual(failures, [], only)
        assert.deepEqual(podsPerDomain(claims, labels.capacityType), { spot: 2, 'on-demand': 2 }, only)
      }
  })

  test('RPT-45 ways that are too small for the pods do not hide which zone of a capacity type is the only one', () => {
    const spreads = [labels.capacityType, zone].flatMap((key) => {
      const maxSkew = key === zone ? 1 : 2
      return spreading(key, 'web', { maxSkew }).topologySpreadConstraints ?? []
    })
    const zones = ['a', 'b', 'c']
    for (const only of zones) {
      const everywhere = zones.map((at) => anOffering('on-demand', 0.1, at))
      const small = zones.map((at) => anOffering('spot', 0.1, at))
      const sold = [
        soldAs(aType('small', 1, 4, zones), ...everywhere, ...small),
        soldAs(aType('large', 2, 8, zones), ...everywhere, anOffering('spot', 0.1, only)),
      ]
      const pods = times(4, () => anAppPod('web', { topologySpreadConstraints: spreads }, '1500m'))
      const { claims, failures } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), sold)] }))
      assert.deepEqual(failures, [], only)
      assert.deepEqual(podsPerDomain(claims, labels.capacityType), { spot: 2, 'on-demand': 2 }, only)
    }
  })

  test('RPT-45 of zones that are alike the one where the most other pods may be, whatever it is called', () => {
    const soft = spreading(zone, 'web', { whenUnsatisfiable: 'ScheduleAnyway' })
    const zones = ['a', 'b', 'c']
    for (const only of zones) {
      const inOnly = anExpression(zone, 'In', only)
      for (const bound of [
        { nodeSelector: { [zone]: only } },
        requiring([anExpression(rack, 'In', 'r1')], [inOnly]),
        requiring([anExpression(zone, 'NotIn', ...zones.filter((each) => each !== only))]),
      ]) {
        const pods = [anAppPod('web', soft, '1'), anAppPod('bound', bound)]
        const { claims } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), typesIn(...zones))] }))
        assert.deepEqual(podsPerDomain(claims, zone), { [only]: 2 })
        assert.equal(claims.length, 1)
      }
    }
  })

  test('RPT-45 a NodePool that is soon used up goes to the zone that no other one offers', () => {
    const zones = ['a', 'b', 'c']
    for (const only of zones) {
      const limited = aPool('limited', { weight: 10, limits: { nodes: '1' } })
      const open = aPool('open', {}, { requirements: [anExpression(zone, 'NotIn', only)] })
      const sold = [limited, open].map((pool) => aPoolInput(pool, typesIn(...zones)))
      const pods = times(3, () => anAppPod('web', spreading(zone, 'web')))
      const { failures } = schedule(anInput({ pods, pools: sold }))
      assert.deepEqual(failures, [], only)
    }
  })

  test('RPT-45 a pod leaves the other zone to one that has to be alone in its own', () => {
    const selectsAll = { labelSelector: {} }
    for (const only of ['a', 'b']) {
      const pods = [
        anAppPod('social', requiringPods('podAffinity', zone, '', selectsAll), '1'),
        anAppPod('alone', requiringPods('podAntiAffinity', zone, '', selectsAll), '500m'),
        anAppPod('bound', { nodeSelector: { [zone]: only } }),
      ]
      const { failures } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), typesIn('a', 'b'))] }))
      assert.deepEqual(failures, [], only)
    }
  })

  test('RPT-45 pods that must be together go to the zone whose type holds all of them, whatever it is called', () => {
    const together = requiringPods('podAffinity', labels.hostname, 'web')
    const [soft] =
      spreading(zone, 'web', { whenUnsatisfiable: 'ScheduleAnyway' }).topologySpreadConstraints ?? []
    const memory = { resources: { requests: { memory: '14Gi' } } }
    for (const [small, large] of [
      ['a', 'b'],
      ['b', 'a'],
    ] as const) {
      const types = [aType('wide', 8, 16, [small]), aType('tall', 4, 32, [large])].map((type) =>
        soldAs(type, anOffering('on-demand', 0.1, type.name === 'wide' ? small : large)),
      )
      const pods = times(2, () =>
        anAppPod('web', {
          ...together,
          topologySpreadConstraints: soft === undefined ? [] : [soft],
          containers: [{ name: 'app', ...memory }],
        }),
      )
      const { claims, failures } = schedule(anInput({ pods, pools: [aPoolInput(aPool(), types)] }))
      assert.deepEqual(failures, [], large)
      assert.deepEqual(
        claims.map((claim) => claim.pods.length),
        [2],
      )
    }
  })

  test('RPT-48 a pool whose nodes lack the label of an anti-affinity is no place that it is about', () => {
    const away = anAppPod('new', requiringPods('podAntiAffinity', rack, 'old'))
    const nodes = [aFullNode('n1', 'zone-1', { [rack]: 'r1' })]
    const topology = aCluster(nodes, [boundTo('n1', anAppPod('old'))])
    const requirements = [{ key: rack, operator: 'In' as const, values: ['r1'] }]
    const without = aPoolInput(aPool('without'))
    const only = aPoolInput(aPool('only-r1', { weight: 10 }, { requirements }))
    for (const available of [[without], [only, without]]) {
      const { claims } = schedule(anInput({ pods: [away], pools: available, nodes, topology }))
      assert.deepEqual(
        claims.map(({ nodePool }) => nodePool),
        ['without'],
      )
    }
  })
})
