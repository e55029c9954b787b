import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import {
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  soldAs,
  times,
} from '../testing/builders.test-support.ts'
import { consolidate, type Instance } from './consolidation.test-support.ts'

const types = [1, 2, 4, 8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4))
const [, , , , sixteen] = types as [unknown, unknown, unknown, unknown, Instance['type']]
const pods = (count: number, cpu: string, memory = '1Gi', app = cpu) =>
  times(count, () => {
    const pod = aPod({ cpu, memory })
    return { ...pod, metadata: { ...pod.metadata, labels: { app } } }
  })

/** Nodes of 16 CPU, of which each uses 4: in all as much as four of them hold. */
function halfEmpty(count: number): Readonly<Record<string, Instance>> {
  return Object.fromEntries(
    times(count, (i) => [
      `node-${String(i).padStart(2, '0')}`,
      {
        type: sixteen,
        pods: [...pods(1, '2500m'), ...pods(1, '1500m')],
      },
    ]),
  )
}

test('a whole cluster goes to its cheapest state in one move, and large pods move first', () => {
  const instances = halfEmpty(16)
  const [move] = consolidate('global', { types, instances, improvement: 'planned' }).moves
  assert.ok(move)
  const before = 16 * 0.8
  const after = before - move.savings
  // 64 CPU are asked for; what was paid per CPU bounds the price from below.
  assert.ok(after <= (before / 4) * 1.07, `${after}`)
  const { waves = [] } = move
  const sizeOf = (wave: (typeof waves)[number]) =>
    wave.map(({ spec }) => spec.containers[0]?.resources?.requests?.['cpu'])
  assert.deepEqual(
    waves.map((wave) => [...new Set(sizeOf(wave))].join()),
    ['2500m', '1500m'],
  )
  assert.equal(waves.flat().length, 2 * move.candidates.length)
})

test('nodes are not exchanged again where none has changed since nothing was found, and are where one has', () => {
  const [, , , eight] = types as [unknown, unknown, unknown, Instance['type']]
  // Two of these pods do not fit a node, and three fit one of 16 CPU.
  const instances = Object.fromEntries(
    times(9, (i) => [`node-${i}`, { type: eight, pods: pods(1, '5') } satisfies Instance]),
  )
  const found = (settled: readonly string[]) =>
    consolidate('global', { types, instances, improvement: 'planned', settled }).moves.length
  assert.equal(found([]), 1)
  assert.equal(found(Object.keys(instances)), 0)
  assert.equal(found(Object.keys(instances).slice(1)), 1)
})

test('the cheapest state is left as it is', () => {
  const instances = halfEmpty(16)
  const [move] = consolidate('global', { types, instances, improvement: 'planned' }).moves
  assert.ok(move)
  const at = new Map(move.placements.map(({ pod, node }) => [pod.metadata.uid, node]))
  const moving = Object.values(instances).flatMap(({ pods: all = [] }) => all)
  const staying = Object.entries(instances).filter(([name]) => !move.candidates.includes(name))
  const next = Object.fromEntries([
    ...staying.map(([name, instance]) => [
      name,
      {
        ...instance,
        pods: [...(instance.pods ?? []), ...moving.filter((pod) => at.get(pod.metadata.uid) === name)],
      },
    ]),
    ...move.claims.map(({ instanceTypes, pods: all }, index) => [
      `new-${index}`,
      { type: types.find(({ name }) => name === instanceTypes[0]) ?? sixteen, pods: all },
    ]),
  ]) as Readonly<Record<string, Instance>>
  assert.deepEqual(consolidate('global', { types, instances: next, improvement: 'planned' }).moves, [])
})

test('two searches in the same cluster agree', () => {
  const story = { types, instances: halfEmpty(12), improvement: 'planned' as const }
  assert.deepEqual(consolidate('global', story), consolidate('global', story))
})

test('pods that must not go to a node are not counted upon to go there', () => {
  const tied = aPod({ cpu: '1', memory: '1Gi' }, { nodeSelector: { [labels.zone]: 'zone-1' } })
  const instances: Readonly<Record<string, Instance>> = {
    a: { type: sixteen, zone: 'zone-1', pods: [tied] },
    b: { type: sixteen, zone: 'zone-2', pods: pods(10, '1') },
  }
  for (const { candidates, placements } of consolidate('global', { types, instances }).moves)
    assert.ok(!candidates.includes('a') || !placements.some(({ node }) => node === 'b'))
})

test('what is launched keeps the limits of its NodePool, though first fit would launch in two', () => {
  const small = soldAs(aType('type-2', 2, 4), anOffering('on-demand', 0.03))
  const medium = aType('type-4', 4, 16)
  const pool = (name: string, cores: string) =>
    aPoolInput(aPool(name, { limits: { cpu: cores } }), [small, medium])
  const story = {
    instances: {
      a: { type: medium, pods: pods(2, '1500m') },
      b: { type: medium, pods: pods(2, '1500m'), stays: true },
    },
    pools: [pool('default', '10'), pool('other', '2')],
  }
  const [move] = consolidate('global', { ...story, improvement: 'planned' }).moves
  const inOther = move?.claims.filter(({ nodePool }) => nodePool === 'other') ?? []
  assert.ok(
    move !== undefined && inOther.length <= 1,
    `${inOther.length} instances of 2 CPU where 2 CPU are allowed`,
  )
})
