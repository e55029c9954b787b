/** Which device taints evict pods, and when (devices.md 3.21). */
import {
  type DeviceAllocationResult,
  type DeviceTaint,
  type DeviceTaintRule,
  type ResourceClaim,
  type ResourceSlice,
  selectsDevice,
  toleratesDeviceTaint,
} from '@tenon/api'

/** When a pod is evicted, and the rules responsible. */
export interface DeviceEviction {
  /** Unix milliseconds. */
  readonly atMs: number
  readonly rules: readonly DeviceTaintRule[]
}

/** Where device taints come from. */
export interface TaintSources {
  /** The slices of a pool. */
  readonly slices: (pool: string) => Iterable<ResourceSlice>
  readonly rules: Iterable<DeviceTaintRule>
}

/** Identifies a pool among those of all drivers. */
export function poolKey(driver: string, pool: string): string {
  return `${driver}\n${pool}`
}

/** The earliest eviction for device taints of a claim; undefined if there is none. */
export function evictionOf(claim: ResourceClaim, sources: TaintSources): DeviceEviction | undefined {
  const rules = [...sources.rules].filter(({ spec }) => spec.taint.effect === 'NoExecute')
  let eviction: DeviceEviction | undefined
  for (const result of claim.status?.allocation?.devices?.results ?? []) {
    const { driver, pool, device } = result
    for (const taint of driverTaints(result, sources))
      eviction = earlier(eviction, timeOf(taint, undefined, result), [])
    for (const rule of rules)
      if (selectsDevice(rule, { driver, pool, device }))
        eviction = earlier(eviction, timeOf(rule.spec.taint, rule.metadata.creationTimestamp, result), [rule])
  }
  return eviction
}

/** The earlier eviction, with the rules of both. */
export function earlierEviction(
  a: DeviceEviction | undefined,
  b: DeviceEviction | undefined,
): DeviceEviction | undefined {
  return b === undefined ? a : earlier(a, b.atMs, b.rules)
}

function driverTaints(
  { driver, pool, device }: DeviceAllocationResult,
  { slices }: TaintSources,
): readonly DeviceTaint[] {
  const members = [...slices(poolKey(driver, pool))]
  const newest = Math.max(...members.map(({ spec }) => spec.pool.generation))
  return members
    .filter(({ spec }) => spec.pool.generation === newest)
    .flatMap(({ spec }) => spec.devices?.find(({ name }) => name === device)?.taints ?? [])
    .filter(({ effect }) => effect === 'NoExecute')
}

/**
 * When a taint evicts the pods of a claim; undefined if they tolerate it forever. Only tolerations with this effect
 * count here, while the scheduler also accepts those for all effects.
 */
function timeOf(
  taint: DeviceTaint,
  otherwiseAdded: string | undefined,
  { tolerations = [] }: DeviceAllocationResult,
): number | undefined {
  const tolerated = tolerations.filter(
    (toleration) => toleration.effect === 'NoExecute' && toleratesDeviceTaint([toleration], taint),
  )
  if (tolerated.some(({ tolerationSeconds }) => tolerationSeconds === undefined)) return undefined
  const seconds = Math.min(...tolerated.map(({ tolerationSeconds = 0 }) => Math.max(0, tolerationSeconds)))
  const added = Date.parse(taint.timeAdded ?? otherwiseAdded ?? '') || 0
  return added + (tolerated.length === 0 ? 0 : seconds * 1000)
}

function earlier(
  eviction: DeviceEviction | undefined,
  atMs: number | undefined,
  rules: readonly DeviceTaintRule[],
): DeviceEviction | undefined {
  if (atMs === undefined) return eviction
  if (eviction === undefined) return { atMs, rules }
  return { atMs: Math.min(eviction.atMs, atMs), rules: [...new Set([...eviction.rules, ...rules])] }
}
