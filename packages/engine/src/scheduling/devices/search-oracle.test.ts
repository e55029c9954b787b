/**
 * The search against one that tries everything: on small random sets of devices both find devices for a claim or
 * neither does, and what was given keeps every rule (devices.md 3.11 to 3.14).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Device, DeviceClaim, DeviceSubRequest } from '@tenon/api'
import * as fc from 'fast-check'
import {
  aClaim,
  aClaimingPod,
  aSlice,
  cel,
  devicesInput,
  driver,
} from '../../testing/device-builders.test-support.ts'
import { CompiledDevices } from './device-allocator.ts'
import { DeviceAllocator } from './device-allocator.ts'

const totals = { a: 4, b: 5 }

/** What the test knows of a device. */
interface Plain {
  readonly name: string
  readonly kind: string
  readonly root: number | undefined
  /** Units that several claims share; undefined for a device that one claim has. */
  readonly units: number | undefined
  readonly uses: Readonly<Record<string, number>>
}

interface PlainWay {
  readonly kind: string | undefined
  readonly count: number | undefined
  readonly units: number | undefined
}

interface PlainClaim {
  readonly requests: readonly (readonly PlainWay[])[]
  readonly rule: 'match' | 'distinct' | undefined
}

/** A device that a claim has: for which request, and of which way. */
interface Given {
  readonly device: string
  readonly request: number
  readonly way: PlainWay
}

