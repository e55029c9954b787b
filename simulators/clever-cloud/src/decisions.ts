/** Whether the platform creates the nodes of a NodeGroup (clever-cloud.md 2.3, 20). */
import type { GroupEffect } from './faults.ts'
import { type Decision, effectOf, type GroupRecord, quotaExceeded } from './group-record.ts'
import { groupOf, type Platform, usedQuota } from './platform.ts'
import { amountOf, isWithin, sumOf } from './quota.ts'

/** Decides about a group. Returns the groups that were decided together with it. */
export function decide(platform: Platform, record: GroupRecord): readonly GroupRecord[] {
  const { clock, settings } = platform
  const refusal = refusalAtFirst(platform, record)
  if (refusal !== undefined) {
    record.decision = refusal
    return []
  }
  const others = settings.evaluatesTogether
    ? [...platform.records.values()].filter((other) => other !== record && isLookedAt(platform, other))
    : []
  const asked = [record, ...others].map((each) => amountOf(each.flavor, nodesWanted(platform, each)))
  if (isWithin(sumOf([usedQuota(platform), ...asked]), settings.quota)) {
    record.decision = { kind: 'accepted', atMs: clock.monotonic() }
    return []
  }
  for (const each of [record, ...others]) each.decision = rejection(platform)
  return others
}

/** The refusal of a fault; undefined if it is not a refusal. */
export function refusalBy(platform: Platform, effect: GroupEffect): Decision | undefined {
  if (effect.kind === 'refuse')
    return { kind: 'refused', reason: effect.reason, message: effect.message ?? '' }
  if (effect.kind !== 'rejectByQuota') return undefined
  return { ...rejection(platform), byPhaseOnly: effect.tells === 'phase' }
}

const rejection = ({ settings }: Platform): Extract<Decision, { kind: 'refused' }> => ({
  kind: 'refused',
  reason: quotaExceeded,
  message: settings.quotaMessage,
})

function refusalAtFirst(platform: Platform, { effects }: GroupRecord): Decision | undefined {
  for (const effect of effects) {
    const isLate = 'afterMs' in effect && effect.afterMs !== undefined
    const refusal = isLate ? undefined : refusalBy(platform, effect)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

/** Whether the group waits for a decision about quota. */
function isLookedAt(platform: Platform, record: GroupRecord): boolean {
  return (
    record.decision.kind === 'undecided' &&
    effectOf(record, 'silent') === undefined &&
    refusalAtFirst(platform, record) === undefined &&
    nodesWanted(platform, record) > 0
  )
}

/** The requested nodes of a group; 0 if it is being deleted. */
function nodesWanted(platform: Platform, record: GroupRecord): number {
  const group = groupOf(platform, record)
  return group === undefined || group.metadata.deletionTimestamp !== undefined ? 0 : group.spec.nodeCount
}
