import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from 'fast-check'
import { schedule } from '../../scheduling/schedule.ts'
import { type InstanceType, labels, type Offering } from '@tenon/api'
import type { PoolInput, SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { cluster } from './arbitrary-clusters.test-support.ts'
import { type GarbageCase, garbageIn } from './arbitrary-garbage.test-support.ts'
import type { Profile } from './arbitrary-pods.test-support.ts'
import { endStateOf } from './end-state.test-support.ts'
import { priceOfFulfilled, withoutAnyPreference } from './preferences.test-support.ts'
import { violationsOf } from './checker.test-support.ts'
import { smallest } from './smallest.test-support.ts'

/**
 * `TENON_PROPERTY_RUNS` replaces the number of cases of each property, or multiplies it if it is
 * written `x10`; `TENON_PROPERTY_SEED` chooses other cases, and replays a failure.
 */
function parameters(numRuns: number): { seed: number; numRuns: number } {
  const { TENON_PROPERTY_RUNS: runs = '', TENON_PROPERTY_SEED: seed = '' } = process.env
  const wanted = runs.startsWith('x') ? numRuns * Number(runs.slice(1)) : Number(runs || numRuns)
  return { seed: Number(seed || 20_261_121), numRuns: wanted }
}

/**
 * Runs `judge` on random cases; it returns what is wrong.
 * @param simplest makes a failing case smaller than its generator can.
 */
function holds<T>(
  cases: fc.Arbitrary<T>,
  numRuns: number,
  judge: (given: T) => readonly string[],
  simplest: (given: T) => T = (given) => given,
): void {
  const property = fc.property(cases, (given) => {
    const wrong = judge(given)
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
  })
  const run = fc.check(property, parameters(numRuns))
  if (!run.failed) return
  const replay = `TENON_PROPERTY_SEED=${run.seed} TENON_PROPERTY_RUNS=${run.numRuns}`
  const [found] = run.counterexample ?? []
  assert.fail(
    `${run.errorInstance instanceof Error ? run.errorInstance.message : 'failed'}\n` +
      `replay with ${replay}\nsmallest case: ${fc.stringify(found === undefined ? found : simplest(found))}`,
  )
}

/** That the checker accepts every decision. */
function accepted(clusters: fc.Arbitrary<SchedulingInput>, numRuns: number): void {
  const judged = (input: SchedulingInput) => violationsOf(input, schedule(input))
  const rule = (violation: string) => violation.replaceAll(/\S*[\d/]\S*/g, '')
  holds(clusters, numRuns, judged, (given) => {
    const rules = new Set(judged(given).map(rule))
    return smallest(given, (less) => judged(less).some((violation) => rules.has(rule(violation))), 2000)
  })
}

const plain: Profile = { topology: false, volumes: false, contradictions: false }
const topology: Profile = { ...plain, topology: true }
const volumes: Profile = { ...topology, volumes: true }

/** The decision by names, for comparison. */
function named(result: SchedulingResult): unknown {
  return {
    claims: result.claims.map(({ pods, pool, ...claim }) => ({
      ...claim,
      pool: pool.metadata.name,
      pods: pods.map((pod) => pod.metadata.uid ?? '').toSorted((a, b) => (a < b ? -1 : 1)),
    })),
    placements: result.placements.map(({ pod, node }) => `${pod.metadata.uid} ${node}`).toSorted(),
    failures: result.failures.map(({ pod, reason }) => `${pod.metadata.uid} ${reason.kind}`).toSorted(),
    undecided: result.undecided.map((pod) => pod.metadata.uid),
    prices: [result.pricePerHour, result.firstFitPricePerHour],
  }
}

const anyOrder = <T>(list: readonly T[]): fc.Arbitrary<readonly T[]> =>
  fc.shuffledSubarray([...list], { minLength: list.length })

/** The same input with every list and map in another order. */
function reordered(input: SchedulingInput): fc.Arbitrary<SchedulingInput> {
  return fc
    .record({
      pods: anyOrder(input.pods),
      nodes: anyOrder(input.nodes),
      daemons: anyOrder(input.daemons),
      bound: anyOrder(input.topology.pods),
      hosts: anyOrder([...input.topology.nodes]),
      pools: anyOrder(input.pools),
      types: fc.tuple(...input.pools.map((pool) => anyOrder(pool.instanceTypes))),
    })
    .map(({ pods, nodes, daemons, bound, hosts, pools, types }) => ({
      ...input,
      pods,
      nodes,
      daemons,
      pools: pools.map((pool) => ({ ...pool, instanceTypes: types[input.pools.indexOf(pool)] ?? [] })),
      topology: { ...input.topology, pods: bound, nodes: new Map(hosts) },
    }))
}

/** Freezes objects and lists in place, all the way down. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (value instanceof Map) for (const each of value.values()) frozen(each)
  else for (const each of Object.values(value)) frozen(each)
  return value instanceof Map || value instanceof Set ? value : Object.freeze(value)
}

/** Zones and capacity types under each other's names. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['zone-1', 'zone-3'],
  ['zone-2', 'zone-1'],
  ['zone-3', 'zone-2'],
  ['spot', 'on-demand'],
  ['on-demand', 'spot'],
])

/** The same with every text replaced that has another name. */
function renamed<T>(value: T): T
function renamed(value: unknown): unknown {
  if (typeof value === 'string') return otherNames.get(value) ?? value
  if (Array.isArray(value)) return value.map((each) => renamed<unknown>(each))
  if (value instanceof Map) return new Map([...value].map(([key, each]) => [key, renamed<unknown>(each)]))
  if (value instanceof Set || typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, renamed<unknown>(each)]))
}

