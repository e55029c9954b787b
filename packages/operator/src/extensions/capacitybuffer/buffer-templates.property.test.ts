/** How many pods a buffer is for, against the formula of the API written down in exact numbers (buffers-and-dra.md 2.3). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import type { CapacityBuffer, PodSpec } from '@tenon/api'
import { bufferReplicas } from './buffer-templates.ts'

/** An amount as text, and in thousandths. */
interface Amount {
  readonly text: string
  readonly milli: bigint
}

const cpu = fc.oneof(
  fc.integer({ min: 0, max: 8000 }).map((n): Amount => ({ text: `${n}m`, milli: BigInt(n) })),
  fc.integer({ min: 0, max: 64 }).map((n): Amount => ({ text: String(n), milli: BigInt(n) * 1000n })),
  fc.integer({ min: 0, max: 40 }).map((n): Amount => ({ text: `${n / 2}`, milli: BigInt(n) * 500n })),
)
const memory = fc.oneof(
  fc
    .integer({ min: 0, max: 4096 })
    .map((n): Amount => ({ text: `${n}Mi`, milli: BigInt(n) * 1024n ** 2n * 1000n })),
  fc
    .integer({ min: 0, max: 64 })
    .map((n): Amount => ({ text: `${n}Gi`, milli: BigInt(n) * 1024n ** 3n * 1000n })),
  fc.integer({ min: 0, max: 4000 }).map((n): Amount => ({ text: `${n}M`, milli: BigInt(n) * 10n ** 9n })),
  fc.integer({ min: 0, max: 9 }).map((n): Amount => ({ text: `${n}e9`, milli: BigInt(n) * 10n ** 12n })),
)
const count = fc
  .integer({ min: 0, max: 16 })
  .map((n): Amount => ({ text: String(n), milli: BigInt(n) * 1000n }))
const names = ['cpu', 'memory', 'example.com/gpu', 'ephemeral-storage'] as const
type Amounts = Readonly<Partial<Record<(typeof names)[number], Amount>>>
const amounts: fc.Arbitrary<Amounts> = fc.record(
  { cpu, memory, 'example.com/gpu': count, 'ephemeral-storage': memory },
  { requiredKeys: [] },
)

interface Container {
  readonly requests: Amounts
  /** An init container that goes on running. */
  readonly stays: boolean
}

const drawn = fc.record(
  {
    replicas: fc.nat({ max: 40 }),
    percentage: fc.nat({ max: 300 }),
    scale: fc.nat({ max: 60 }),
    limits: amounts,
    containers: fc.array(amounts, { minLength: 1, maxLength: 3 }),
    init: fc.array(fc.record({ requests: amounts, stays: fc.boolean() }), { maxLength: 3 }),
    overhead: amounts,
  },
  { requiredKeys: ['containers', 'init'] },
)

const texts = (all: Amounts): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(all).map(([name, { text }]) => [name, text]))
const most = (a: bigint, b: bigint) => (a > b ? a : b)
const of = (all: Amounts | undefined, name: (typeof names)[number]) => all?.[name]?.milli ?? 0n

/** What a pod asks for of a resource, as the scheduler counts. */
function requested(
  containers: readonly Amounts[],
  init: readonly Container[],
  overhead: Amounts | undefined,
  name: (typeof names)[number],
): bigint {
  let staying = 0n
  let peak = 0n
  for (const { requests, stays } of init) {
    const own = of(requests, name)
    if (stays) staying += own
    peak = most(peak, stays ? staying : staying + own)
  }
  const running = containers.reduce((sum, each) => sum + of(each, name), staying)
  return most(running, peak) + of(overhead, name)
}

test('a buffer is for the larger size, as far as limits allow, and for what they allow where it has no size', () => {
  fc.assert(
    fc.property(drawn, ({ replicas, percentage, scale, limits, containers, init, overhead }) => {
      const spec: PodSpec = {
        containers: containers.map((requests, index) => ({
          name: `c${index}`,
          resources: { requests: texts(requests) },
        })),
        initContainers: init.map(({ requests, stays }, index) => ({
          name: `i${index}`,
          resources: { requests: texts(requests) },
          ...(stays && { restartPolicy: 'Always' as const }),
        })),
        ...(overhead && { overhead: texts(overhead) }),
      }
      const buffer: CapacityBuffer['spec'] = {
        ...(replicas !== undefined && { replicas }),
        ...(percentage !== undefined && { percentage }),
        ...(limits && { limits: texts(limits) }),
      }
      const sizes: bigint[] = replicas === undefined ? [] : [BigInt(replicas)]
      if (scale !== undefined && scale > 0 && percentage !== undefined)
        sizes.push((BigInt(scale) * BigInt(percentage) + 99n) / 100n)
      const bounds = names.flatMap((name) => {
        const each = requested(containers, init, overhead, name)
        return limits?.[name] === undefined || each === 0n ? [] : [limits[name].milli / each]
      })
      const least = (all: readonly bigint[]) => all.reduce((a, b) => (a < b ? a : b))
      const size = sizes.reduce(most, 0n)
      const expected = sizes.length > 0 ? least([size, ...bounds]) : bounds.length > 0 ? least(bounds) : 0n
      assert.equal(BigInt(bufferReplicas(buffer, spec, scale)), least([expected, 2n ** 31n - 1n]))
    }),
    { numRuns: 2000 },
  )
})
