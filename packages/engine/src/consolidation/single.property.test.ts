import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import * as fc from 'fast-check'
import { aPod, aType } from '../testing/builders.test-support.ts'
import { consolidate, type Instance, moves } from './consolidation.test-support.ts'

const { TENON_PROPERTY_RUNS: runs, TENON_PROPERTY_SEED: seed } = process.env
const zones = ['zone-1', 'zone-2'] as const
const types = [1, 2, 4, 8].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, [...zones]))

interface Load {
  readonly cpu: number
  readonly zone: (typeof zones)[number] | undefined
}

interface Host {
  readonly type: number
  readonly zone: (typeof zones)[number]
  readonly loads: readonly Load[]
  /** Whether its pods, or another pod on it, go before the second look; `comes` is a node that was not there. */
  readonly fate: 'stays' | 'empties' | 'fills' | 'comes'
}

const load: fc.Arbitrary<Load> = fc.record({
  cpu: fc.constantFrom(200, 400, 900, 1800, 3600),
  zone: fc.constantFrom(undefined, undefined, ...zones),
})
const host: fc.Arbitrary<Host> = fc.record({
  type: fc.integer({ min: 0, max: types.length - 1 }),
  zone: fc.constantFrom(...zones),
  loads: fc.array(load, { minLength: 1, maxLength: 3 }),
  fate: fc.constantFrom('stays', 'stays', 'stays', 'empties', 'fills', 'comes'),
})

/** A node whose pods never ask for more than it has. */
function instanceOf({ type, zone, loads }: Host): Instance {
  const sold = types[type] as (typeof types)[number]
  let free = sold.capacity['cpu'] ?? 0
  const pods = loads.flatMap((each) => {
    if (each.cpu > free) return []
    free -= each.cpu
    const pinned = each.zone === zone ? { nodeSelector: { [labels.zone]: zone } } : {}
    return [aPod({ cpu: `${each.cpu}m` }, pinned)]
  })
  return { type: sold, zone, pods, node: { available: { ...sold.capacity, cpu: free } } }
}

const cpuOf = ({ node }: Instance): number => node?.available?.['cpu'] ?? 0

/** The same with half of its pods, and with a pod more. */
function laterOf({ fate }: Host, before: Instance): Instance {
  const { pods = [] } = before
  if (fate === 'empties') {
    const left = pods.slice(0, Math.floor(pods.length / 2))
    const freed = pods.length - left.length
    const available = { ...before.node?.available, cpu: cpuOf(before) + 200 * freed }
    return { ...before, pods: left, node: { available } }
  }
  if (fate !== 'fills' || cpuOf(before) < 200) return before
  const available = { ...before.node?.available, cpu: cpuOf(before) - 200 }
  return { ...before, pods: [...pods, aPod({ cpu: '200m' })], node: { available } }
}

test('what was found in vain is left out without another result than a look at everything has', () => {
  let skipped = 0
  let found = 0
  fc.assert(
    fc.property(fc.array(host, { minLength: 2, maxLength: 8 }), (hosts) => {
      const all = hosts.map((each, at) => ({ each, name: `node-${at}`, instance: instanceOf(each) }))
      const before = all.filter(({ each }) => each.fate !== 'comes')
      // Nodes that could go are none to ask about, so that nothing is found for those that are left.
      const staying = new Set<string>()
      const asked = (instances: readonly (readonly [string, Instance])[]) =>
        Object.fromEntries(
          instances.map(([name, instance]) => [name, { ...instance, stays: staying.has(name) }]),
        )
      for (;;) {
        const instances = asked(before.map(({ name, instance }) => [name, instance]))
        const { moves: first } = consolidate('single', { types, instances })
        if (first.length === 0) break
        for (const name of first.flatMap(({ candidates }) => candidates)) staying.add(name)
      }
      const later = all.map((one) => ({ ...one, now: laterOf(one.each, one.instance) }))
      const instances = asked(later.map(({ name, now }) => [name, now]))
      const isNew = ({ each }: (typeof later)[number]) => each.fate === 'comes'
      const unchanged = later.filter((one) => !isNew(one) && one.now === one.instance).map(({ name }) => name)
      const roomier = later
        .filter((one) => isNew(one) || cpuOf(one.now) > cpuOf(one.instance))
        .map(({ name }) => name)
      const whole = consolidate('single', { types, instances })
      const rest = consolidate('single', { types, instances, unchanged, settled: unchanged, roomier })
      assert.deepEqual(moves(rest), moves(whole))
      skipped += whole.examined - rest.examined
      found += whole.moves.length
    }),
    { numRuns: Number(runs ?? 1500), ...(seed !== undefined && { seed: Number(seed) }) },
  )
  assert.ok(skipped > 100 && found > 50, `${skipped} nodes skipped, ${found} moves`)
})
