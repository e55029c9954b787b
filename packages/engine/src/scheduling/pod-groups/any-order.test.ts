/** Gangs of unlike members, which the scheduler tries in an order nobody knows (gangs.md 5.3, 7.4). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, parseResources, type Pod } from '@tenon/api'
import * as fc from 'fast-check'
import type { SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import {
  aNode,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  aType,
  strictPolicy,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'
import { aGroup, members, placedOf } from './groups.test-support.ts'

const pods = (cpus: readonly number[]) => cpus.map((cpu) => aPod({ cpu: String(cpu) }))
const planned = { ...strictPolicy, improvement: 'planned' as const }

/** The decision about a gang, and what else there is. */
function decided(
  gang: readonly Pod[],
  types: readonly InstanceType[],
  changes: Partial<SchedulingInput> = {},
): SchedulingResult {
  const pools = [aPoolInput(aPool(), types)]
  return schedule(anInput({ pods: gang, pools, podGroups: [aGroup('g', gang)], policy: planned, ...changes }))
}

describe('gangs of unlike members', () => {
  // What kube-scheduler did in one of five plays: one large pod, all small ones on the other node, the other large pod.
  test('GNG-19 two large and eight small members have room in whichever order they are tried', () => {
    const large = members(2, () => aPod({ cpu: '8' }))
    const small = members(8, () => aPod({ cpu: '1' }))
    const all = [...large, ...small]
    const types = [aType('type-16', 15.9, 64), aType('type-8', 7.9, 32), aType('type-4', 3.9, 16)]
    for (const improvement of ['planned', 'free'] as const) {
      const result = decided(all, types, { policy: { ...strictPolicy, improvement } })
      assert.equal(placedOf(all, result), 10)
      assert.ok(isSure([8, 8, 1, 1, 1, 1, 1, 1, 1, 1], roomsOf(result, types.map(sizeOf))))
      // One more node, the cheapest that takes so many of the small ones that a large one still fits.
      assert.deepEqual(launched(result), ['type-16', 'type-16', 'type-4'], improvement)
    }
  })

  test('GNG-19 equal members are packed as tightly as ever', () => {
    const all = members(6, () => aPod({ cpu: '5' }))
    const types = [aType('type-16', 16, 64), aType('type-8', 8, 32)]
    const result = decided(all, types)
    assert.deepEqual(launched(result), ['type-16', 'type-16'])
  })

  test('GNG-19 what a limit does not allow is not added', () => {
    const all = pods([8, 8, 1, 1, 1, 1, 1, 1, 1, 1])
    const result = decided(all, [], {
      pools: [aPoolInput(aPool('default', { limits: { nodes: '2' } }), [aType('type-16', 15.9, 64)])],
    })
    assert.equal(placedOf(all, result), 10)
    assert.equal(result.claims.length, 2)
  })

  test('GNG-19 other pods of its nodes stay on them', () => {
    const all = pods([8, 8, 1, 1, 1, 1, 1, 1, 1, 1])
    const others = members(2, () => aPod({ cpu: '3' }))
    const result = decided(all, [aType('type-16', 15.9, 64), aType('type-8', 7.9, 32)], {
      pods: [...all, ...others],
    })
    assert.equal(placedOf([...all, ...others], result), 12)
    const each = result.claims.flatMap((claim) => claim.pods)
    assert.equal(new Set(each).size, each.length)
  })

  test('GNG-19 room of existing nodes counts', () => {
    const all = pods([8, 8, 1, 1, 1, 1, 1, 1, 1, 1])
    const available = parseResources({ cpu: '15.9', memory: '64Gi', pods: '110' })
    const types = [aType('type-16', 15.9, 64), aType('type-8', 7.9, 32)]
    const result = decided(all, types, { nodes: [aNode('n', { available })] })
    assert.equal(placedOf(all, result), 10)
    const rooms = [15.9, ...roomsOf(result, types.map(sizeOf))]
    assert.ok(isSure([8, 8, 1, 1, 1, 1, 1, 1, 1, 1], rooms), rooms.join())
  })

  // The oracle tries every order of the members.
  test('GNG-19 random gangs run in every order, where nothing limits what is launched', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(1, 2, 3, 5, 7), { minLength: 2, maxLength: 7 }),
        fc.subarray([4, 8, 12, 16], { minLength: 1 }),
        fc.constantFrom('planned', 'free'),
        (cpus, sizes, improvement) => {
          fc.pre(cpus.every((cpu) => sizes.some((size) => cpu <= size - 0.1)))
          const all = pods(cpus)
          const types = sizes.map((size) => aType(`type-${size}`, size - 0.1, 64))
          const result = decided(all, types, { policy: { ...strictPolicy, improvement } })
          assert.equal(placedOf(all, result), all.length)
          assert.ok(isSure(cpus, roomsOf(result, types.map(sizeOf))), launched(result).join())
        },
      ),
      { numRuns: 300 },
    )
  })
})

const sizeOf = ({ name, capacity }: ReturnType<typeof aType>) => ({ name, cpu: Number(capacity['cpu']) })

/** The type that each claim is launched as. */
function launched(result: SchedulingResult): readonly string[] {
  return result.claims
    .map((claim) => claim.instanceTypes[0] ?? '')
    .toSorted((a, b) => Number(b.slice(5)) - Number(a.slice(5)))
}

function roomsOf(
  result: SchedulingResult,
  sizes: readonly { readonly name: string; readonly cpu: number }[],
): readonly number[] {
  return result.claims.map(({ instanceTypes: [name] }) => sizes.find((size) => size.name === name)?.cpu ?? 0)
}

/** Whether all find a place in every order, each where the largest part stays free. */
function isSure(cpus: readonly number[], sizes: readonly number[]): boolean {
  const seen = new Set<string>()
  const goes = (left: readonly number[], free: readonly number[]): boolean => {
    if (left.length === 0) return true
    const state = `${left.join()} ${free.join()}`
    if (seen.has(state)) return true
    seen.add(state)
    return [...new Set(left)].every((cpu) => {
      const parts = free.map((room, at) => (room < cpu ? -1 : (room - cpu) / (sizes[at] as number)))
      const best = parts.indexOf(Math.max(...parts))
      if ((parts[best] ?? -1) < 0) return false
      const at = left.indexOf(cpu)
      return goes(left.toSpliced(at, 1), free.with(best, (free[best] as number) - cpu))
    })
  }
  return goes(
    cpus.toSorted((a, b) => a - b),
    sizes,
  )
}
