/** Faults of a NodeGroup that occur some time after the platform has seen it. */
import { ApiError } from '@tenon/devcluster'
import { nodeGroupKind } from '@tenon/provider-clever-cloud'
import { refusalBy } from './decisions.ts'
import type { GroupEffect } from './faults.ts'
import { errorEndOf, type GroupRecord } from './group-record.ts'
import { earliest, type Platform } from './platform.ts'

/** Applies faults that are due; returns when the next one is. Times are monotonic. */
export function lateEffects(platform: Platform, record: GroupRecord): number | undefined {
  const nowMs = platform.clock.monotonic()
  const later: (number | undefined)[] = [errorEndOf(record, nowMs)]
  for (const effect of record.effects) {
    const atMs = record.spent.has(effect) ? undefined : instantOf(record, effect)
    if (atMs === undefined) continue
    if (atMs > nowMs) later.push(atMs)
    else {
      record.spent.add(effect)
      befall(platform, record, effect)
    }
  }
  return earliest(later)
}

/** Undefined for faults without a time, or before the group is accepted. */
function instantOf({ createdAtMs, decision }: GroupRecord, effect: GroupEffect): number | undefined {
  if (effect.kind === 'resize') return createdAtMs + effect.afterMs
  if (decision.kind !== 'accepted') return undefined
  const isLate = effect.kind === 'vanish' || effect.kind === 'refuse' || effect.kind === 'rejectByQuota'
  return isLate && effect.afterMs !== undefined ? decision.atMs + effect.afterMs : undefined
}

function befall(platform: Platform, record: GroupRecord, effect: GroupEffect): void {
  if (effect.kind === 'resize') resize(platform, record.name, effect.nodeCount)
  else if (effect.kind === 'vanish') vanish(platform, record.name)
  else {
    record.decision = refusalBy(platform, effect) ?? record.decision
    record.isSynced = false
  }
}

/** A user changes the number of nodes; ignored if the group is gone. */
export function resize({ userApi }: Platform, group: string, nodeCount: number): void {
  unlessGone(() => userApi.patch(nodeGroupKind, undefined, group, { spec: { nodeCount } }))
}

/** The platform removes a group and its object without a reason. */
export function vanish({ api }: Platform, group: string): void {
  unlessGone(() => {
    api.patch(nodeGroupKind, undefined, group, { metadata: { finalizers: null } })
    // Without finalizers, a group that was being deleted is gone already.
    api.delete(nodeGroupKind, undefined, group)
  })
}

function unlessGone(act: () => void): void {
  try {
    act()
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error
  }
}
