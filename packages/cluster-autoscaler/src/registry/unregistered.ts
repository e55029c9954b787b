/** Members of groups that no node is of yet, and since when they are known (cluster-autoscaler.md 2.4). */
import type { Node } from '@tenon/api'
import type { GroupInstance } from '@tenon/provider'

export interface UnregisteredInstance {
  readonly groupId: string
  readonly providerId: string
  /** The name that its node would have, when its cloud tells it. */
  readonly nodeName?: string
  /** As its cloud tells it; absent when it tells none. */
  readonly state?: GroupInstance['state']
  /** When this process first saw it without a node. */
  readonly sinceMs: number
  /** Whether this process has seen a node of it before. */
  readonly hadNode: boolean
}

export interface UnregisteredInput {
  readonly nowMs: number
  readonly nodes: readonly Node[]
  readonly groupIds: Iterable<string>
  /** By group id. Of a group that is absent, what was known before holds on. */
  readonly instances: ReadonlyMap<string, readonly GroupInstance[]>
}

export class UnregisteredInstances {
  #byGroup = new Map<string, readonly UnregisteredInstance[]>()
  #seenWithNode = new Set<string>()

  update(input: UnregisteredInput): void {
    const isRegistered = registeredIn(input.nodes)
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
      for (const member of members)
        if (isRegistered(member) || this.#seenWithNode.has(member.providerId))
          seenWithNode.add(member.providerId)
      const sinceOf = new Map(before.map(({ providerId, sinceMs }) => [providerId, sinceMs]))
      next.set(
        groupId,
        members
          .filter((member) => mayStillRegister(member) && !isRegistered(member))
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

/** Members that go away or that their cloud reports as broken are not waited for. */
function mayStillRegister({ state, error }: GroupInstance): boolean {
  return error === undefined && state !== 'deleting'
}

/**
 * Tells whether an instance has a node. A node without a provider ID is found by its name: the cloud's controller
 * gives it the ID late, and its instance must not be taken for one that never came.
 */
export function registeredIn(
  nodes: readonly Node[],
): (instance: { readonly providerId: string; readonly nodeName?: string }) => boolean {
  const providerIds = new Set<string>()
  const namesWithoutId = new Set<string>()
  for (const { metadata, spec } of nodes) {
    const providerId = spec?.providerID ?? ''
    if (providerId === '') namesWithoutId.add(metadata.name)
    else providerIds.add(providerId)
  }
  return ({ providerId, nodeName }) =>
    providerIds.has(providerId) || (nodeName !== undefined && namesWithoutId.has(nodeName))
}
