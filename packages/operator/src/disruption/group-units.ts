/** Nodes of which none goes without the others, because of groups that run together (gangs.md 7.5). */
import type { ClusterState } from '../state/cluster-state.ts'
import { isTogether, membersByNode } from './group-obstacles.ts'

type State = Pick<ClusterState, 'podGroups' | 'stateNodes'>

/** Nodes that go as a whole. */
export interface GroupUnit {
  /** Names of the Nodes. */
  readonly nodes: ReadonlySet<string>
  /** Why they do not go as a whole either; a clause. Absent when nothing about their groups is in the way. */
  readonly obstacle?: string
}

interface Gang {
  readonly id: string
  readonly minCount: number
  readonly movesWhole: boolean
  /** Members by name of the Node. */
  readonly counts: ReadonlyMap<string, number>
  readonly running: number
  /** Members without a node. */
  readonly waiting: number
  /** Whether members are on nodes that go away. */
  readonly isLeaving: boolean
}

type Units = ReadonlyMap<string, GroupUnit>

/** What was worked out last; all who ask ask about the same groups. */
const known = new WeakMap<
  State['podGroups'],
  { readonly version: number; readonly nodes: ReturnType<State['stateNodes']>; readonly units: Units }
>()

/** By name of the Node: nodes with more members of a group than it can spare go with all others of the group. */
export function groupUnits(state: State): Units {
  const { podGroups } = state
  const { version } = podGroups
  const nodes = state.stateNodes()
  const last = known.get(podGroups)
  if (last?.version === version && last.nodes === nodes) return last.units
  const units = unitsNow(podGroups, nodes)
  known.set(podGroups, { version, nodes, units })
  return units
}

function unitsNow(podGroups: State['podGroups'], nodes: ReturnType<State['stateNodes']>): Units {
  if (!podGroups.isOn) return new Map()
  const leaving = new Set(
    nodes.flatMap(({ isMarkedForDeletion, name }) => (isMarkedForDeletion ? [name] : [])),
  )
  const gangs = [...podGroups.ids()].flatMap((id) => gangOf(podGroups, id, leaving) ?? [])
  const sets = new Map<string, Set<string>>()
  let untied = gangs
  for (;;) {
    const tied = untied.filter((gang) => isTied(gang, sets))
    if (tied.length === 0) break
    for (const { counts } of tied) unite(sets, [...counts.keys()])
    untied = untied.filter((gang) => !tied.includes(gang))
  }
  const units = new Map(
    [...new Set(sets.values())].map((set): [Set<string>, GroupUnit] => {
      const obstacle = unreadOn(podGroups, set) ?? obstacleOf(gangs, set)
      return [set, { nodes: set, ...(obstacle !== undefined && { obstacle }) }]
    }),
  )
  return new Map(
    [...sets].flatMap(([node, set]) => {
      const unit = units.get(set)
      return unit === undefined ? [] : [[node, unit]]
    }),
  )
}

function gangOf(podGroups: State['podGroups'], id: string, leaving: ReadonlySet<string>): Gang | undefined {
  const ref = podGroups.ref(id)
  const group = ref && podGroups.get(ref)
  if (group === undefined || !isTogether(group)) return undefined
  const members = podGroups.members(id)
  const counts = membersByNode(members)
  const running = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const { minCount, movesWhole } = group
  const isLeaving = [...counts.keys()].some((node) => leaving.has(node))
  return { id, minCount, movesWhole, counts, running, waiting: members.length - running, isLeaving }
}

/** Whether some node, or nodes that go together, would take more members than the group can spare. */
function isTied(
  { counts, movesWhole, minCount, running }: Gang,
  sets: ReadonlyMap<string, Set<string>>,
): boolean {
  if (movesWhole) return counts.size > 0
  const leaving = new Map<Set<string> | string, number>()
  for (const [node, count] of counts) {
    const key = sets.get(node) ?? node
    leaving.set(key, (leaving.get(key) ?? 0) + count)
  }
  return [...leaving.values()].some((count) => count > running - minCount)
}

function unite(sets: Map<string, Set<string>>, nodes: readonly string[]): void {
  const all = new Set(nodes.flatMap((node) => [node, ...(sets.get(node) ?? [])]))
  for (const node of all) sets.set(node, all)
}

/** After a start groups may be read later than pods: what they say of these nodes is not known then. */
function unreadOn(podGroups: State['podGroups'], nodes: ReadonlySet<string>): string | undefined {
  for (const id of podGroups.ids()) {
    const ref = podGroups.ref(id)
    if (ref === undefined || podGroups.isKnown(ref) || podGroups.get(ref) !== undefined) continue
    if (podGroups.members(id).some(({ spec }) => nodes.has(spec.nodeName ?? '')))
      return `whether pods on these nodes must run together is not known yet (PodGroup=${id})`
  }
  return undefined
}

function obstacleOf(gangs: readonly Gang[], nodes: ReadonlySet<string>): string | undefined {
  for (const { id, counts, minCount, running, waiting, isLeaving } of gangs) {
    // Those that go away are no longer there to be spared for.
    if (isLeaving && [...counts.keys()].some((node) => nodes.has(node)))
      return `other nodes with pods of a group are going away (PodGroup=${id})`
    // A group of which some nodes stay can spare the pods that go.
    if (counts.size === 0 || ![...counts.keys()].every((node) => nodes.has(node))) continue
    const facts = `PodGroup=${id}, running=${running}, minCount=${minCount}`
    // Pods that have ended do not come back, and without them a successor may never start.
    if (running < minCount) return `too few pods of a group run for them to be moved (${facts})`
    if (waiting > 0) return `pods of a group have no node yet (${facts}, waiting=${waiting})`
  }
  return undefined
}

/**
 * Why a node does not go together with the others of its unit; a clause.
 * @param obstacleOn why a node, by name, stays; undefined when it may go.
 */
export function unitObstacle(
  { nodes, obstacle }: GroupUnit,
  nodeName: string,
  obstacleOn: (nodeName: string) => string | undefined,
): string | undefined {
  if (obstacle !== undefined) return obstacle
  for (const other of [...nodes].toSorted()) {
    const text = other === nodeName ? undefined : obstacleOn(other)
    if (text !== undefined) return togetherText(other, text)
  }
  return undefined
}

/** @param text why the other node stays. */
export function togetherText(other: string, text: string): string {
  return `its pods run together with those on Node ${other}, which stays: ${text}`
}