const plainDevices: fc.Arbitrary<readonly Plain[]> = fc
  .array(
    fc.record({
      kind: fc.constantFrom('x', 'y'),
      root: fc.option(fc.integer({ min: 0, max: 1 }), { nil: undefined }),
      units: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined, freq: 2 }),
      uses: fc.constantFrom({}, {}, { a: 2 }, { a: 3 }, { b: 2 }, { a: 1, b: 3 }),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((list) => list.map((device, index) => ({ ...device, name: `d${index}` })))

const way: fc.Arbitrary<PlainWay> = fc.record({
  kind: fc.constantFrom(undefined, undefined, 'x', 'y'),
  count: fc.constantFrom(1, 1, 2, undefined),
  units: fc.constantFrom(undefined, undefined, 1, 2),
})

const plainClaim: fc.Arbitrary<PlainClaim> = fc.record({
  requests: fc.array(fc.array(way, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 2 }),
  rule: fc.constantFrom(undefined, undefined, 'match' as const, 'distinct' as const),
})

function suits({ kind, units }: Plain, wanted: PlainWay): boolean {
  if (wanted.kind !== undefined && wanted.kind !== kind) return false
  return wanted.units === undefined || (units !== undefined && units >= wanted.units)
}

/** Whether a claim may have these devices beside what others have. */
function isAllowed(
  devices: readonly Plain[],
  others: readonly Given[],
  own: readonly Given[],
  rule: PlainClaim['rule'],
): boolean {
  const all = [...others, ...own]
  for (const device of devices) {
    const mine = all.filter((each) => each.device === device.name)
    if (device.units === undefined && mine.length > 1) return false
    const units = mine.reduce((sum, { way: { units: some } }) => sum + (some ?? device.units ?? 0), 0)
    if (device.units !== undefined && units > device.units) return false
  }
  const used = devices.filter(({ name }) => all.some(({ device }) => device === name))
  for (const [counter, total] of Object.entries(totals))
    if (used.reduce((sum, { uses }) => sum + (uses[counter] ?? 0), 0) > total) return false
  if (rule === undefined) return true
  const roots = own.map(({ device }) => devices.find(({ name }) => name === device)?.root)
  if (roots.includes(undefined)) return false
  return rule === 'match' ? new Set(roots).size === 1 : new Set(roots).size === roots.length
}

/** Tries every way and every device. */
function isPossible(
  devices: readonly Plain[],
  others: readonly Given[],
  { requests, rule }: PlainClaim,
  own: readonly Given[] = [],
  at = 0,
): boolean {
  const ways = requests[at]
  if (ways === undefined) return isAllowed(devices, others, own, rule)
  return ways.some((wanted) => {
    const suiting = devices.filter((device) => suits(device, wanted)).map(({ name }) => name)
    const choices =
      wanted.count === undefined
        ? suiting.length === 0
          ? []
          : [suiting]
        : Array.from({ length: wanted.count }).reduce<string[][]>(
            (lists) => lists.flatMap((list) => suiting.map((name) => [...list, name])),
            [[]],
          )
    return choices.some((names) =>
      isPossible(
        devices,
        others,
        { requests, rule },
        [...own, ...names.map((device) => ({ device, request: at, way: wanted }))],
        at + 1,
      ),
    )
  })
}

function deviceOf({ name, kind, root, units, uses }: Plain): Device {
  const counters = Object.entries(uses).map(([key, value]) => [key, { value: String(value) }])
  return {
    name,
    attributes: { kind: { string: kind }, ...(root !== undefined && { root: { int: root } }) },
    ...(units !== undefined && {
      allowMultipleAllocations: true,
      capacity: { units: { value: String(units) } },
    }),
    ...(counters.length > 0 && {
      consumesCounters: [{ counterSet: 'set', counters: Object.fromEntries(counters) }],
    }),
  }
}

function claimOf({ requests, rule }: PlainClaim): DeviceClaim {
  const sub = (wanted: PlainWay, index: number): DeviceSubRequest => ({
    name: `w${index}`,
    deviceClassName: 'gpu',
    ...(wanted.kind !== undefined && cel(`device.attributes['${driver}'].kind == '${wanted.kind}'`)),
    ...(wanted.count === undefined ? { allocationMode: 'All' } : { count: wanted.count }),
    ...(wanted.units !== undefined && { capacity: { requests: { units: String(wanted.units) } } }),
  })
  return {
    requests: requests.map((ways, index) => ({ name: `r${index}`, firstAvailable: ways.map(sub) })),
    ...(rule !== undefined && {
      constraints: [
        rule === 'match' ? { matchAttribute: `${driver}/root` } : { distinctAttribute: `${driver}/root` },
      ],
    }),
  }
}

test('the search finds devices exactly where trying everything does, and gives none of them too often', () => {
  fc.assert(
    fc.property(plainDevices, fc.array(plainClaim, { minLength: 1, maxLength: 3 }), (devices, claims) => {
      const counters = Object.entries(totals).map(([key, value]) => [key, { value: String(value) }])
      const local = { nodeName: 'node-1' }
      const slices = [
        aSlice('node-1', devices.map(deviceOf), local, 0, 2),
        aSlice(
          'node-1',
          [],
          { ...local, sharedCounters: [{ name: 'set', counters: Object.fromEntries(counters) }] },
          0,
          2,
        ),
      ]
      const named = Object.fromEntries(claims.map((claim, index) => [`c${index}`, aClaim(claimOf(claim))]))
      const compiled = new CompiledDevices(
        devicesInput({ pods: [[aClaimingPod(), ...Object.keys(named)]], claims: named, slices }),
      )
      const room = new DeviceAllocator(compiled)
      const given: Given[] = []
      for (const [index, claim] of claims.entries()) {
        room.restart()
        const mark = room.mark()
        const question = {
          consumer: {},
          nodeName: 'node-1',
          isStarting: false,
          mayBeUndefined: new Set<string>(),
          requirements: new Map(),
          types: [compiled.none],
        }
        const offer = room.offer([`default/c${index}`], question)
        assert.equal('kind' in offer, !isPossible(devices, given, claim))
        if ('kind' in offer) continue
        const own = [...offer.solutions.values()].flatMap(({ holds }) =>
          holds.map(({ device, request }): Given => {
            const [, at = '', chosen = ''] = /^r(\d+)\/w(\d+)$/.exec(request) ?? []
            return {
              device: device.name,
              request: Number(at),
              way: claim.requests[Number(at)]?.[Number(chosen)] as PlainWay,
            }
          }),
        )
        assert.equal(isAllowed(devices, given, own, claim.rule), true)
        for (const { device, way: wanted } of own)
          assert.equal(suits(devices.find(({ name }) => name === device) as Plain, wanted), true)
        room.take(offer, offer.types)
        // What is taken back can be had again in the same way.
        room.rollback(mark)
        const again = room.offer([`default/c${index}`], question)
        assert.deepEqual(
          'kind' in again
            ? again
            : [...again.solutions.values()].map(({ holds }) => holds.map(({ device }) => device.name)),
          [own.map(({ device }) => device)],
        )
        if (!('kind' in again)) room.take(again, again.types)
        given.push(...own)
      }
    }),
    { numRuns: 1500 },
  )
})
