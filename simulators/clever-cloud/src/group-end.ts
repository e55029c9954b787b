/** The deletion of a NodeGroup: its nodes go first (clever-cloud.md 2.3). */
import { type NodeGroup, nodeGroupKind } from '@tenon/provider-clever-cloud'
import { effectOf, type GroupRecord } from './group-record.ts'
import { clearNodes, cutUnregistered, powerOff } from './group-nodes.ts'
import { type Platform, platformFinalizer } from './platform.ts'
import { amountOf } from './quota.ts'
import { drawDelay } from './settings.ts'

/** Time until the next pass, in case no event reports that a Node is gone. */
const lookAgainMs = 5_000

/** One pass over a group that is being deleted; returns when the next is due. */
export function endGroup(platform: Platform, group: NodeGroup, record: GroupRecord): number | undefined {
  const { api, clock } = platform
  const finalizers = group.metadata.finalizers ?? []
  if (!finalizers.includes(platformFinalizer)) return undefined
  const nowMs = clock.monotonic()
  record.end ??= planEnd(platform, group, record)
  const { powerOffAtMs, atMs } = record.end
  cutUnregistered(platform, record)
  if (nowMs < powerOffAtMs) return powerOffAtMs
  powerOff(platform, record)
  if (nowMs < atMs) return atMs
  if (!clearNodes(platform, record)) return nowMs + lookAgainMs
  const others = finalizers.filter((finalizer) => finalizer !== platformFinalizer)
  api.patch(nodeGroupKind, undefined, record.name, {
    metadata: { finalizers: others.length === 0 ? null : others },
  })
  return undefined
}

type End = NonNullable<GroupRecord['end']>

function planEnd(platform: Platform, group: NodeGroup, record: GroupRecord): End {
  const { clock, leaks, random, settings } = platform
  const nowMs = clock.monotonic()
  const sinceMs = nowMs - Math.max(0, clock.now() - Date.parse(group.metadata.deletionTimestamp ?? ''))
  const isInFirstPass = record.decision.kind !== 'refused' && !record.isSynced
  if (isInFirstPass && effectOf(record, 'leak') !== undefined)
    leaks.push({
      amount: amountOf(record.flavor, Math.max(1, group.spec.nodeCount)),
      untilMs: nowMs + drawDelay(random, settings.leakDelay),
    })
  const range = record.instances.size === 0 ? settings.emptyDeletionDelay : settings.deletionDelay
  const atMs = sinceMs + drawDelay(random, range) + (effectOf(record, 'slowDeletion')?.moreMs ?? 0)
  return { powerOffAtMs: Math.min(atMs, sinceMs + drawDelay(random, settings.powerOffDelay)), atMs }
}
