/** State that all parts of the simulated platform share. */
import type { LocalApi } from '@tenon/devcluster'
import type { Clock, Logger, Random } from '@tenon/runtime'
import { type NodeGroup, nodeGroupKind } from '@tenon/provider-clever-cloud'
import type { Faults } from './faults.ts'
import type { GroupRecord } from './group-record.ts'
import type { InstanceHost } from './group-instances.ts'
import { amountOf, sumOf } from './quota.ts'
import type { CleverCloudSettings, QuotaAmount } from './settings.ts'

/** Keeps a NodeGroup until its nodes are gone. */
export const platformFinalizer = 'api.clever-cloud.com/nodegroup'

export interface Platform {
  readonly api: LocalApi
  /** The API with the identity of users. */
  readonly userApi: LocalApi
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings: CleverCloudSettings
  readonly faults: Faults
  readonly host: InstanceHost
  /** The control plane's share of the quota. */
  readonly controlPlane: QuotaAmount
  /** By group name, in the order in which they were first seen. */
  readonly records: Map<string, GroupRecord>
  /** Reservations whose group is gone; times are monotonic. */
  readonly leaks: { readonly amount: QuotaAmount; readonly untilMs: number }[]
}

/** The object of a group; undefined if it is gone or replaced. */
export function groupOf({ api }: Platform, { name, uid }: GroupRecord): NodeGroup | undefined {
  const group = api.get(nodeGroupKind, undefined, name)
  return group?.metadata.uid === uid ? group : undefined
}

/** The current use of the quota. */
export function usedQuota({ clock, controlPlane, leaks, records }: Platform): QuotaAmount {
  const nowMs = clock.monotonic()
  return sumOf([
    controlPlane,
    ...records.values().map(({ flavor, instances }) => amountOf(flavor, instances.size)),
    ...leaks.filter(({ untilMs }) => untilMs > nowMs).map(({ amount }) => amount),
  ])
}

/** The earliest time; undefined if there is none. */
export function earliest(instants: Iterable<number | undefined>): number | undefined {
  let first: number | undefined
  for (const instant of instants)
    if (instant !== undefined && Number.isFinite(instant) && instant < (first ?? Number.POSITIVE_INFINITY))
      first = instant
  return first
}
