import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels } from '@tenon/api'
import { anAppPod, aPod, aType, spreading, times } from '../testing/builders.test-support.ts'
import { consolidate, moves, refusals } from './consolidation.test-support.ts'

const pods = (count: number, cpu: string) => times(count, () => aPod({ cpu }))
const types = [2, 4, 8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4))
const [two, four, eight, sixteen] = types as [InstanceType, InstanceType, InstanceType, InstanceType]

test('nodes whose pods find room on others go together, however many they are', () => {
  const instances = Object.fromEntries(times(10, (i) => [`node-${i}`, { type: four, pods: pods(1, '700m') }]))
  const [move] = consolidate('global', { types, instances }).moves
  assert.equal(move?.candidates.length, 8)
  assert.deepEqual(move.claims, [])
  assert.equal(move.placements.length, 8)
  const staying = new Set(Object.keys(instances).filter((name) => !move.candidates.includes(name)))
  assert.ok(move.placements.every(({ node }) => staying.has(node)))
})

test('one large node gives way to two small ones where that is cheaper', () => {
  const instances = { large: { type: sixteen, pods: pods(5, '1900m') } }
  const [move] = consolidate('global', { types, instances, improvement: 'planned' }).moves
  assert.deepEqual(move?.claims.map(({ instanceTypes }) => instanceTypes[0]).toSorted(), ['type-2', 'type-8'])
  assert.ok(Math.abs(move.savings - 0.3) < 1e-9)
})

test('a budget bounds how many go at once, and says that it did', () => {
  const instances = Object.fromEntries(times(10, (i) => [`node-${i}`, { type: four, pods: pods(1, '700m') }]))
  const result = consolidate('global', { types, instances, budgets: { default: 3 } })
  assert.equal(result.moves[0]?.candidates.length, 3)
  assert.ok(result.isLimitedByBudget)
})

test('RPT-26 a node waits with its replacement while busy nodes have room for all pods of a new one', () => {
  const large = { type: sixteen, pods: pods(2, '1900m'), waitsForBusyNodes: true }
  const busy = (cpu: number) => ({
    type: eight,
    pods: pods(1, `${8 - cpu}`),
    stays: true,
    node: { refusesCandidatePods: true },
  })
  const search = (instances: Parameters<typeof consolidate>[1]['instances']) =>
    consolidate('global', { types, instances, improvement: 'planned' })
  const waiting = search({ large, busy: busy(5) })
  assert.deepEqual([moves(waiting), refusals(waiting)], [[], { large: 'busyNodes' }])
  assert.deepEqual(search({ large, busy: busy(1) }).moves.length, 1)
  assert.deepEqual(search({ large: { ...large, waitsForBusyNodes: false }, busy: busy(5) }).moves.length, 1)
})

test('what would save next to nothing is left alone', () => {
  const story = {
    types,
    instances: { a: { type: two, pods: pods(1, '1900m') }, b: { type: eight, pods: pods(4, '1900m') } },
  }
  assert.deepEqual(consolidate('global', story).moves, [])
})

test('nodes that could go one after the other go together only if rules about pods allow that, too', () => {
  const zones = ['zone-1', 'zone-2']
  const [medium, huge] = [aType('type-4', 4, 16, zones), aType('type-16', 16, 64, zones)]
  const port = { containers: [{ name: 'app', ports: [{ containerPort: 80, hostPort: 8080 }] }] }
  const instances = {
    keeper: { type: huge, zone: 'zone-1', pods: [anAppPod('many', {}, '1')], stays: true },
    // Alone it may go to zone-1, where then one pod of the others is, and two are in zone-2.
    first: { type: medium, zone: 'zone-2', pods: [anAppPod('even', spreading(labels.zone, 'many'))] },
    second: {
      type: medium,
      zone: 'zone-2',
      pods: [anAppPod('many', {}, '1'), anAppPod('many', {}, '1'), anAppPod('port', port, '1')],
    },
  }
  const [move] = consolidate('global', { types: [medium, huge], instances }).moves
  assert.deepEqual(move?.candidates, ['first'])
})

test('what is as it was when nothing was found is packed anew only together with what is not', () => {
  const zones = ['zone-1', 'zone-2']
  const [small, medium, huge] = [2, 8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, zones))
  const pinned = (zone: string) => [anAppPod(zone, { nodeSelector: { [labels.zone]: zone } }, '1900m')]
  const instances = {
    a: { type: medium as InstanceType, zone: 'zone-1', pods: pinned('zone-1') },
    b: { type: huge as InstanceType, zone: 'zone-2', pods: pinned('zone-2') },
  }
  const goes = (unchanged: readonly string[], budget: number) =>
    consolidate('global', {
      types: [small, medium, huge] as InstanceType[],
      instances,
      unchanged,
      budgets: { default: budget },
    }).moves[0]?.candidates.toSorted()
  assert.deepEqual(goes([], 1), ['b'])
  assert.deepEqual(goes(['b'], 1), ['a'])
  assert.deepEqual(goes(['b'], 2), ['a', 'b'])
  assert.equal(goes(['a', 'b'], 2), undefined)
  const limited = { types: [small, medium, huge] as InstanceType[], instances, budgets: { default: 1 } }
  assert.ok(consolidate('global', { ...limited, unchanged: ['a', 'b'] }).isLimitedByBudget)
})

