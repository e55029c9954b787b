import { type Clock, integerBetween, type Random } from '@tenon/runtime'
import { gpuFamilies } from './zone/catalogue.ts'

/** Range of a uniformly random delay in milliseconds, both ends included. */
export interface DelayRange {
  readonly minMs: number
  readonly maxMs: number
}

/** Behavior of the simulated cloud. Every field may be changed at any time. */
export interface ExoscaleSettings {
  /** How long an operation stays pending. */
  operationDelay: DelayRange
  /** Delays of single operations (`create-instance`) instead of {@link operationDelay}. */
  operationDelays: Readonly<Record<string, DelayRange>>
  /** From `running` until the instance reads its user data. */
  bootDelay: DelayRange
  /** Delay before a call is processed. */
  callLatency: DelayRange
  /** Lists show the zone as it was this many milliseconds ago; reads of single instances are current. */
  listLagMs: number
  /** Calls above the limit get a 429 with `Retry-After`. */
  callLimit: { readonly perSecond: number; readonly burst: number } | undefined
  /** How far the cloud's clock is ahead, in milliseconds; it decides when signatures expire. */
  clockSkewMs: number
  /** API keys that are no longer valid. */
  expiredKeys: readonly string[]
  /** Pause between two attempts of an instance to join the cluster. */
  joinRetryMs: number
  /** After this time an instance stops trying to join. */
  joinTimeoutMs: number
  /** Limits per entity: `instance` counts instances, a GPU family its GPUs. -1 or absent = unlimited. */
  quotas: Readonly<Record<string, number>>
  /** HTTP status of a creation that exceeds a quota. */
  quotaRefusalStatus: number
  /** Capacity in instances per type (`standard.large`); absent = unlimited. */
  capacity: Readonly<Record<string, number>>
  /** What is left of an instance whose creation failed. */
  failedInstances: 'removed' | 'error'
  /** The share of the nominal memory that the guest sees, in percent. */
  memoryCapacityPercent: number
  /** Whether a disk size outside the published range of the type is refused. */
  diskRangeEnforced: boolean
  /** Whether an instance created without security groups gets the group named `default`. */
  defaultSecurityGroupAttached: boolean
  /** Whether only instances with an `nvidia` template report GPUs. */
  gpuNeedsNvidiaTemplate: boolean
  /** Whether nodes with GPUs run NVIDIA's driver, which publishes them as devices. */
  gpuDriver: boolean
  /** Pause between two passes of the cloud controller manager. */
  cloudControllerPeriodMs: number
}

/** A cloud without faults. GPU families are activated, unlike in a new organisation. */
export function defaultSettings(): ExoscaleSettings {
  return {
    operationDelay: { minMs: 2_000, maxMs: 6_000 },
    operationDelays: {},
    bootDelay: { minMs: 15_000, maxMs: 30_000 },
    callLatency: { minMs: 0, maxMs: 0 },
    listLagMs: 0,
    callLimit: undefined,
    clockSkewMs: 0,
    expiredKeys: [],
    joinRetryMs: 10_000,
    joinTimeoutMs: 1_800_000,
    quotas: { instance: 1000, ...Object.fromEntries([...gpuFamilies].map((family) => [family, 64])) },
    quotaRefusalStatus: 403,
    capacity: {},
    failedInstances: 'removed',
    memoryCapacityPercent: 100,
    diskRangeEnforced: false,
    defaultSecurityGroupAttached: true,
    gpuNeedsNvidiaTemplate: true,
    gpuDriver: false,
    cloudControllerPeriodMs: 10_000,
  }
}

/** A random delay within the range. */
export function drawDelay(random: Random, range: DelayRange): number {
  return integerBetween(random, range.minMs, Math.max(range.minMs, range.maxMs))
}

/** Waits for the latency of one call; returns at once if it is 0. */
export async function waitLatency(clock: Clock, random: Random, range: DelayRange): Promise<void> {
  const ms = drawDelay(random, range)
  if (ms > 0) await clock.sleep(ms)
}
