import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeClaim } from '@tenon/api'
import type { JournalEntry } from '@tenon/operator'
import * as fc from 'fast-check'
import { costDimensions, type CostGroup, costReport } from './cost.ts'
import type { PricedInstance, PricedPod } from './priced.ts'
import { roundedParts } from './rounding.ts'
import { spentReport } from './spent.ts'

const pod = (namespace: string, name: string, cpu: number, memory: number): PricedPod => ({
  namespace,
  name,
  owner: { kind: 'Deployment', name },
  requests: { cpu, memory },
})

/** Two cores and 2 GB for 0.20, half of it for each. */
const web: PricedInstance = {
  name: 'n1',
  nodePool: 'web',
  type: 'small',
  zone: 'z1',
  pricePerHour: 0.2,
  allocatable: { cpu: 2000, memory: 2e9, pods: 110, 'ephemeral-storage': 5e10 },
  pods: [pod('shop', 'front', 1000, 1e9), pod('shop', 'cart', 500, 0), pod('jobs', 'mail', 0, 5e8)],
}

const group = (name: string | undefined, values: Partial<CostGroup>): CostGroup => ({
  ...(name !== undefined && { name }),
  instances: 0,
  pods: 0,
  requestedPerHour: 0,
  idlePerHour: 0,
  unpriced: 0,
  ...values,
})

