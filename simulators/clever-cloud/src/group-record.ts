/** What the platform knows about a NodeGroup besides the object. Times are monotonic. */
import type { FlavorSize } from '@tenon/provider-clever-cloud'
import type { GroupEffect } from './faults.ts'
import type { GroupInstance } from './group-instances.ts'

/** Whether the platform creates the nodes of a group. */
export type Decision =
  | { readonly kind: 'undecided' }
  | { readonly kind: 'accepted'; readonly atMs: number }
  | {
      readonly kind: 'refused'
      readonly reason: string
      readonly message: string
      /** Whether only the phase shows it, and no condition. */
      readonly byPhaseOnly?: boolean
    }

/** Reason and phase of a refusal for quota. */
export const quotaExceeded = 'QuotaExceeded'

export interface GroupRecord {
  readonly name: string
  readonly uid: string
  readonly flavor: FlavorSize
  readonly createdAtMs: number
  readonly effects: readonly GroupEffect[]
  /** Faults that have occurred already. */
  readonly spent: Set<GroupEffect>
  readonly answerAtMs: number
  readonly nodesAtMs: number | undefined
  readonly syncAtMs: number
  decision: Decision
  /** By their number in the group. */
  readonly instances: Map<number, GroupInstance>
  /** A number of nodes that the quota did not allow. */
  refusedCount: number | undefined
  isSynced: boolean
  /** When its instances lose power, and when its Nodes are deleted; undefined until it is deleted. */
  end: { readonly powerOffAtMs: number; readonly atMs: number } | undefined
}

/** The group's fault of this kind, if any. */
export function effectOf<K extends GroupEffect['kind']>(
  { effects }: GroupRecord,
  kind: K,
): Extract<GroupEffect, { kind: K }> | undefined {
  return effects.find((effect): effect is Extract<GroupEffect, { kind: K }> => effect.kind === kind)
}

/** Instances that are not being removed. */
export function stayingInstances({ instances }: GroupRecord): readonly GroupInstance[] {
  return [...instances.values()].filter(({ leavesAtMs }) => leavesAtMs === undefined)
}

/** Whether all wanted instances have booted, and all others are gone. */
export function isSettled(record: GroupRecord): boolean {
  return record.instances.values().every(({ hasJoined, leavesAtMs }) => hasJoined && leavesAtMs === undefined)
}

/** When an upstream error ends; undefined if there is none any more. */
export function errorEndOf(record: GroupRecord, nowMs: number): number | undefined {
  const error = effectOf(record, 'upstreamError')
  if (error === undefined || record.decision.kind !== 'accepted') return undefined
  if (error.from === 'ready' && !record.isSynced) return undefined
  const fromMs = error.from === 'ready' ? record.syncAtMs : record.decision.atMs
  const endMs = fromMs + error.forMs
  return endMs > nowMs ? endMs : undefined
}
