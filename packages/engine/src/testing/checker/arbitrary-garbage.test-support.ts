/** Inputs with fields that no API server would let through, or that a provider got wrong. */
import type { Pod } from '@tenon/api'
import * as fc from 'fast-check'
import type { SchedulingInput } from '../../input/input.ts'
import { aPod, aPool, aPoolInput, aType } from '../builders.test-support.ts'

/** What a field may hold in place of what it should. */
const garbage: fc.Arbitrary<unknown> = fc.constantFrom<unknown>(
  undefined,
  null,
  '',
  'garbage',
  '-1',
  '1e999',
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -1,
  true,
  [],
  {},
  [null],
  { key: 'x' },
)

/** Where garbage goes: a part of the input, then a way down by child numbers. */
interface Damage {
  readonly part: number
  readonly way: readonly number[]
  readonly value: unknown
}

const damage: fc.Arbitrary<Damage> = fc.record({
  part: fc.nat(1000),
  way: fc.array(fc.nat(20), { minLength: 1, maxLength: 8 }),
  value: garbage,
})

/** The value with what is at the end of the way replaced; what is on the way is copied. */
function replaced(value: unknown, way: readonly number[], by: unknown): unknown {
  const [step, ...rest] = way
  if (typeof value !== 'object' || value === null || step === undefined) return by
  const keys = Object.keys(value)
  const key = keys[step % Math.max(keys.length, 1)]
  if (key === undefined) return by
  const child = (value as Record<string, unknown>)[key]
  const changed = replaced(child, rest, by)
  if (Array.isArray(value)) return value.map((each, index) => (String(index) === key ? changed : each))
  return { ...value, [key]: changed }
}

/** The parts that come from users and providers; names and UIDs stay, for they are the caller's keys. */
function damaged(input: SchedulingInput, { part, way, value }: Damage): SchedulingInput {
  const hurt = <T extends object>(whole: T, field: keyof T): T => ({
    ...whole,
    [field]: replaced(whole[field], way, value),
  })
  const at = <T extends object>(list: readonly T[], field: keyof T): readonly T[] =>
    list.map((each, index) =>
      index === Math.floor(part / 4) % Math.max(list.length, 1) ? hurt(each, field) : each,
    )
  switch (part % 4) {
    case 0:
      return { ...input, pods: at(input.pods, 'spec') }
    case 1:
      return {
        ...input,
        pools: input.pools.map((each) => ({ ...each, nodePool: hurt(each.nodePool, 'spec') })),
      }
    case 2:
      return {
        ...input,
        pools: input.pools.map((each) => {
          const field = (['requirements', 'offerings', 'capacity', 'overhead'] as const)[way.length % 4]
          return { ...each, instanceTypes: at(each.instanceTypes, field ?? 'offerings') }
        }),
      }
    default:
      return { ...input, daemons: at(input.daemons, 'spec') }
  }
}

/** A cluster with garbage in it, and a pod that any sane part of it can take. */
export interface GarbageCase {
  readonly input: SchedulingInput
  readonly healthy: Pod
}

/** Clusters with garbage, beside one sound pod, pool and type. */
export function garbageIn(clusters: fc.Arbitrary<SchedulingInput>): fc.Arbitrary<GarbageCase> {
  const pod = aPod({ cpu: '100m' }, { tolerations: [{ operator: 'Exists' }] })
  const healthy: Pod = { ...pod, metadata: { ...pod.metadata, name: 'healthy', namespace: 'sound' } }
  // Daemons do not get there: one that asks for too much would rightly leave no room.
  const taints = [{ key: 'sound', effect: 'NoSchedule' as const }]
  const pool = aPoolInput(aPool('sound', {}, { taints }), [aType('sound', 16, 64)])
  const tolerations = [{ key: 'dedicated', operator: 'Exists' as const }]
  return fc
    .record({ input: clusters, damages: fc.array(damage, { minLength: 1, maxLength: 3 }) })
    .map(({ input, damages }) => {
      const daemons = input.daemons.map((each) => ({ ...each, spec: { ...each.spec, tolerations } }))
      const hurt = damages.reduce(damaged, { ...input, daemons })
      return { healthy, input: { ...hurt, pods: [...hurt.pods, healthy], pools: [...hurt.pools, pool] } }
    })
}
