import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type LabelSelector, parseResources, type Resources } from '@tenon/api'
import type { PoolInput, QuotaInput, SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { renderPodReason } from '../../reasons/reasons.ts'
import {
  anInput,
  aNode,
  aPod,
  aPool,
  aPoolInput,
  aType,
  requirementsOn,
  times,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

function aQuota(
  limits: Readonly<Record<string, string>>,
  selector: LabelSelector = {},
  others: Partial<QuotaInput> = {},
): QuotaInput {
  return { name: 'ceiling', selector, limits: parseResources(limits), usage: {}, ...others }
}

const inZone = (...zones: string[]): LabelSelector => ({
  matchExpressions: [{ key: labels.zone, operator: 'In', values: zones }],
})

/** The most that the claims may be launched with. */
function largestSum({ claims }: SchedulingResult, quota = 'ceiling'): Resources {
  const total: Record<string, number> = {}
  for (const claim of claims)
    if (claim.quotas?.includes(quota))
      for (const [name, amount] of Object.entries(claim.largest)) total[name] = (total[name] ?? 0) + amount
  return total
}

/** Integers that look random and are the same every time. */
function diceOf(seed: number): (least: number, most: number) => number {
  let state = seed
  return (least, most) => {
    state = (state * 48_271) % 2_147_483_647
    return least + (state % (most - least + 1))
  }
}

const reasonsOf = ({ failures }: SchedulingResult) => failures.map(({ reason }) => renderPodReason(reason))

for (const improvement of ['planned', 'free', undefined] as const)
  describe(`quotas, placement ${improvement ?? 'by first fit'}`, () => {
    const input = (given: Partial<SchedulingInput>) => {
      const base = anInput(given)
      return improvement === undefined ? base : { ...base, policy: { ...base.policy, improvement } }
    }

    test('WNT-1 three NodePools without limits stay within one quota together', () => {
      const pools = ['a', 'b', 'c'].map((name) => aPoolInput(aPool(name)))
      const pods = times(200, () => aPod({ cpu: '1' }))
      const result = schedule(input({ pools, pods, quotas: [aQuota({ cpu: '40' })] }))
      assert.ok((largestSum(result)['cpu'] ?? 0) <= 40_000)
      const placed = result.claims.reduce((sum, claim) => sum + claim.pods.length, 0)
      assert.ok(placed >= 36, `${placed} pods`)
      assert.equal(placed + result.failures.length, 200)
      for (const text of new Set(reasonsOf(result)))
        assert.match(text, /CapacityQuota ceiling has \d+m? of cpu left.*spec\.limits\.resources/)
    })

    test('WNT-5 nodes of others count, and nothing is launched beyond the quota', () => {
      const quotas = [aQuota({ nodes: '10' }, {}, { usage: { nodes: 12 } })]
      const result = schedule(input({ pods: [aPod()], nodes: [], quotas }))
      assert.equal(result.claims.length, 0)
      assert.match(reasonsOf(result).join(), /CapacityQuota ceiling has 0 of nodes left/)
      const placed = schedule(input({ pods: [aPod()], nodes: [aNode('a')], quotas }))
      assert.equal(placed.placements.length, 1)
    })

    test('WNT-4 where labels are not decided, a node counts, until the quota is used up', () => {
      const pools = [aPoolInput(aPool(), typesIn('zone-1', 'zone-2'))]
      const quotas = [aQuota({ nodes: '1' }, inZone('zone-1'))]
      const pods = times(3, () => aPod({ cpu: '15' }))
      const { claims, failures } = schedule(input({ pools, pods, quotas }))
      assert.equal(failures.length, 0)
      const [first, ...others] = claims.toSorted((a, b) => (b.quotas?.length ?? 0) - (a.quotas?.length ?? 0))
      assert.deepEqual(first?.quotas, ['ceiling'])
      assert.equal(others.length, 2)
      for (const claim of others) {
        assert.equal(claim.quotas, undefined)
        const [zone] = requirementsOn(claim, labels.zone)
        assert.ok(
          zone?.operator === 'NotIn' || zone?.values?.includes('zone-1') === false,
          JSON.stringify(zone),
        )
      }
    })

    test('WNT-4 a pod that has to go to the zone of a full quota waits for it; others go elsewhere', () => {
      const pools = [aPoolInput(aPool(), typesIn('zone-1', 'zone-2'))]
      const quotas = [aQuota({ cpu: '1' }, inZone('zone-1'))]
      const there = { nodeSelector: { [labels.zone]: 'zone-1' } }
      const result = schedule(input({ pools, pods: [aPod({ cpu: '1' }, there), aPod({ cpu: '1' })], quotas }))
      assert.equal(result.claims.length, 1)
      assert.equal(result.claims[0]?.quotas, undefined)
      assert.match(reasonsOf(result).join(), /CapacityQuota ceiling has 1 of cpu left/)
    })

    test('WNT-4 two quotas whose selectors overlap both hold', () => {
      const pools = [aPoolInput(aPool(), typesIn('zone-1', 'zone-2', 'zone-3'))]
      const quotas = [
        aQuota({ nodes: '2' }, inZone('zone-1', 'zone-2'), { name: 'low' }),
        aQuota({ nodes: '1' }, inZone('zone-2', 'zone-3'), { name: 'high' }),
      ]
      const pods = times(5, () => aPod({ cpu: '15' }))
      const result = schedule(input({ pools, pods, quotas }))
      assert.ok((largestSum(result, 'low')['nodes'] ?? 0) <= 2)
      assert.ok((largestSum(result, 'high')['nodes'] ?? 0) <= 1)
      assert.ok(result.claims.length >= 2, 'two nodes in zone-1 are within both')
    })

    test('WNT-4 with many open quotas, each has a way out', () => {
      const zones = [1, 2, 3, 4, 5, 6].map((i) => `zone-${i}`)
      const pools = [aPoolInput(aPool(), typesIn(...zones))]
      const quotas = zones.map((zone, i) =>
        aQuota({ nodes: i === 4 ? '0' : '1' }, inZone(zone), { name: `quota-${i}` }),
      )
      const result = schedule(input({ pools, pods: [aPod({ cpu: '1' })], quotas }))
      assert.equal(result.claims.length, 1, reasonsOf(result).join())
    })

    test('WNT-4 a quota of types does not keep others from being launched', () => {
      const selector = { matchLabels: { [labels.instanceType]: 'type-16' } }
      const result = schedule(
        input({ pods: times(2, () => aPod({ cpu: '7' })), quotas: [aQuota({ nodes: '0' }, selector)] }),
      )
      assert.equal(result.failures.length, 0)
      for (const claim of result.claims) {
        assert.ok(!claim.instanceTypes.includes('type-16'))
        assert.equal(claim.quotas, undefined)
      }
    })

    test('WNT-4 labels that no node of the pool will have match nothing, hosts that exist neither', () => {
      for (const selector of [
        { matchLabels: { team: 'shop' } },
        { matchLabels: { [labels.hostname]: 'old' } },
        { matchExpressions: [{ key: labels.os, operator: 'In' as const, values: ['windows'] }] },
      ]) {
        const pool = aPool(
          'default',
          {},
          { requirements: [{ key: labels.os, operator: 'In', values: ['linux'] }] },
        )
        const quotas = [aQuota({ nodes: '0' }, selector)]
        const result = schedule(input({ pools: [aPoolInput(pool)], pods: [aPod()], quotas }))
        assert.equal(result.claims.length, 1, JSON.stringify(selector))
      }
    })

    test('WNT-4 a resource that a node does not have may be used up', () => {
      const quotas = [aQuota({ 'example.com/gpu': '2' }, {}, { usage: { 'example.com/gpu': 8 } })]
      assert.equal(schedule(input({ pods: [aPod()], quotas })).claims.length, 1)
    })

    test('WNT-3 what claims on their way have reserved defers further claims', () => {
      const quotas = [aQuota({ nodes: '3' }, {}, { usage: { nodes: 1 }, reserved: { nodes: 1 } })]
      const result = schedule(input({ pods: times(2, () => aPod({ cpu: '15' })), quotas }))
      assert.equal(result.claims.length, 1)
      assert.deepEqual(
        result.deferred.map(({ because }) => because),
        [{ kind: 'quotaReserved', quota: 'ceiling', limit: 'nodes' }],
      )
    })

    test('WNT-3 at random: no sum exceeds a quota, and without quotas nothing is different', () => {
      for (let seed = 1; seed <= 60; seed++) {
        const between = diceOf(seed)
        const zones = ['zone-1', 'zone-2', 'zone-3']
        const pick = <T>(all: readonly T[]) => all[between(0, all.length - 1)] as T
        const pools = times(between(1, 3), (i): PoolInput => {
          const offered = zones.slice(0, between(1, 3))
          const types = [2, 4, 8].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, offered))
          const metadata = { labels: { team: pick(['shop', 'search']) } }
          const pool = aPool(`pool-${i}`, between(0, 3) === 0 ? { limits: { cpu: '20' } } : {})
          const template = { ...pool.spec.template, metadata }
          return aPoolInput({ ...pool, spec: { ...pool.spec, template } }, types)
        })
        const quotas = times(between(1, 3), (i) =>
          aQuota(
            pick([{ cpu: String(between(0, 30)) }, { nodes: String(between(0, 5)) }]),
            pick<LabelSelector>([
              {},
              inZone(pick(zones)),
              { matchLabels: { team: 'shop' } },
              { matchLabels: { team: 'shop', [labels.zone]: pick(zones) } },
              { matchExpressions: [{ key: labels.instanceType, operator: 'NotIn', values: ['type-2'] }] },
            ]),
            { name: `quota-${i}` },
          ),
        )
        const pods = times(between(1, 40), () =>
          aPod(
            { cpu: pick(['500m', '1', '3']) },
            between(0, 3) === 0 ? { nodeSelector: { [labels.zone]: pick(zones) } } : {},
          ),
        )
        const result = schedule(input({ pools, pods, quotas }))
        assert.equal(result.faults.length, 0)
        for (const { limits, name } of quotas)
          for (const [resource, limit] of Object.entries(limits))
            assert.ok((largestSum(result, name)[resource] ?? 0) <= limit, `seed ${seed}: ${name} ${resource}`)
        const wide = quotas.map((quota) => ({ ...quota, limits: { cpu: 1e9 } }))
        const shown = (given: Partial<SchedulingInput>) =>
          schedule(input({ pools, pods, ...given })).claims.map((claim) => ({
            ...claim,
            largest: undefined,
            quotas: undefined,
            otherQuotas: undefined,
          }))
        const [plain, within] = [shown({}), shown({ quotas: wide })]
        assert.deepEqual(within, plain, `seed ${seed}`)
      }
    })
  })
