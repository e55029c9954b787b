/** Node groups of a cloud that does as it is told, or fails as it is told. */
import type { Node } from '@tenon/api'
import {
  type GroupFault,
  type GroupHold,
  type GroupInstance,
  type GroupOfNode,
  type Increase,
  type NodeExample,
  type NodeGroup,
  NodeGroupError,
  type NodeGroupOptions,
  type NodeGroups,
} from '@tenon/provider'

export function aGroup(id: string, sizes: Partial<NodeGroup> = {}): NodeGroup {
  return { id, name: `pool-${id}`, minSize: 1, maxSize: 10, targetSize: 1, ...sizes }
}

export class FakeGroups implements NodeGroups {
  readonly groups = new Map<string, NodeGroup>()
  /** Group id by node name; nodes that are not here are in none. */
  readonly groupOfNode = new Map<string, string>()
  /** Why a node cannot be told, by name. */
  readonly unresolved = new Map<string, string>()
  readonly members = new Map<string, readonly GroupInstance[]>()
  readonly faults: GroupFault[] = []
  /** Groups whose increase fails at once, or after it was taken on. */
  readonly failing = new Map<string, 'at once' | 'later'>()
  /** `verb group argument`, in order. */
  readonly calls: string[] = []
  refreshError: Error | undefined
  gpuLabel?: string
  readonly holds = new Map<string, GroupHold>()
  readonly options = new Map<string, NodeGroupOptions>()
  /** Whether the instance of a node exists, by its name; others are not known. */
  readonly existing = new Map<string, boolean>()
  /** Whether sizes can be lowered. */
  canDecrease = false

  constructor(groups: readonly NodeGroup[]) {
    for (const group of groups) this.groups.set(group.id, group)
  }

  refresh(): Promise<readonly GroupFault[]> {
    return this.refreshError === undefined ? Promise.resolve(this.faults) : Promise.reject(this.refreshError)
  }

  list(): readonly NodeGroup[] {
    return [...this.groups.values()]
  }

  group(id: string): NodeGroup | undefined {
    return this.groups.get(id)
  }

  groupOf(node: Node): Promise<GroupOfNode> {
    const reason = this.unresolved.get(node.metadata.name)
    if (reason !== undefined) return Promise.resolve({ kind: 'unresolved', reason })
    const groupId = this.groupOfNode.get(node.metadata.name)
    return Promise.resolve(groupId === undefined ? { kind: 'none' } : { kind: 'group', groupId })
  }

  /** Examples by group id, or why there is none. */
  readonly examples = new Map<string, NodeExample | NodeGroupError>()

  exampleNode(groupId: string): Promise<NodeExample | undefined> {
    const example = this.examples.get(groupId)
    return example instanceof NodeGroupError ? Promise.reject(example) : Promise.resolve(example)
  }

  optionsOf(groupId: string): NodeGroupOptions {
    return this.options.get(groupId) ?? {}
  }

  holdOf(groupId: string): GroupHold | undefined {
    return this.holds.get(groupId)
  }

  hasInstance(node: Node): Promise<boolean | undefined> {
    return Promise.resolve(this.existing.get(node.metadata.name))
  }

  instances(groupId: string): Promise<readonly GroupInstance[]> {
    return Promise.resolve(this.members.get(groupId) ?? [])
  }

  increaseSize(groupId: string, delta: number): Promise<Increase> {
    this.calls.push(`increase ${groupId} ${delta}`)
    const failing = this.failing.get(groupId)
    if (failing === 'at once') return Promise.reject(new NodeGroupError('the cloud says no'))
    const group = this.groups.get(groupId)
    if (group === undefined) return Promise.reject(new NodeGroupError('no such group'))
    const targetSize = group.targetSize + delta
    this.groups.set(groupId, { ...group, targetSize })
    const settled =
      failing === 'later' ? Promise.reject(new NodeGroupError('it stays scaling-up')) : Promise.resolve()
    return Promise.resolve({ targetSize, settled })
  }

  deleteInstances(groupId: string, providerIds: readonly string[]): Promise<void> {
    this.calls.push(`delete ${groupId} ${providerIds.join()}`)
    const group = this.groups.get(groupId)
    if (group !== undefined)
      this.groups.set(groupId, { ...group, targetSize: group.targetSize - providerIds.length })
    this.members.set(
      groupId,
      (this.members.get(groupId) ?? []).filter(({ providerId }) => !providerIds.includes(providerId)),
    )
    return Promise.resolve()
  }

  decreaseTargetSize(groupId: string, delta: number): Promise<'done' | 'unsupported'> {
    this.calls.push(`decrease ${groupId} ${delta}`)
    const group = this.groups.get(groupId)
    if (!this.canDecrease || group === undefined) return Promise.resolve('unsupported')
    this.groups.set(groupId, { ...group, targetSize: group.targetSize - delta })
    return Promise.resolve('done')
  }
}