const near = (actual: number, expected: number) => {
  assert.ok(Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`)
}

test('EXP-27 a namespace pays for what its pods ask for, and what nobody asks for is apart', () => {
  const report = costReport([web], 'namespace')
  // front takes half of both, cart a quarter of the cores, mail a quarter of the memory.
  near(report.groups[0]?.requestedPerHour ?? 0, 0.1 + 0.025)
  near(report.groups[1]?.requestedPerHour ?? 0, 0.025)
  near(report.idlePerHour, 0.05)
  assert.deepEqual(
    report.groups.map(({ name, pods }) => [name, pods]),
    [
      ['shop', 2],
      ['jobs', 1],
    ],
  )
  assert.equal(report.totalPerHour, 0.2)
})

test('EXP-27 an unknown price is counted and named, and is never 0', () => {
  const unknown: PricedInstance = {
    name: 'n2',
    nodePool: 'web',
    type: 'odd',
    pricePerHour: undefined,
    allocatable: { cpu: 1000, memory: 1e9 },
    pods: [pod('shop', 'front', 100, 1e8)],
  }
  const byPool = costReport([web, unknown], 'nodepool')
  assert.equal(byPool.groups[0]?.unpriced, 1)
  assert.deepEqual(byPool.unpriced, [{ name: 'n2', type: 'odd' }])
  assert.equal(byPool.totalPerHour, 0.2)
  assert.equal(costReport([web, unknown], 'namespace').groups[0]?.unpriced, 1)
  assert.deepEqual(costReport([unknown], 'zone').groups, [
    group(undefined, { instances: 1, pods: 1, unpriced: 1 }),
  ])
})

test('EXP-27 pods that ask for more than there is share all of it', () => {
  const full = { ...web, pods: [pod('a', 'x', 3000, 0), pod('b', 'y', 1000, 0)] }
  const report = costReport([full], 'namespace')
  near(report.groups[0]?.requestedPerHour ?? 0, 0.075)
  near(report.groups[1]?.requestedPerHour ?? 0, 0.025)
  near(report.idlePerHour, 0.1)
})

const amount = fc.integer({ min: 0, max: 8000 })
const aPod: fc.Arbitrary<PricedPod> = fc
  .record({
    namespace: fc.constantFrom('a', 'b', 'c'),
    name: fc.constantFrom('x', 'y'),
    cpu: amount,
    memory: amount,
    gpu: fc.integer({ min: 0, max: 3 }),
  })
  .map(({ namespace, name, cpu, memory, gpu }) => ({
    namespace,
    name,
    owner: { kind: 'StatefulSet', name },
    requests: { cpu, memory, 'nvidia.com/gpu': gpu },
  }))
const anInstance: fc.Arbitrary<PricedInstance> = fc.record({
  name: fc.uuid(),
  nodePool: fc.constantFrom('p', 'q'),
  type: fc.constantFrom('s', 'm', 'l'),
  zone: fc.constantFrom('z1', 'z2'),
  pricePerHour: fc.option(fc.double({ min: 0, max: 40, noNaN: true }), { nil: undefined }),
  allocatable: fc.record({
    cpu: amount,
    memory: amount,
    pods: fc.constant(110),
    'nvidia.com/gpu': fc.integer({ min: 0, max: 2 }),
  }),
  pods: fc.array(aPod, { maxLength: 6 }),
})

/** Another way to the same sums: each resource of each instance by itself, in no groups. */
function oracle(
  instances: readonly PricedInstance[],
  matches: (pod: PricedPod, at: PricedInstance) => boolean,
) {
  let sum = 0
  for (const instance of instances) {
    if (instance.pricePerHour === undefined) continue
    const { cpu = 0, memory = 0, 'nvidia.com/gpu': gpu = 0 } = instance.allocatable
    const sold = [
      ['cpu', cpu],
      ['memory', memory],
      ['nvidia.com/gpu', gpu],
    ] as const
    const there = sold.filter(([, has]) => has > 0)
    for (const each of instance.pods) {
      if (!matches(each, instance)) continue
      for (const [name, has] of there) {
        const all = instance.pods.reduce((total, { requests }) => total + (requests[name] ?? 0), 0)
        sum += (instance.pricePerHour * (each.requests[name] ?? 0)) / Math.max(has, all) / there.length
      }
    }
  }
  return sum
}

test('EXP-27 parts and idle add up to the total within a cent, and each part is what a slow count finds', () => {
  fc.assert(
    fc.property(
      fc.array(anInstance, { maxLength: 12 }),
      fc.constantFrom(...costDimensions),
      (instances, by) => {
        const report = costReport(instances, by)
        const parts = report.groups.reduce((sum, each) => sum + each.requestedPerHour + each.idlePerHour, 0)
        const known = instances.filter(({ pricePerHour }) => pricePerHour !== undefined)
        near(
          report.totalPerHour,
          known.reduce((sum, { pricePerHour }) => sum + (pricePerHour ?? 0), 0),
        )
        assert.ok(Math.abs(parts + report.idlePerHour - report.totalPerHour) < 1e-6)
        assert.equal(report.unpriced.length, instances.length - known.length)
        for (const { name, requestedPerHour, idlePerHour, pods, unpriced } of report.groups) {
          assert.ok(requestedPerHour >= 0 && idlePerHour >= 0)
          const matches = (each: PricedPod, at: PricedInstance) =>
            ({
              nodepool: at.nodePool,
              type: at.type,
              zone: at.zone,
              namespace: each.namespace,
              owner: `${each.namespace}/statefulset/${each.name}`,
            })[by] === name
          assert.ok(Math.abs(oracle(instances, matches) - requestedPerHour) < 1e-6)
          const own = instances.flatMap((at) => at.pods.filter((each) => matches(each, at)))
          assert.equal(pods, own.length)
          if (requestedPerHour + idlePerHour === 0 && by === 'nodepool')
            assert.ok(unpriced > 0 || instances.some((at) => at.nodePool === name && at.pricePerHour === 0))
        }
      },
    ),
    { numRuns: 400 },
  )
})

test('EXP-27 rounded parts add up to the rounded total, and none is off by a unit', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1000, noNaN: true }), { minLength: 1, maxLength: 30 }),
      (parts) => {
        const total = parts.reduce((sum, part) => sum + part, 0)
        const rounded = roundedParts(parts, total, 2)
        const cents = rounded.parts.map((part) => Math.round(part * 100))
        assert.equal(
          cents.reduce((sum, cent) => sum + cent, 0),
          Math.round(rounded.total * 100),
        )
        for (const [at, part] of rounded.parts.entries())
          assert.ok(Math.abs(part - (parts[at] ?? 0)) < 0.01 + 1e-9)
      },
    ),
  )
})

const hourMs = 3_600_000
const at = (hour: number) => new Date(Math.round(hour * hourMs)).toISOString()

function claimed(name: string, fromHour: number): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, labels: { 'karpenter.sh/nodepool': 'web' }, creationTimestamp: at(fromHour) },
    spec: { nodeClassRef: { group: 'g', kind: 'k', name: 'c' }, requirements: [] },
    status: {
      providerID: `x://${name}`,
      conditions: [
        {
          type: 'Launched',
          status: 'True',
          reason: 'Launched',
          message: '',
          lastTransitionTime: at(fromHour),
        },
      ],
    },
  }
}

