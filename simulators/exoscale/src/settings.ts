import { type Clock, integerBetween, type Random } from '@tenon/runtime'
import { gpuFamilies } from './zone/catalogue.ts'

/** Bounds of a uniformly drawn duration in milliseconds, both ends included. */
export interface DelayRange {
  readonly minMs: number
  readonly maxMs: number
}

/** How the simulated cloud behaves. Every field may be changed while it runs. */
export interface ExoscaleSettings {
  /** How long an operation stays pending. */
  operationDelay: DelayRange
  /** Delays of single operations (`create-instance`) instead of {@link operationDelay}. */
  operationDelays: Readonly<Record<string, DelayRange>>
  /** From `running` to the moment at which the instance reads its user data. */
  bootDelay: DelayRange
  /** How long a call takes before it is looked at. */
  callLatency: DelayRange
  /** Lists of instances show the zone as it was so many milliseconds ago; single reads are never late. */
  listLagMs: number
  /** Calls beyond it are answered with 429 and `Retry-After`. */
  callLimit: { readonly perSecond: number; readonly burst: number } | undefined
  /** How far the cloud's clock is ahead of everyone's, in milliseconds; signatures expire by the cloud's. */
  clockSkewMs: number
  /** API keys that are no longer valid. */
  expiredKeys: readonly string[]
  /** Wait between two attempts of an instance to join the cluster. */
  joinRetryMs: number
  /** After this time an instance stops trying to join. */
  joinTimeoutMs: number
  /** Limits per entity: `instance` counts instances, a GPU family its GPUs. -1 or absent is unlimited. */
  quotas: Readonly<Record<string, number>>
  /** HTTP status of a creation that a quota forbids. */
  quotaRefusalStatus: number
  /** Instances of a type (`standard.large`) this zone can hold; absent is unbounded. */
  capacity: Readonly<Record<string, number>>
  /** What is left of an instance whose creation ended in failure. */
  failedInstances: 'removed' | 'error'
  /** Part of the nominal memory that the guest sees, in percent. */
  memoryCapacityPercent: number
  /** Whether a disk size outside the published range of the type is refused. */
  diskRangeEnforced: boolean
  /** Whether an instance created without security groups wears the group named `default`. */
  defaultSecurityGroupAttached: boolean
  /** Whether GPUs are only announced by instances of an `nvidia` template. */
  gpuNeedsNvidiaTemplate: boolean
  /** Whether NVIDIA's driver runs on nodes that announce GPUs, and publishes them as devices. */
  gpuDriver: boolean
  /** Pause between two passes of the cloud controller manager. */
  cloudControllerPeriodMs: number
}

/** The behaviour of a calm cloud; GPU families are activated, unlike in a new organisation. */
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

/** Draws a duration. */
export function drawDelay(random: Random, range: DelayRange): number {
  return integerBetween(random, range.minMs, Math.max(range.minMs, range.maxMs))
}

/** Waits for the latency of one call; returns at once when there is none. */
export async function waitLatency(clock: Clock, random: Random, range: DelayRange): Promise<void> {
  const ms = drawDelay(random, range)
  if (ms > 0) await clock.sleep(ms)
}
