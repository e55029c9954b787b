/** Builders for tests of the registry. */
import type { Node, NodeCondition } from '@tenon/api'
import type { GroupInstance, NodeGroup } from '@tenon/provider'
import { type NodeGroupIndex, noGroups } from '../model.ts'
import { defaultOptions, type RegistryOptions } from '../options/options.ts'
import { ClusterStateRegistry, type RegistryUpdate } from './cluster-state.ts'

export const minute = 60_000
export const startMs = Date.parse('2026-01-01T00:00:00Z')

export function aNode(
  name: string,
  state: {
    readonly ready?: boolean
    readonly ageMs?: number
    readonly conditions?: readonly NodeCondition[]
    readonly taint?: string
    readonly providerID?: string
  } = {},
): Node {
  const ready = state.ready ?? true
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, creationTimestamp: new Date(startMs - (state.ageMs ?? 60 * minute)).toISOString() },
    spec: {
      providerID: state.providerID ?? `exoscale://${name}`,
      ...(state.taint === undefined ? {} : { taints: [{ key: state.taint, effect: 'NoSchedule' as const }] }),
    },
    status: {
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }, ...(state.conditions ?? [])],
    },
  }
}

export function nodes(prefix: string, count: number, state: Parameters<typeof aNode>[1] = {}): Node[] {
  return Array.from({ length: count }, (_, index) => aNode(`${prefix}-${index}`, state))
}

export function anInstance(
  name: string,
  state: Partial<GroupInstance> = { state: 'running' },
): GroupInstance {
  return { providerId: `exoscale://${name}`, ...state }
}

export function aGroup(id: string, targetSize: number, minSize = 1, maxSize = 100): NodeGroup {
  return { id, name: id, minSize, maxSize, targetSize }
}

export interface Facts {
  readonly afterMs?: number
  readonly groups: readonly NodeGroup[]
  /** By group id; node names begin with the id and `-`, others are in no group. */
  readonly nodes: readonly Node[]
  /** What else the cloud tells of groups and nodes. */
  readonly index?: Partial<NodeGroupIndex>
  /** Absent = exactly those that are nodes. */
  readonly instances?: ReadonlyMap<string, readonly GroupInstance[]>
}

export function aRegistry(options: Partial<RegistryOptions> = {}): ClusterStateRegistry {
  return new ClusterStateRegistry({ ...defaultOptions.registry, ...options })
}

export function observe(registry: ClusterStateRegistry, facts: Facts): RegistryUpdate {
  const groups = new Map(facts.groups.map((group) => [group.id, group]))
  const groupOf = new Map<string, string>()
  const members = new Map<string, GroupInstance[]>(facts.groups.map(({ id }) => [id, []]))
  for (const { metadata } of facts.nodes) {
    const groupId = [...groups.keys()].find((id) => metadata.name.startsWith(`${id}-`))
    if (groupId === undefined) continue
    groupOf.set(metadata.name, groupId)
    members.get(groupId)?.push(anInstance(metadata.name))
  }
  return registry.update({
    nowMs: startMs + (facts.afterMs ?? 0),
    nodes: facts.nodes,
    index: { ...noGroups, groups, groupOf, ...facts.index },
    instances: facts.instances ?? members,
  })
}