const entry = (
  kind: JournalEntry['kind'],
  hour: number,
  name: string,
  pricePerHour?: JournalEntry['pricePerHour'],
): JournalEntry => ({
  id: `${kind}-${name}`,
  at: at(hour),
  kind,
  reason: 'R',
  message: 'm',
  nodePool: 'web',
  nodeClaims: [name],
  nodes: [],
  ...(pricePerHour && { pricePerHour }),
})

test('EXP-27 --since adds up what instances have cost from their launch to their end', () => {
  const report = spentReport(
    [
      { claim: claimed('here', 20), pricePerHour: 0.5 },
      { claim: claimed('always', 0), pricePerHour: 0.25 },
      { claim: claimed('dear', 22), pricePerHour: undefined },
    ],
    [
      entry('removed', 14, 'old'),
      entry('removal', 13, 'old', { before: 2, after: 0 }),
      entry('launch', 11, 'never', { before: 0, after: 7 }),
      entry('failure', 11, 'never'),
      entry('removed', 12, 'never'),
      entry('launched', 12, 'brief', { before: 0, after: 1 }),
      entry('removed', 13, 'brief'),
      entry('removed', 15, 'odd'),
      { ...entry('removed', 16, 'seen', { before: 9 }), observed: true },
    ],
    { fromMs: 10 * hourMs, toMs: 24 * hourMs },
  )
  // here 4 h, always 14 h, old 4 h, brief 1 h; dear and odd are not known.
  near(report.spent, 4 * 0.5 + 14 * 0.25 + 4 * 2 + 1)
  near(report.groups[0]?.instanceHours ?? 0, 4 + 14 + 4 + 1 + 2 + 5)
  assert.deepEqual(report.unpriced, ['dear', 'odd'])
  assert.equal(report.journalFromMs, 11 * hourMs)
})

test('EXP-27 --since finds what a minute-by-minute count finds', () => {
  const life = fc.record({
    from: fc.integer({ min: -300, max: 600 }),
    minutes: fc.integer({ min: 1, max: 400 }),
    price: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.array(life, { maxLength: 15 }), (lives) => {
      const now = 600
      const minuteMs = 60_000
      const present = lives.flatMap(({ from, minutes, price }, i) =>
        from <= now && from + minutes > now
          ? [{ claim: claimed(`c${i}`, from / 60), pricePerHour: price }]
          : [],
      )
      const entries = lives.flatMap(({ from, minutes, price }, i) => [
        ...(from >= 0 && from <= now
          ? [entry('launched', from / 60, `c${i}`, price === undefined ? undefined : { after: price })]
          : []),
        ...(from + minutes >= 0 && from + minutes <= now
          ? [
              entry('removal', (from + minutes) / 60, `c${i}`, price === undefined ? {} : { before: price }),
              entry('removed', (from + minutes) / 60, `c${i}`),
            ]
          : []),
      ])
      let [spent, instanceMinutes] = [0, 0]
      for (let minute = 0; minute < now; minute++)
        for (const { from, minutes, price = 0 } of lives)
          if (minute >= from && minute < from + minutes) {
            spent += price / 60
            instanceMinutes++
          }
      const report = spentReport(present, entries.toReversed(), { fromMs: 0, toMs: now * minuteMs })
      assert.ok(Math.abs(report.spent - spent) < 1e-6)
      const hours = report.groups.reduce((sum, { instanceHours }) => sum + instanceHours, 0)
      assert.ok(Math.abs(hours * 60 - instanceMinutes) < 1e-3)
    }),
    { numRuns: 300 },
  )
})
