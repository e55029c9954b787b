import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type NodePool, type Pod, parseResources } from '@tenon/api'
import {
  aNode,
  anAppPod,
  anInput,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  failureTexts,
  placedOn,
  requiringPods,
  soldAs,
  times,
  typesIn,
  valuesOn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'
import { aGroup, members, placedOf } from './groups.test-support.ts'

const oneType = [aType('type-4', 4, 16)]
const limitedTo = (nodes: number, name = 'default'): NodePool =>
  aPool(name, { limits: { nodes: String(nodes) } })
const whole = () => aPod({ cpu: '4' })
const textOf = (pod: Pod | undefined, result: ReturnType<typeof schedule>) =>
  failureTexts(result)[pod?.metadata.name ?? ''] ?? ''

describe('groups of pods that run together or not at all', () => {
  test('GNG-1 fewer members than must run get nothing, and are told how many there are', () => {
    const pods = members(2, whole)
    const result = schedule(anInput({ pods, podGroups: [aGroup('g', pods, { minCount: 4 })] }))
    assert.deepEqual(result.claims, [])
    assert.match(textOf(pods[0], result), /runs with at least 4 pods and has 2 .*waits for the others/)
    const all = [...pods, ...members(2, whole)]
    const next = schedule(anInput({ pods: all, podGroups: [aGroup('g', all, { minCount: 4 })] }))
    assert.equal(placedOf(all, next), 4)
    assert.deepEqual(next.podGroups, [{ kind: 'placed', id: 'podgroups.scheduling.k8s.io/default/g' }])
  })

  test('GNG-3 free room of nodes is part of the plan', () => {
    const pods = members(4, () => aPod({ cpu: '2' }))
    const result = schedule(
      anInput({
        pods,
        nodes: [aNode('n')],
        pools: [aPoolInput(aPool(), [aType('type-2', 2, 8)])],
        podGroups: [aGroup('g', pods)],
      }),
    )
    assert.equal(result.placements.length, 2)
    assert.deepEqual(
      result.claims.map((claim) => claim.pods.length),
      [1, 1],
    )
  })

  test('GNG-5 members beyond the needed ones are placed one by one', () => {
    const pods = members(5, whole)
    const result = schedule(
      anInput({
        pods,
        pools: [aPoolInput(limitedTo(3), oneType)],
        podGroups: [aGroup('g', pods, { minCount: 2 })],
      }),
    )
    assert.equal(placedOf(pods, result), 3)
    const waiting = Object.values(failureTexts(result))
    assert.equal(waiting.length, 2)
    for (const text of waiting) assert.match(text, /limit on the number of nodes is used up/)
  })

  test('GNG-5 members that run count for those that must', () => {
    const pods = members(2, whole)
    const pools = [aPoolInput(limitedTo(1), oneType)]
    const group = (bound: number) => aGroup('g', pods, { minCount: 4, bound })
    assert.equal(placedOf(pods, schedule(anInput({ pods, pools, podGroups: [group(2)] }))), 0)
    assert.equal(placedOf(pods, schedule(anInput({ pods, pools, podGroups: [group(3)] }))), 1)
  })

  test('GNG-6 a limit for seven refuses eight as a whole, and another pod has its node', () => {
    const pods = members(8, whole)
    const other = aPod({ cpu: '3' })
    const result = schedule(
      anInput({
        pods: [...pods, other],
        pools: [aPoolInput(limitedTo(7), oneType)],
        podGroups: [aGroup('g', pods)],
      }),
    )
    assert.equal(placedOf(pods, result), 0)
    assert.equal(placedOf([other], result), 1)
    assert.match(
      textOf(pods[0], result),
      /at least 8 pods, and there is room for 7; for the next one: NodePool default: its limit on the number of nodes/,
    )
  })

  describe('ordinary pods that limits leave without a node of their own', () => {
    const run = (types: typeof oneType, small: Pod, { nodes = 2, priority = 0, spec = {} } = {}) => {
      const pods = members(2, () => aPod({ cpu: '3500m' }, spec))
      const result = schedule(
        anInput({
          pods: [...pods, small],
          pools: [aPoolInput(limitedTo(nodes), types)],
          podGroups: [aGroup('g', pods, { priority })],
        }),
      )
      return {
        nodes: result.claims.length,
        ofGroup: placedOf(pods, result),
        alone: placedOf([small], result),
      }
    }
    const small = () => aPod({ cpu: '1500m' })

    test('GNG-17 have room on the nodes of a group, beside the group', () => {
      const types = [...oneType, aType('type-8', 8, 32)]
      assert.deepEqual(run(types, small()), { nodes: 2, ofGroup: 2, alone: 1 })
    })

    test('GNG-17 come before a group that has no room beside them, as the scheduler tries them first', () => {
      assert.deepEqual(run(oneType, small()), { nodes: 1, ofGroup: 0, alone: 1 })
    })

    test('GNG-17 wait for a group that is more important, which would preempt them', () => {
      assert.deepEqual(run(oneType, small(), { priority: 9 }), { nodes: 2, ofGroup: 2, alone: 0 })
    })

    test('GNG-17 that fit on no node of the group wait', () => {
      const types = [aType('type-4', 4, 16, ['zone-1', 'zone-2'])]
      const at = (zone: string) => ({ nodeSelector: { [labels.zone]: zone } })
      const elsewhere = aPod({ cpu: '1' }, at('zone-2'))
      const gang = { spec: at('zone-1') }
      assert.deepEqual(run(types, elsewhere, gang), { nodes: 2, ofGroup: 2, alone: 0 })
    })

    test('GNG-17 with limits for a node of their own have that', () => {
      assert.deepEqual(run(oneType, small(), { nodes: 3 }), { nodes: 3, ofGroup: 2, alone: 1 })
    })
  })

  test('GNG-7 two NodePools with limits for four each serve a group of eight', () => {
    const pods = members(8, whole)
    const pools = [aPoolInput(limitedTo(4, 'a'), oneType), aPoolInput(limitedTo(4, 'b'), oneType)]
    const result = schedule(anInput({ pods, pools, podGroups: [aGroup('g', pods)] }))
    assert.equal(placedOf(pods, result), 8)
    assert.deepEqual(new Set(result.claims.map(({ nodePool }) => nodePool)), new Set(['a', 'b']))
  })

  test('GNG-8 of two groups of which one fits the one with priority is whole, else the older', () => {
    const [first, second] = [members(4, whole), members(4, whole)]
    const ran = (priority: number) => {
      const result = schedule(
        anInput({
          pods: [...first, ...second],
          pools: [aPoolInput(limitedTo(5), oneType)],
          podGroups: [
            aGroup('b', first),
            aGroup('a', second, { priority, createdAt: '2026-01-02T00:00:00Z' }),
          ],
        }),
      )
      return [placedOf(first, result), placedOf(second, result)]
    }
    assert.deepEqual(ran(0), [4, 0])
    assert.deepEqual(ran(1), [0, 4])
  })

  test('GNG-8 a group for which nodes are on their way comes before one of higher priority', () => {
    const [first, second] = [members(2, whole), members(2, whole)]
    const nodes = ['x', 'y'].map((name) => aNode(name, { initialized: false }))
    const planned = new Map(first.map(({ metadata }, at) => [metadata.uid ?? '', nodes[at]?.name ?? '']))
    const result = schedule(
      anInput({
        pods: [...second, ...first],
        nodes,
        planned,
        pools: [],
        podGroups: [aGroup('a', second, { priority: 9 }), aGroup('b', first)],
      }),
    )
    assert.deepEqual([placedOf(first, result), placedOf(second, result)], [2, 0])
  })

  test('GNG-8 what is left of the claims of a group that failed is as if nobody had tried', () => {
    const [first, second] = [members(6, whole), members(2, () => aPod({ cpu: '2' }))]
    const pools = [aPoolInput(limitedTo(3), oneType)]
    const without = schedule(anInput({ pods: second, pools, podGroups: [aGroup('b', second)] }))
    const result = schedule(
      anInput({ pods: [...first, ...second], pools, podGroups: [aGroup('a', first), aGroup('b', second)] }),
    )
    assert.deepEqual(result.claims, without.claims)
  })

  test('GNG-26 the domain that holds all is taken, and the cheapest of several', () => {
    const sold = (a: number, b: number) =>
      soldAs(
        aType('type-4', 4, 16, []),
        anOffering('on-demand', a, 'zone-a'),
        anOffering('on-demand', b, 'zone-b'),
      )
    const zones = (types: Parameters<typeof aPoolInput>[1], nodes = [aNode('n', inZone('zone-a'))]) => {
      const pods = members(4, whole)
      const result = schedule(
        anInput({
          pods,
          nodes,
          pools: [aPoolInput(aPool(), types)],
          podGroups: [aGroup('g', pods, { topology: { key: labels.zone } })],
        }),
      )
      assert.equal(placedOf(pods, result), 4)
      return {
        domain: result.podGroups?.[0],
        zones: new Set(result.claims.flatMap((claim) => valuesOn(claim, labels.zone))),
        onNodes: result.placements.length,
      }
    }
    const id = 'podgroups.scheduling.k8s.io/default/g'
    const dearer = zones([sold(1, 0.2)])
    assert.deepEqual(dearer, {
      domain: { kind: 'placed', id, domain: 'zone-b' },
      zones: new Set(['zone-b']),
      onNodes: 0,
    })
    // The room that is there makes up for the price.
    assert.equal(zones([sold(0.2, 0.2)]).onNodes, 1)
    assert.deepEqual(zones([sold(0.2, 0.2)], []).zones, new Set(['zone-a']))
  })

  test('GNG-26 four places in one zone and eight in another: a group of eight runs in the other', () => {
    const pods = members(8, whole)
    const inZoneOnly = (name: string, zone: string, nodes: number) =>
      aPoolInput(
        aPool(
          name,
          { limits: { nodes: String(nodes) } },
          {
            requirements: [{ key: labels.zone, operator: 'In', values: [zone] }],
          },
        ),
        typesIn('zone-a', 'zone-b').filter(({ name: type }) => type === 'type-4'),
      )
    const result = schedule(
      anInput({
        pods,
        pools: [inZoneOnly('a', 'zone-a', 4), inZoneOnly('b', 'zone-b', 8)],
        podGroups: [aGroup('g', pods, { topology: { key: labels.zone } })],
      }),
    )
    assert.deepEqual(new Set(result.claims.map(({ nodePool }) => nodePool)), new Set(['b']))
    assert.equal(placedOf(pods, result), 8)
  })

  test('GNG-27 nodes of a label that only NodePools give come in one domain, with the label', () => {
    const pods = members(3, whole)
    const inRack = (rack: string) => {
      const pool = aPool(`pool-${rack}`)
      const { spec } = pool
      return aPoolInput(
        { ...pool, spec: { ...spec, template: { ...spec.template, metadata: { labels: { rack } } } } },
        oneType,
      )
    }
    const result = schedule(
      anInput({
        pods,
        pools: [inRack('r2'), inRack('r1')],
        podGroups: [aGroup('g', pods, { topology: { key: 'rack' } })],
      }),
    )
    assert.deepEqual(
      result.claims.map((claim) => claim.labels['rack']),
      ['r1', 'r1', 'r1'],
    )
  })

  test('GNG-28 a key that nothing has is named', () => {
    const pods = members(2, whole)
    const result = schedule(anInput({ pods, podGroups: [aGroup('g', pods, { topology: { key: 'rack' } })] }))
    assert.deepEqual(result.claims, [])
    assert.match(
      textOf(pods[0], result),
      /share a value of the node label rack, which no node has and no NodePool/,
    )
  })

  test('GNG-29 members that run fix the domain, also for those beyond the needed', () => {
    const pods = members(2, whole)
    const type = soldAs(
      aType('type-4', 4, 16, []),
      anOffering('on-demand', 1, 'zone-a'),
      anOffering('on-demand', 0.1, 'zone-b'),
    )
    const zonesWith = (bound: number) => {
      const topology = { key: labels.zone, domain: 'zone-a' }
      const result = schedule(
        anInput({
          pods,
          pools: [aPoolInput(aPool(), [type])],
          podGroups: [aGroup('g', pods, { minCount: 4, bound, topology })],
        }),
      )
      return result.claims.flatMap((claim) => valuesOn(claim, labels.zone))
    }
    assert.deepEqual(zonesWith(2), ['zone-a', 'zone-a'])
    assert.deepEqual(zonesWith(4), ['zone-a', 'zone-a'])
  })

  test('GNG-26 one host for all is a node that is there, else one new node', () => {
    const pods = members(4, () => aPod({ cpu: '2' }))
    const group = aGroup('g', pods, { topology: { key: labels.hostname } })
    const large = aNode('large', { available: parseResources({ cpu: '8', memory: '64Gi', pods: '20' }) })
    const pools = [aPoolInput(aPool('small'), oneType), aPoolInput(aPool('large'), typesIn('zone-1'))]
    const there = schedule(anInput({ pods, nodes: [aNode('n'), large], pools, podGroups: [group] }))
    assert.deepEqual(new Set(Object.values(placedOn(there))), new Set(['large']))
    const launched = schedule(anInput({ pods, nodes: [aNode('n')], pools, podGroups: [group] }))
    assert.deepEqual(
      launched.claims.map(({ nodePool, instanceTypes, pods: held }) => [
        nodePool,
        instanceTypes[0],
        held.length,
      ]),
      [['large', 'type-8', 4]],
    )
    const none = schedule(
      anInput({ pods, nodes: [aNode('n')], pools: pools.slice(0, 1), podGroups: [group] }),
    )
    assert.equal(placedOf(pods, none), 0)
  })

  test('GNG-42 members that need different NodePools get both or nothing', () => {
    const pinned = (pool: string) => aPod({ cpu: '4' }, { nodeSelector: { [labels.nodePool]: pool } })
    const pods = [...members(2, () => pinned('a')), ...members(2, () => pinned('b'))]
    const run = (nodesOfB: number) => {
      const pools = [aPoolInput(aPool('a'), oneType), aPoolInput(limitedTo(nodesOfB, 'b'), oneType)]
      return placedOf(pods, schedule(anInput({ pods, pools, podGroups: [aGroup('g', pods)] })))
    }
    assert.deepEqual([run(2), run(1)], [4, 0])
  })

  test('GNG-9 a group is not held back because all it could have is on trial, and waits whole for limits', () => {
    const pods = members(3, whole)
    const ref = { instanceType: 'type-4', zone: 'zone-1', capacityType: 'on-demand' }
    const podGroups = [aGroup('g', pods)]
    const tried = schedule(
      anInput({ pods, pools: [aPoolInput(aPool(), oneType)], podGroups, offeringsOnTrial: [ref] }),
    )
    assert.equal(tried.claims.length, 3)
    const reserved = { ...aPoolInput(limitedTo(3), oneType), reserved: { nodes: 1 } }
    const waiting = schedule(anInput({ pods, pools: [reserved], podGroups }))
    assert.deepEqual(waiting.claims, [])
    assert.equal(waiting.deferred.length, 3)
  })

  test('GNG-6 a group whose claim cannot be written is refused, and the others are decided without it', () => {
    const families = [
      ...times(3, (at) => ({ ...aType(`cheap-${at}`, 4, 16), name: `cheap-${at}` })),
      aType('dear', 8, 32),
    ].map((type) => ({
      ...type,
      requirements: [
        ...type.requirements,
        { key: 'family', operator: 'In' as const, values: [type.name.split('-')[0] ?? ''] },
      ],
    }))
    const pool = aPool('strict', {}, { requirements: [{ key: 'family', operator: 'Exists', minValues: 2 }] })
    const pods = members(2, whole)
    const other = aPod({ cpu: '1' }, { nodeSelector: { [labels.nodePool]: 'other' } })
    const base = anInput({
      pods: [...pods, other],
      pools: [aPoolInput(pool, families), aPoolInput(aPool('other', { weight: 0 }), [aType('small', 2, 8)])],
      podGroups: [aGroup('g', pods)],
    })
    const result = schedule({ ...base, policy: { ...base.policy, maxInstanceTypes: 1 } })
    assert.equal(placedOf(pods, result), 0)
    assert.equal(placedOf([other], result), 1)
    assert.match(textOf(pods[0], result), /too few of the cheapest instance types/)
  })

  test('GNG-8 members that must be near pods placed after the group are tried again', () => {
    const web = anAppPod('web', { nodeSelector: { [labels.zone]: 'zone-1' } }, '1')
    const pods = members(2, () => anAppPod('worker', requiringPods('podAffinity', labels.zone, 'web'), '1'))
    const result = schedule(anInput({ pods: [...pods, web], podGroups: [aGroup('g', pods)] }))
    assert.equal(placedOf([...pods, web], result), 3)
  })

  test('GNG-37 nothing is decided about a group in part when time runs out', () => {
    const pods = members(4, whole)
    const result = schedule(anInput({ pods, podGroups: [aGroup('g', pods)] }), { shouldStop: () => true })
    assert.equal(placedOf(pods, result), 0)
    assert.equal(result.undecided.length, 4)
  })
})

function inZone(zone: string): { labels: Record<string, string> } {
  return { labels: { [labels.zone]: zone } }
}
