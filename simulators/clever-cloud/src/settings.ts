/** Behavior of the simulated platform (clever-cloud.md 2.3, 20). */
import { integerBetween, type Random } from '@tenon/runtime'

/** Range of a uniformly random delay in milliseconds, both ends included. */
export interface DelayRange {
  readonly minMs: number
  readonly maxMs: number
}

/** An amount of quota. */
export interface QuotaAmount {
  /** Number of vCPUs. */
  readonly cpu: number
  /** Nominal memory in GB. */
  readonly memoryGb: number
}

/** Every field may be changed at any time; it applies to later decisions. */
export interface CleverCloudSettings {
  /** From the creation of a group to the platform's first status, which is its decision. */
  answerDelay: DelayRange
  /** From the creation or resize of a group to the registration of its nodes. */
  nodeDelay: DelayRange
  /** From the creation of a group to `Ready=True`, if its nodes are ready by then. */
  syncDelay: DelayRange
  /**
   * From the deletion of a group until its instances lose power. Their Nodes become not ready after the cluster's grace
   * period.
   */
  powerOffDelay: DelayRange
  /** Whether nodes report that they are not ready when they lose power, without that grace period. */
  nodesReportPowerOff: boolean
  /** From the deletion of a group to the deletion of its Nodes; until then its instances count. */
  deletionDelay: DelayRange
  /** From the deletion of a group without instances to its end. */
  emptyDeletionDelay: DelayRange
  /** The organisation's quota, including the control plane. */
  quota: QuotaAmount
  /** Message of a refusal for quota; the real platform has none today. */
  quotaMessage: string
  /** Whether groups that wait for a response are checked together, and refused together. */
  evaluatesTogether: boolean
  /** How long a leaked reservation counts. */
  leakDelay: DelayRange
  /** The share of a flavor's memory that the guest sees, in percent. */
  guestMemoryPercent: number
  /** The platform's own autoscaler (`autoscalingEnabled`), which resizes random groups from time to time. */
  ownAutoscaler: { readonly periodMs: number; readonly mostNodes: number } | undefined
}

/** A platform without faults, with the quota of a new organisation. */
export function defaultSettings(): CleverCloudSettings {
  return {
    answerDelay: { minMs: 800, maxMs: 1_200 },
    nodeDelay: { minMs: 26_000, maxMs: 30_000 },
    syncDelay: { minMs: 38_000, maxMs: 58_000 },
    powerOffDelay: { minMs: 1_000, maxMs: 3_000 },
    nodesReportPowerOff: false,
    deletionDelay: { minMs: 30_000, maxMs: 40_000 },
    emptyDeletionDelay: { minMs: 500, maxMs: 1_500 },
    quota: { cpu: 40, memoryGb: 40 },
    quotaMessage: '',
    evaluatesTogether: true,
    leakDelay: { minMs: 120_000, maxMs: 300_000 },
    guestMemoryPercent: 100,
    ownAutoscaler: undefined,
  }
}

/** A random delay within the range. */
export function drawDelay(random: Random, { minMs, maxMs }: DelayRange): number {
  return integerBetween(random, minMs, Math.max(minMs, maxMs))
}