test('what is as it was is looked at alone only where its pods fit on nodes that have more room', () => {
  const zones = ['zone-1', 'zone-2']
  const [small, medium, huge] = [2, 8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, zones))
  const pinned = (zone: string, count: number) =>
    times(count, () => anAppPod(zone, { nodeSelector: { [labels.zone]: zone } }, '1900m'))
  const stays = (zone: string, count: number) => ({
    type: medium as InstanceType,
    zone,
    pods: pinned(zone, count),
    stays: true,
  })
  const instances = {
    large: { type: huge as InstanceType, zone: 'zone-2', pods: pinned('zone-2', 2) },
    // With pods of several zones there is no cheapest state of all.
    small: { type: small as InstanceType, zone: 'zone-1', pods: pinned('zone-1', 1) },
    roomy: stays('zone-2', 3),
    elsewhere: stays('zone-1', 4),
  }
  const goes = (story: { readonly settled?: readonly string[]; readonly roomier?: readonly string[] }) =>
    consolidate('global', { types: [small, medium, huge] as InstanceType[], instances, ...story }).moves
      .length
  assert.equal(goes({}), 1)
  assert.equal(goes({ settled: ['large'] }), 1)
  assert.equal(goes({ settled: ['large'], roomier: ['roomy'] }), 1)
  assert.equal(goes({ settled: ['large'], roomier: ['elsewhere', 'large'] }), 0)
  assert.equal(goes({ settled: [], roomier: [] }), 1)
})

test('about whose pods more than amounts decides is looked at whatever room there is', () => {
  const port = { containers: [{ name: 'app', ports: [{ containerPort: 80, hostPort: 8080 }] }] }
  const instances = { large: { type: sixteen, pods: [anAppPod('port', port, '1')] } }
  const story = { types, instances, settled: ['large'], roomier: [] }
  assert.equal(moves(consolidate('global', story)).length, 1)
})

test('of a Balanced NodePool each node is looked at: what moves are weighed against may have changed', () => {
  const zones = ['zone-1', 'zone-2']
  const sold = [2, 8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, zones))
  const [small, , huge] = sold as [InstanceType, InstanceType, InstanceType]
  const pinned = (zone: string, count: number) =>
    times(count, () => anAppPod(zone, { nodeSelector: { [labels.zone]: zone } }, '1900m'))
  const found = (policy: 'Balanced' | 'WhenEmptyOrUnderutilized') =>
    consolidate('global', {
      types: sold,
      instances: {
        large: { type: huge, zone: 'zone-2', pods: pinned('zone-2', 2), policy },
        small: { type: small, zone: 'zone-1', pods: pinned('zone-1', 1), policy },
      },
      settled: ['large', 'small'],
      roomier: [],
      totals: { default: { cost: 1, disruption: 100 } },
    }).moves.length
  assert.equal(found('WhenEmptyOrUnderutilized'), 0)
  assert.equal(found('Balanced'), 1)
})

test('large nodes that each give way to smaller ones go at once, within the budget', () => {
  const zones = ['zone-1', 'zone-2', 'zone-3']
  const sold = [10, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, zones))
  // No node has room for what is on another one.
  const pinned = (zone: string) => [anAppPod(zone, { nodeSelector: { [labels.zone]: zone } }, '9500m')]
  // With pods of several zones there is no cheapest state of all.
  const instances = Object.fromEntries(
    // More than are packed again as one group.
    times(24, (i) => {
      const zone = zones[i % 3] as string
      return [`node-${i}`, { type: sold[1] as InstanceType, zone, pods: pinned(zone) }]
    }),
  )
  const found = (budget: number) =>
    consolidate('global', { types: sold, instances, budgets: { default: budget } }).moves
  const all = found(1000)
  assert.ok(all.length > 1)
  const gone = all.flatMap(({ candidates }) => candidates)
  assert.equal(new Set(gone).size, gone.length)
  assert.equal(found(1).length, 1)
  const savings = all.map((move) => move.savings)
  assert.deepEqual(
    savings,
    savings.toSorted((a, b) => b - a),
  )
})

test('groups that were looked at for nothing are not packed again as long as their nodes are as they were', () => {
  const zones = ['zone-1', 'zone-2']
  const [medium, huge] = [8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, zones))
  const pinned = (zone: string, count: number) =>
    times(count, () => anAppPod(zone, { nodeSelector: { [labels.zone]: zone } }, '1900m'))
  const of = (type: InstanceType | undefined, zone: string, count: number) => ({
    type: type as InstanceType,
    zone,
    pods: pinned(zone, count),
  })
  const instances = {
    a: of(medium, 'zone-1', 4),
    b: of(medium, 'zone-1', 4),
    c: of(medium, 'zone-2', 4),
    // One more pod fits here, which leaves the others as dear as before.
    roomy: { ...of(medium, 'zone-1', 3), stays: true },
  }
  const examined = (story: Partial<Parameters<typeof consolidate>[1]>) =>
    consolidate('global', { types: [medium, huge] as InstanceType[], instances, ...story })
  const names = ['a', 'b', 'c']
  const first = examined({})
  assert.deepEqual(first.moves, [])
  const failedGroups = first.groups ?? new Map()
  assert.ok(failedGroups.size > 0)
  const unknown = examined({ settled: names, roomier: [] }).examined
  const known = examined({ settled: names, roomier: [], failedGroups }).examined
  assert.ok(known < unknown, `${known} of ${unknown}`)
  const changed = examined({ settled: names.slice(1), roomier: [], failedGroups }).examined
  assert.ok(known < changed, `${known}, ${changed}`)
  const roomier = examined({ settled: names, roomier: ['roomy'], failedGroups }).examined
  assert.ok(known < roomier, `${known}, ${roomier}`)
})
