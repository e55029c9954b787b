/**
 * Groups against a search that tries every place for every member, on small random clusters (gangs.md 7.2): no group
 * is placed in part, every plan holds, and a group of equal members is refused only where no placement exists.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, parseResources, type Pod } from '@tenon/api'
import * as fc from 'fast-check'
import type { PodGroupInput, SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import {
  aNode,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  aType,
  strictPolicy,
  valuesOn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'
import { aGroup } from './groups.test-support.ts'

const zones = ['zone-a', 'zone-b']

interface PlainGroup {
  /** CPUs of each member. */
  readonly members: readonly number[]
  readonly minCount: number
  readonly bound: number
  readonly priority: number
  readonly topology: 'none' | 'free' | 'zone-a' | 'zone-b'
}

interface PlainCluster {
  readonly nodes: readonly { readonly cpu: number; readonly zone: string }[]
  readonly pools: readonly { readonly cpu: number; readonly zone: string; readonly limit: number }[]
  readonly groups: readonly PlainGroup[]
  readonly others: readonly number[]
  readonly improvement: 'none' | 'planned' | 'free'
}

const zone = fc.constantFrom(...zones)
const cpu = fc.integer({ min: 1, max: 4 })

const group = (sizes: fc.Arbitrary<readonly number[]>): fc.Arbitrary<PlainGroup> =>
  fc.record({
    members: sizes,
    minCount: fc.integer({ min: 0, max: 5 }),
    bound: fc.integer({ min: 0, max: 2 }),
    priority: fc.integer({ min: 0, max: 1 }),
    topology: fc.constantFrom('none', 'none', 'free', 'zone-a', 'zone-b'),
  })

const equal = fc
  .tuple(cpu, fc.integer({ min: 1, max: 4 }))
  .map(([size, count]) => Array.from({ length: count }, () => size))
const mixed = fc.array(cpu, { minLength: 1, maxLength: 4 })

const clusters = (sizes: fc.Arbitrary<readonly number[]>): fc.Arbitrary<PlainCluster> =>
  fc.record({
    nodes: fc.array(fc.record({ cpu: fc.integer({ min: 1, max: 6 }), zone }), { maxLength: 3 }),
    pools: fc.array(fc.record({ cpu: fc.constantFrom(2, 4), zone, limit: fc.integer({ min: 0, max: 3 }) }), {
      maxLength: 2,
    }),
    groups: fc.array(group(sizes), { minLength: 1, maxLength: 2 }),
    others: fc.array(cpu, { maxLength: 2 }),
    improvement: fc.constantFrom('none', 'planned', 'free'),
  })

interface Case {
  readonly input: SchedulingInput
  readonly groups: readonly {
    readonly plain: PlainGroup
    readonly input: PodGroupInput
    readonly pods: readonly Pod[]
  }[]
}

function caseOf({ nodes, pools, groups, others, improvement }: PlainCluster): Case {
  const made = groups.map((plain, index) => {
    const pods = plain.members.map((size) => aPod({ cpu: String(size) }))
    const { minCount, bound, priority } = plain
    const topology =
      plain.topology === 'none'
        ? {}
        : { topology: { key: labels.zone, ...(plain.topology !== 'free' && { domain: plain.topology }) } }
    return { plain, pods, input: aGroup(`g${index}`, pods, { minCount, bound, priority, ...topology }) }
  })
  return {
    groups: made,
    input: anInput({
      pods: [...others.map((size) => aPod({ cpu: String(size) })), ...made.flatMap(({ pods }) => pods)],
      nodes: nodes.map((node, index) =>
        aNode(`n${index}`, {
          labels: { [labels.zone]: node.zone },
          available: parseResources({ cpu: String(node.cpu), memory: '64Gi', pods: '110' }),
        }),
      ),
      pools: pools.map((pool, index) =>
        aPoolInput(aPool(`p${index}`, { limits: { nodes: String(pool.limit) } }), [
          aType(`type-${index}`, pool.cpu, 64, [pool.zone]),
        ]),
      ),
      podGroups: made.map(({ input }) => input),
      policy: improvement === 'none' ? strictPolicy : { ...strictPolicy, improvement },
    }),
  }
}

/** Room in CPUs that is left, and where. */
interface Room {
  readonly zone: string
  readonly cpu: number
}

const cpusOf = (pods: readonly Pod[]): number =>
  pods.reduce((sum, { spec }) => sum + Number(spec.containers[0]?.resources?.requests?.['cpu']), 0)

/** What is left once everything that was decided is there: of nodes, of claims, and of nodes not launched. */
function roomLeft({ nodes, pools }: PlainCluster, result: SchedulingResult): readonly Room[] {
  const onNode = (name: string) =>
    cpusOf(result.placements.filter(({ node }) => node === name).map(({ pod }) => pod))
  return [
    ...nodes.map((node, index) => ({ zone: node.zone, cpu: node.cpu - onNode(`n${index}`) })),
    ...pools.flatMap((pool, index) => {
      const claims = result.claims.filter(({ nodePool }) => nodePool === `p${index}`)
      return [
        ...claims.map(({ pods }) => ({ zone: pool.zone, cpu: pool.cpu - cpusOf(pods) })),
        ...Array.from({ length: pool.limit - claims.length }, () => ({ zone: pool.zone, cpu: pool.cpu })),
      ]
    }),
  ]
}

