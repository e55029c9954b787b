/** Records of NodeGroups that are new, or from an earlier run. */
import { isConditionTrue } from '@tenon/api'
import type { Random } from '@tenon/runtime'
import { builtInFlavors, type NodeGroup } from '@tenon/provider-clever-cloud'
import type { GroupEffect } from './faults.ts'
import { type Decision, type GroupRecord, quotaExceeded } from './group-record.ts'
import { type CleverCloudSettings, drawDelay } from './settings.ts'

/** Plans the life of a group. `createdAtMs` is monotonic. */
export function newRecord(
  group: NodeGroup,
  createdAtMs: number,
  effects: readonly GroupEffect[],
  settings: CleverCloudSettings,
  random: Random,
): GroupRecord {
  const { name, uid = '' } = group.metadata
  const flavor = builtInFlavors.find((each) => each.name === group.spec.flavor)
  if (flavor === undefined)
    throw new Error(`NodeGroup ${name}: the platform has no flavor ${group.spec.flavor}`)
  const find = <K extends GroupEffect['kind']>(kind: K) =>
    effects.find((effect): effect is Extract<GroupEffect, { kind: K }> => effect.kind === kind)
  const silent = find('silent')
  const slow = find('slow')
  const neverBoots = find('neverBoots') !== undefined
  const nodesMs = drawDelay(random, settings.nodeDelay)
  const syncMs = drawDelay(random, settings.syncDelay)
  const answerMs = drawDelay(random, settings.answerDelay)
  const silentMs = silent === undefined ? 0 : (silent.forMs ?? Number.POSITIVE_INFINITY)
  return {
    name,
    uid,
    flavor,
    createdAtMs,
    effects,
    spent: new Set(),
    answerAtMs: createdAtMs + Math.max(answerMs, silentMs),
    nodesAtMs: neverBoots ? undefined : createdAtMs + (slow?.nodeMs ?? nodesMs),
    syncAtMs: createdAtMs + (slow?.syncMs ?? syncMs),
    decision: { kind: 'undecided' },
    instances: new Map(),
    refusedCount: undefined,
    isSynced: false,
    end: undefined,
  }
}

/** The decision of an earlier run, from the status. */
export function decisionIn(group: NodeGroup, nowMs: number): Decision {
  const { phase, conditions = [] } = group.status ?? {}
  const failure = conditions.find(({ type, status }) => type === 'ReconcileFailed' && status === 'True')
  if (isConditionTrue(group, 'Ready')) return { kind: 'accepted', atMs: nowMs }
  if (phase === quotaExceeded || phase === 'Failed') {
    const { reason = quotaExceeded, message = '' } = failure ?? {}
    return { kind: 'refused', reason, message, byPhaseOnly: failure === undefined }
  }
  return phase === undefined ? { kind: 'undecided' } : { kind: 'accepted', atMs: nowMs }
}
