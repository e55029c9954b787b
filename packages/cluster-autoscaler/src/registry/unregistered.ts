/** Members of groups without a node, and since when (cluster-autoscaler.md 2.4). */
import type { Node } from '@tenon/api'
import type { GroupInstance } from '@tenon/provider'

export interface UnregisteredInstance {
  readonly groupId: string
  readonly providerId: string
  /** The name of its future node, if the cloud reports it. */
  readonly nodeName?: string
  /** As reported by the cloud; absent if it reports none. */
  readonly state?: GroupInstance['state']
  /** When this process first saw it without a node. */
  readonly sinceMs: number
  /** Whether this process has seen its node before. */
  readonly hadNode: boolean
}

export interface UnregisteredInput {
  readonly nowMs: number
  readonly nodes: readonly Node[]
  /** By node name. */
  readonly groupOf: ReadonlyMap<string, string>
  readonly groupIds: Iterable<string>
  /** By group id. For absent groups, the previous state is kept. */
  readonly instances: ReadonlyMap<string, readonly GroupInstance[]>
  /** For how long the group was paused since the last update; its instances have as much more time. */
  readonly pausedMs: (groupId: string) => number
}

export class UnregisteredInstances {
  #byGroup = new Map<string, readonly UnregisteredInstance[]>()
  #seenWithNode = new Set<string>()

  update(input: UnregisteredInput): void {
    const isRegistered = registeredIn(input.nodes, (name, groupId) => input.groupOf.get(name) === groupId)
    const next = new Map<string, readonly UnregisteredInstance[]>()
    const seenWithNode = new Set<string>()
    for (const groupId of input.groupIds) {
      const before = this.#byGroup.get(groupId) ?? []
      const members = input.instances.get(groupId)
      if (members === undefined) {
        next.set(
          groupId,
          before.filter((instance) => !isRegistered(instance)),
        )
        continue
      }
      const hasNode = (member: GroupInstance) => isRegistered({ ...member, groupId })
      for (const member of members)
        if (hasNode(member) || this.#seenWithNode.has(member.providerId)) seenWithNode.add(member.providerId)
      const pausedMs = input.pausedMs(groupId)
      const sinceOf = new Map(before.map(({ providerId, sinceMs }) => [providerId, sinceMs + pausedMs]))
      next.set(
        groupId,
        members
          .filter((member) => mayStillRegister(member) && !hasNode(member))
          .map((member) => ({
            ...member,
            groupId,
            sinceMs: sinceOf.get(member.providerId) ?? input.nowMs,
            hadNode: seenWithNode.has(member.providerId),
          })),
      )
    }
    this.#byGroup = next
    this.#seenWithNode = seenWithNode
  }

  all(): readonly UnregisteredInstance[] {
    return [...this.#byGroup.values()].flat()
  }

  of(groupId: string): readonly UnregisteredInstance[] {
    return this.#byGroup.get(groupId) ?? []
  }
}

/** Members that are being deleted or have failed are not waited for. */
function mayStillRegister({ state, error }: GroupInstance): boolean {
  return error === undefined && state !== 'deleting'
}

/** What identifies an instance. */
export type IdentifiedInstance = Pick<UnregisteredInstance, 'groupId' | 'providerId' | 'nodeName'>

/**
 * Whether an instance has a node. A node without a provider ID is found by name: the cloud controller sets the ID late,
 * and its instance must not look as if it had never registered. So is a node of the instance's group with another ID,
 * as a failed instance may have lost that of its node.
 * @param isInGroup whether a node of this name is in the group.
 */
export function registeredIn(
  nodes: readonly Node[],
  isInGroup: (nodeName: string, groupId: string) => boolean,
): (instance: IdentifiedInstance) => boolean {
  const providerIds = new Set<string>()
  const names = new Set<string>()
  const namesWithoutId = new Set<string>()
  for (const { metadata, spec } of nodes) {
    const providerId = spec?.providerID ?? ''
    names.add(metadata.name)
    if (providerId === '') namesWithoutId.add(metadata.name)
    else providerIds.add(providerId)
  }
  return ({ providerId, nodeName, groupId }) => {
    if (providerIds.has(providerId)) return true
    if (nodeName === undefined || !names.has(nodeName)) return false
    return namesWithoutId.has(nodeName) || isInGroup(nodeName, groupId)
  }
}
