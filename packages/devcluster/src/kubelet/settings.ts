import { integerBetween, type Random } from '@tenon/runtime'

/** A uniformly random delay between both ends, in milliseconds. */
export type DelayRange = readonly [leastMs: number, mostMs: number]

/** A CSI driver that every kubelet registers in its CSINode. */
interface CsiDriverSetting {
  readonly name: string
  readonly topologyKeys?: readonly string[]
  /** Maximum volumes of a node; absent = no limit. */
  readonly volumesPerNode?: number
}

/** Behavior of kubelets. */
export interface KubeletSettings {
  /** From registration to Ready. */
  readonly readyDelay: DelayRange
  /** Image pull and sandbox of a pod. */
  readonly pullDelay: DelayRange
  /** Start of the containers after that. */
  readonly startDelay: DelayRange
  /** How long an init container runs. */
  readonly initRunTime: DelayRange
  /** From the deletion of a running pod to its end, limited by its grace period. */
  readonly stopDelay: DelayRange
  /** How long pods of Jobs without a run time run. */
  readonly jobRunSeconds: number
  readonly leaseRenewMs: number
  readonly leaseDurationSeconds: number
  readonly statusReportMs: number
  /** Whether a kubelet registers again when its Node object is deleted. */
  readonly reRegister: boolean
  readonly csiDrivers: readonly CsiDriverSetting[]
  readonly attachDelay: DelayRange
  readonly detachDelay: DelayRange
  /** From Ready until the node's drivers publish its devices. */
  readonly deviceDelay: DelayRange
  /** Volumes of a silent node are detached after this time. */
  readonly forceDetachMs: number
}

/** Delays of a real cluster with small images. */
export const defaultKubeletSettings: KubeletSettings = {
  readyDelay: [2000, 5000],
  pullDelay: [300, 1500],
  startDelay: [100, 500],
  initRunTime: [200, 1000],
  stopDelay: [200, 1500],
  jobRunSeconds: 5,
  leaseRenewMs: 10_000,
  leaseDurationSeconds: 40,
  statusReportMs: 300_000,
  reRegister: true,
  csiDrivers: [],
  attachDelay: [500, 2000],
  detachDelay: [500, 2000],
  deviceDelay: [1000, 4000],
  forceDetachMs: 360_000,
}

/** A delay of the range, in milliseconds. */
export function draw(random: Random, [leastMs, mostMs]: DelayRange): number {
  return leastMs === mostMs ? leastMs : integerBetween(random, leastMs, mostMs)
}