function soldInOneZone(pool: PoolInput): PoolInput {
  const isThere = ({ requirements }: Offering) =>
    requirements.some(({ key, values }) => key === labels.zone && values?.[0] === 'zone-1')
  const sold = ({ offerings }: InstanceType) =>
    offerings.map((each) => ({ ...each, available: each.available && isThere(each) }))
  return { ...pool, instanceTypes: pool.instanceTypes.map((type) => ({ ...type, offerings: sold(type) })) }
}

describe('random clusters', () => {
  test('the checker finds no violation without rules among pods', () => {
    accepted(cluster(plain), 500)
  })

  test('the checker finds no violation with rules among pods', () => {
    accepted(cluster(topology), 700)
  })

  test('the checker finds no violation with volumes, reservations, and in simulations for disruption', () => {
    accepted(cluster(volumes), 200)
  })

  const improved = (profile: Profile, improvement: 'planned' | 'free') =>
    cluster(profile).map((input) => ({ ...input, policy: { ...input.policy, improvement } }))

  test('the checker finds no violation with planned improvement, and no higher price', () => {
    accepted(improved(topology, 'planned'), 100)
    accepted(improved(plain, 'planned'), 100)
  })

  test('the checker finds no violation with improvement for free placement, and hardly a higher price', () => {
    accepted(improved(topology, 'free'), 50)
    accepted(improved(plain, 'free'), 100)
  })

  test('the checker finds no violation where a pod contradicts itself on a label', () => {
    accepted(cluster({ ...plain, contradictions: true }), 150)
  })

  test('RPB-52 what a plan places is bound, or is placed anew and bound after one or two more decisions', () => {
    let placed = 0
    let pending = 0
    holds(cluster(topology), 150, (input) => {
      let state = input
      for (let decisions = 1; ; decisions++) {
        const result = schedule(state)
        const end = endStateOf(state, result)
        if (decisions === 1) {
          placed += result.placements.length + result.claims.flatMap(({ pods }) => pods).length
          pending += end.pending.length
        }
        if (end.pending.length === 0) return []
        if (decisions === 3)
          return end.pending.map((pod) => `${pod.metadata.name} is pending after ${decisions} decisions`)
        state = end.next
      }
    })
    assert.ok(pending / placed < 0.02, `${pending} of ${placed} pods are pending after the first decision`)
  })

  test('RPB-53 preferences cost no more than the nodes that fulfil them', () => {
    const inOneZone = cluster(topology).map((input) => ({ ...input, pools: input.pools.map(soldInOneZone) }))
    holds(fc.oneof(cluster(topology), inOneZone), 200, (input) => {
      const wishing = schedule(input)
      const indifferent = schedule(withoutAnyPreference(input))
      if (wishing.failures.length !== indifferent.failures.length) return []
      const rise = wishing.pricePerHour - indifferent.pricePerHour
      const fulfilled = priceOfFulfilled(input, wishing)
      return rise > fulfilled + 1e-9 ? [`${rise} more for nodes of ${fulfilled} that fulfil preferences`] : []
    })
  })

  test('RPT-45 what zones and capacity types are called changes neither placements nor the price', () => {
    const figures = ({ failures, pricePerHour }: SchedulingResult) =>
      `${failures.length} failures, ${pricePerHour.toFixed(6)} per hour`
    for (const improvement of [undefined, 'planned'] as const)
      holds(cluster(topology), 150, (input) => {
        const policy = { ...input.policy, ...(improvement && { improvement }) }
        const own = figures(schedule({ ...input, policy }))
        const other = figures(schedule({ ...renamed(input), policy }))
        return own === other ? [] : [`${own}; under other names ${other}`]
      })
  })

  test('the order of pods, nodes, pools, types and daemons does not matter', () => {
    const pairs = cluster(topology).chain((input) => fc.tuple(fc.constant(input), reordered(input)))
    holds(pairs, 150, ([one, other]) => {
      const [expected, found] = [named(schedule(one)), named(schedule(other))].map((each) =>
        JSON.stringify(each, null, 1),
      )
      return expected === found ? [] : [`${expected}\ndiffers from\n${found}`]
    })
  })

  test('the input is not changed', () => {
    holds(cluster(volumes), 40, (input) => {
      const before = fc.stringify(input)
      schedule(frozen(input))
      return fc.stringify(input) === before ? [] : ['the input is not what it was']
    })
  })

  test('garbage in pods, pools, types and daemons neither throws nor keeps a sound pod out', () => {
    const soundIsPlaced = ({ input, healthy }: GarbageCase): readonly string[] => {
      const result = schedule(input)
      const placed = [...result.claims.flatMap((claim) => claim.pods), ...result.placements.map((p) => p.pod)]
      return placed.some((pod) => pod.metadata.name === healthy.metadata.name)
        ? []
        : ['the sound pod is not placed']
    }
    holds(garbageIn(cluster(topology)), 150, soundIsPlaced)
    holds(garbageIn(improved(topology, 'planned')), 100, soundIsPlaced)
  })
})
