/** Resolves the group of every node before an iteration decides anything. */
import type { Node } from '@tenon/api'
import type { GroupFault, GroupHold, NodeGroupOptions, NodeGroups } from '@tenon/provider'
import type { NodeGroupIndex } from '../model.ts'

/** Concurrent requests; the cloud's client has a limit of its own. */
const atOnce = 8

export interface ResolvedGroups extends NodeGroupIndex {
  /** By node name: why it is in no group, if a user should know. */
  readonly outside: ReadonlyMap<string, string>
}

/** Resolves the group of each node. A failure of one node or group does not affect others. */
export async function resolveGroups(
  nodes: readonly Node[],
  cloud: NodeGroups,
  faults: readonly GroupFault[],
  signal: AbortSignal,
): Promise<ResolvedGroups> {
  const groupOf = new Map<string, string>()
  const unresolved = new Map<string, string>()
  const outside = new Map<string, string>()
  const hasInstance = new Map<string, boolean>()
  const faulty = new Map(faults.map(({ groupId, reason }) => [groupId, reason]))
  const waiting = nodes.values()
  const worker = async () => {
    for (const node of waiting) {
      const { name } = node.metadata
      const exists = await cloud.hasInstance?.(node, signal)
      if (exists !== undefined) hasInstance.set(name, exists)
      const found = await cloud.groupOf(node, signal)
      if (found.kind === 'group') groupOf.set(name, found.groupId)
      else if (found.kind === 'none') {
        if (found.reason !== undefined) outside.set(name, found.reason)
      } else {
        unresolved.set(name, found.reason)
        if (found.groupId !== undefined) faulty.set(found.groupId, found.reason)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  const groups = new Map(cloud.list().map((group) => [group.id, group]))
  const holds = new Map<string, GroupHold>()
  const options = new Map<string, NodeGroupOptions>()
  for (const id of groups.keys()) {
    const hold = cloud.holdOf?.(id)
    if (hold !== undefined) holds.set(id, hold)
    const own = cloud.optionsOf?.(id)
    if (own !== undefined) options.set(id, own)
  }
  return { groups, groupOf, unresolved, faults: faulty, outside, holds, options, hasInstance }
}
