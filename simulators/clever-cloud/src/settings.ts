/** How the simulated platform behaves (clever-cloud.md 2.3, 20). */
import { integerBetween, type Random } from '@tenon/runtime'

/** Bounds of a uniformly drawn duration in milliseconds, both ends included. */
export interface DelayRange {
  readonly minMs: number
  readonly maxMs: number
}

/** What an organisation may hold, and what its NodeGroups take of it. */
export interface QuotaAmount {
  /** Number of vCPUs. */
  readonly cpu: number
  /** Nominal memory in GB. */
  readonly memoryGb: number
}

/** Every field may be changed while the platform runs; it takes effect with the next decision. */
export interface CleverCloudSettings {
  /** From the creation of a group to the platform's first status, which is its decision. */
  answerDelay: DelayRange
  /** From the creation of a group, or from a resize, to the registration of its nodes. */
  nodeDelay: DelayRange
  /** From the creation of a group to `Ready=True`, if its nodes are ready by then. */
  syncDelay: DelayRange
  /**
   * From the deletion of a group to the moment at which its instances lose power. Their Nodes are not ready once the
   * cluster has missed them for long enough.
   */
  powerOffDelay: DelayRange
  /** Whether nodes report that they are not ready when they lose power, so that nobody has to miss them first. */
  nodesReportPowerOff: boolean
  /** From the deletion of a group to the deletion of its Nodes; until then its instances count. */
  deletionDelay: DelayRange
  /** From the deletion of a group without instances to its end. */
  emptyDeletionDelay: DelayRange
  /** What the organisation may hold, the control plane included. */
  quota: QuotaAmount
  /** Message of a rejection by quota; the platform says nothing today. */
  quotaMessage: string
  /** Whether groups that wait for an answer are counted together, and rejected together. */
  evaluatesTogether: boolean
  /** How long a leaked reservation counts. */
  leakDelay: DelayRange
  /** Part of the memory of a flavor that the guest sees, in percent. */
  guestMemoryPercent: number
  /** The platform's own autoscaler (`autoscalingEnabled`): now and then it resizes a group. */
  ownAutoscaler: { readonly periodMs: number; readonly mostNodes: number } | undefined
}

/** A calm platform with the quota of a new organisation. */
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

/** Draws a duration. */
export function drawDelay(random: Random, { minMs, maxMs }: DelayRange): number {
  return integerBetween(random, minMs, Math.max(minMs, maxMs))
}
