/** Turns finished claims into results with objects instead of indexes. */
import { type Pod, type Resources, ownValue } from '@tenon/api'
import type { PoolInput, SchedulingInput } from '../../input/input.ts'
import type { NewClaim } from '../../input/result.ts'
import type { FinishedClaim } from './finished-claims.ts'
import { taintsOf } from './pool-template.ts'

/** Undefined if the input does not contain the pool. */
export function newClaim(
  { pools, pods, origins }: Pick<SchedulingInput, 'pools' | 'pods' | 'origins'>,
  { poolIndex, pods: indexes, ...claim }: FinishedClaim,
): NewClaim | undefined {
  const pool = pools[poolIndex]
  if (pool === undefined) return undefined
  const all = indexes.map((index) => pods[index]).filter((pod) => pod !== undefined)
  const roomPods = all.filter((pod) => isRoom(pod, origins))
  return {
    ...claim,
    pool: pool.nodePool,
    taints: taintsOf(pool),
    largest: largestOf(pool, claim.instanceTypes),
    pods: roomPods.length === 0 ? all : all.filter((pod) => !isRoom(pod, origins)),
    ...(roomPods.length > 0 && { roomPods }),
  }
}

/** Whether the pod is a placeholder (buffer, request, check). */
export function isRoom({ metadata }: Pod, origins: SchedulingInput['origins']): boolean {
  const origin = origins?.get(metadata?.uid ?? '')
  return origin === 'buffer' || origin === 'request' || origin === 'check'
}

/** Capacities by type name, cached by list of types, as the same list serves thousands of claims. */
const capacities = new WeakMap<PoolInput['instanceTypes'], ReadonlyMap<string, Resources>>()

function capacitiesOf(types: PoolInput['instanceTypes']): ReadonlyMap<string, Resources> {
  const known = capacities.get(types) ?? new Map(types.map(({ name, capacity }) => [name, capacity]))
  capacities.set(types, known)
  return known
}

function largestOf({ nodePool, instanceTypes }: PoolInput, names: readonly string[]): Resources {
  const limits = Object.keys(nodePool.spec.limits ?? {})
  if (limits.length === 0) return {}
  const capacityOf = capacitiesOf(instanceTypes)
  const most = (limit: string) =>
    Math.max(0, ...names.map((name) => ownValue(capacityOf.get(name), limit) ?? 0))
  return Object.fromEntries(limits.map((limit) => [limit, limit === 'nodes' ? 1 : most(limit)]))
}
