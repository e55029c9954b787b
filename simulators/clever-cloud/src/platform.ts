/** What all parts of the simulated platform share. */
import type { LocalApi } from '@tenon/devcluster'
import type { Clock, Logger, Random } from '@tenon/runtime'
import { type NodeGroup, nodeGroupKind } from '@tenon/provider-clever-cloud'
import type { Faults } from './faults.ts'
import type { GroupRecord } from './group-record.ts'
import type { InstanceHost } from './group-instances.ts'
import { amountOf, sumOf } from './quota.ts'
import type { CleverCloudSettings, QuotaAmount } from './settings.ts'

/** Holds a NodeGroup until its nodes are gone. */
export const platformFinalizer = 'api.clever-cloud.com/nodegroup'

export interface Platform {
  readonly api: LocalApi
  /** The cluster as its users see it. */
  readonly userApi: LocalApi
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings: CleverCloudSettings
  readonly faults: Faults
  readonly host: InstanceHost
  /** What the quota counts for the control plane. */
  readonly controlPlane: QuotaAmount
  /** By the name of the group, in the order in which they were first seen. */
  readonly records: Map<string, GroupRecord>
  /** Reservations whose group is gone; instants are of the monotonic clock. */
  readonly leaks: { readonly amount: QuotaAmount; readonly untilMs: number }[]
}

/** The object of a group; undefined when it is gone, or another one bears its name. */
export function groupOf({ api }: Platform, { name, uid }: GroupRecord): NodeGroup | undefined {
  const group = api.get(nodeGroupKind, undefined, name)
  return group?.metadata.uid === uid ? group : undefined
}

/** What counts against the quota now. */
export function usedQuota({ clock, controlPlane, leaks, records }: Platform): QuotaAmount {
  const nowMs = clock.monotonic()
  return sumOf([
    controlPlane,
    ...records.values().map(({ flavor, instances }) => amountOf(flavor, instances.size)),
    ...leaks.filter(({ untilMs }) => untilMs > nowMs).map(({ amount }) => amount),
  ])
}

/** The first of some instants; undefined when there is none. */
export function earliest(instants: Iterable<number | undefined>): number | undefined {
  let first: number | undefined
  for (const instant of instants)
    if (instant !== undefined && Number.isFinite(instant) && instant < (first ?? Number.POSITIVE_INFINITY))
      first = instant
  return first
}