/** Whether `need` of the members have room somewhere, however they are placed. */
function fitsSomehow(members: readonly number[], need: number, rooms: readonly Room[]): boolean {
  if (need <= 0) return true
  const [first, ...rest] = members
  if (first === undefined) return false
  if (members.length > need && fitsSomehow(rest, need, rooms)) return true
  return rooms.some(
    (room, at) =>
      room.cpu >= first && fitsSomehow(rest, need - 1, rooms.with(at, { ...room, cpu: room.cpu - first })),
  )
}

function zoneOf(pod: Pod, plain: PlainCluster, result: SchedulingResult): string | undefined {
  const placement = result.placements.find((each) => each.pod === pod)
  if (placement !== undefined) return plain.nodes[Number(placement.node.slice(1))]?.zone
  const claim = result.claims.find(({ pods }) => pods.includes(pod))
  return claim && valuesOn(claim, labels.zone).join()
}

/** Checks everything that holds for any members. */
function check(plain: PlainCluster): { readonly result: SchedulingResult; readonly given: Case } {
  const given = caseOf(plain)
  const result = schedule(given.input)
  for (const room of roomLeft(plain, result))
    assert.ok(room.cpu >= 0, 'a node holds more than it has room for')
  for (const { plain: wanted, pods, input } of given.groups) {
    const need = Math.max(0, wanted.minCount - wanted.bound)
    const found = pods.flatMap((pod) => zoneOf(pod, plain, result) ?? [])
    assert.ok(found.length === 0 || found.length >= need, `${input.id} has ${found.length} of ${need} places`)
    const outcome = result.podGroups?.find(({ id }) => id === input.id)
    assert.equal(outcome?.kind === 'placed', need === 0 ? outcome?.kind === 'placed' : found.length >= need)
    if (wanted.topology !== 'none') assert.ok(new Set(found).size <= 1, `${input.id} is in several zones`)
    if (zones.includes(wanted.topology)) for (const each of found) assert.equal(each, wanted.topology)
  }
  const told = [result.placements, result.failures].flatMap((list) => list.map(({ pod }) => pod))
  const all = [...told, ...result.claims.flatMap(({ pods }) => pods)]
  assert.equal(all.length, given.input.pods.length)
  assert.equal(new Set(all).size, all.length)
  return { result, given }
}

test('GNG-8 a group of equal members is refused only where no placement of it exists', () => {
  fc.assert(
    fc.property(clusters(equal), (plain) => {
      const { result, given } = check(plain)
      const left = roomLeft(plain, result)
      for (const { plain: wanted, input } of given.groups) {
        if (result.podGroups?.find(({ id }) => id === input.id)?.kind !== 'refused') continue
        const need = Math.max(0, wanted.minCount - wanted.bound)
        if (need === 0) continue
        const open = wanted.topology === 'free' ? zones : [wanted.topology]
        for (const domain of open) {
          const rooms = left.filter((room) => domain === 'none' || room.zone === domain)
          assert.ok(!fitsSomehow(wanted.members, need, rooms), `${input.id} would fit in ${domain}`)
        }
      }
    }),
    { numRuns: 400 },
  )
})

test('GNG-6 a group of mixed members is whole or absent, in one domain, within room and limits', () => {
  fc.assert(
    fc.property(clusters(mixed), (plain) => void check(plain)),
    { numRuns: 400 },
  )
})

test('GNG-6 a group that is refused changes nothing for the others', () => {
  fc.assert(
    fc.property(clusters(mixed), (plain) => {
      const given = caseOf(plain)
      const result = schedule(given.input)
      const gone = new Set(
        given.groups.flatMap(({ input, pods }) =>
          result.podGroups?.find(({ id }) => id === input.id)?.kind === 'refused' ? pods : [],
        ),
      )
      const without = schedule({
        ...given.input,
        pods: given.input.pods.filter((pod) => !gone.has(pod)),
        podGroups:
          given.input.podGroups?.filter(
            ({ members }) => ![...gone].some((pod) => members.includes(pod.metadata.uid ?? '')),
          ) ?? [],
      })
      assert.deepEqual(result.claims, without.claims)
      assert.deepEqual(result.placements, without.placements)
    }),
    { numRuns: 300 },
  )
})

test('GNG-8 the order of pods and groups in the input does not matter', () => {
  fc.assert(
    fc.property(clusters(mixed), (plain) => {
      const { input } = caseOf(plain)
      const result = schedule(input)
      const turned = schedule({
        ...input,
        pods: input.pods.toReversed(),
        podGroups: input.podGroups?.toReversed() ?? [],
      })
      assert.deepEqual(turned.claims, result.claims)
      assert.deepEqual(turned.podGroups, result.podGroups)
    }),
    { numRuns: 200 },
  )
})
