/** Units: nodes that are only disrupted together, as groups of pods must run together (gangs.md 7.5). */
import type { ClusterState } from '../state/cluster-state.ts'
import type { KnownGroup } from '../state/pods/pod-groups.ts'
import type { Obstacle } from './obstacles.ts'

type State = Pick<ClusterState, 'podGroups' | 'stateNodes'>

/** Nodes that are only disrupted together. */
export interface GroupUnit {
  /** Names of the Nodes. */
  readonly nodes: ReadonlySet<string>
  /** Why they cannot be disrupted together either, a clause; undefined if their groups allow it. */
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
  /** Whether members are on nodes that are being removed. */
  readonly isLeaving: boolean
}

type Units = ReadonlyMap<string, GroupUnit>

/** Memo by the groups and nodes of the last call. */
const known = new WeakMap<
  State['podGroups'],
  { readonly version: number; readonly nodes: ReturnType<State['stateNodes']>; readonly units: Units }
>()

/** Units by name of the Node: a node with more members of a group than it can spare forms one with all nodes of the group. */
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

/** Whether some node, or unit, holds more members than the group can spare. */
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

/** After a start, groups may be read later than pods; then nothing is known of these nodes. */
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
    // Members on nodes that are being removed cannot be spared twice.
    if (isLeaving && [...counts.keys()].some((node) => nodes.has(node)))
      return `other nodes with pods of a group are going away (PodGroup=${id})`
    // A group with nodes outside the unit can spare these pods.
    if (counts.size === 0 || ![...counts.keys()].every((node) => nodes.has(node))) continue
    const facts = `PodGroup=${id}, running=${running}, minCount=${minCount}`
    // Pods that have ended do not come back, and without them a replacement may never start.
    if (running < minCount) return `too few pods of a group run for them to be moved (${facts})`
    if (waiting > 0) return `pods of a group have no node yet (${facts}, waiting=${waiting})`
  }
  return undefined
}

/**
 * Why a node cannot be disrupted together with the others of its unit; a clause.
 * @param obstacleOn obstacle of a node, by name; undefined if there is none.
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

type GroupState = Pick<ClusterState, 'podGroups' | 'stateNodes'>

/**
 * Groups that could not keep their minimum number of members without this node. Members beyond the minimum may be moved
 * one node at a time, the first by name. Nodes that none of these allows alone are moved together by other methods.
 */
export function* groupObstacles(
  state: GroupState,
  nodeName: string,
): Generator<Obstacle, undefined, undefined> {
  const ids = state.podGroups.idsOn(nodeName)
  if (ids.size === 0) return
  const leaving = new Set(
    state.stateNodes().flatMap(({ isMarkedForDeletion, name }) => (isMarkedForDeletion ? [name] : [])),
  )
  for (const id of ids) {
    const ref = state.podGroups.ref(id)
    const group = ref && state.podGroups.get(ref)
    // After a start groups may be read later than pods.
    if (ref !== undefined && group === undefined && !state.podGroups.isKnown(ref)) {
      yield { by: 'pod', text: `whether its pods must run together is not known yet (PodGroup=${id})` }
      continue
    }
    if (group === undefined || !isTogether(group)) continue
    const text = objectionOf(state, { id, group, nodeName, leaving })
    if (text !== undefined) yield { by: 'pod', text }
  }
}

/** Whether the group restricts how its members are disrupted. */
function isTogether({ minCount, movesWhole }: KnownGroup): boolean {
  return minCount > 0 || movesWhole
}

interface Question {
  readonly id: string
  readonly group: KnownGroup
  readonly nodeName: string
  /** Names of nodes that are being removed. */
  readonly leaving: ReadonlySet<string>
}

function objectionOf(
  { podGroups }: GroupState,
  { id, group, nodeName, leaving }: Question,
): string | undefined {
  const counts = membersByNode(podGroups.members(id), leaving)
  const here = counts.get(nodeName) ?? 0
  if (here === 0) return undefined
  const running = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const spare = running - group.minCount
  const facts = `PodGroup=${id}, running=${running}, minCount=${group.minCount}`
  if (group.movesWhole) return `its pods belong to a group that is disrupted only as a whole (${facts})`
  if (here > spare) return `without its pods too few of their group would run (${facts})`
  const [first] = [...counts].flatMap(([node, count]) => (count <= spare ? [node] : [])).toSorted()
  return first === nodeName
    ? undefined
    : `another node with pods of the same group goes first (${facts}, Node=${first})`
}

/** Number of members on each node, without nodes that are being removed. */
function membersByNode(
  members: ReturnType<ClusterState['podGroups']['members']>,
  leaving: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { spec } of members) {
    const node = spec.nodeName ?? ''
    if (node !== '' && !leaving.has(node)) counts.set(node, (counts.get(node) ?? 0) + 1)
  }
  return counts
}
