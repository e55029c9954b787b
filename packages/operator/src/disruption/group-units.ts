/** Nodes of which none goes without the others, because of groups that run together (gangs.md 7.5). */
import type { ClusterState } from '../state/cluster-state.ts'
import { isTogether, membersByNode } from './group-obstacles.ts'
import type { EventRecorder } from '@tenon/kube'
import type { StateNode } from '../state/nodes/state-node.ts'
import { type Candidate, type CandidateFinder, tellBlocked } from './candidates.ts'
import type { Catalogue } from './catalogue.ts'
import type { DisruptionClass } from './obstacles.ts'

/** What this file works with. */
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

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'podGroups' | 'stateNodes'>
  readonly candidates: Pick<CandidateFinder, 'unitObstacle'>
  readonly events: EventRecorder
}

/** Why nodes stay is not told again within this time, as long as it is the same. */
const toldForMs = 60 * 60_000

export class WholeUnits {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Whether every instance may go without others. */
  get isEmpty(): boolean {
    return groupUnits(this.#deps.state).size === 0
  }

  /** Whether the instance goes only together with others. */
  has({ node }: StateNode): boolean {
    return node !== undefined && groupUnits(this.#deps.state).has(node.metadata.name)
  }

  /** Of units of which all nodes are candidates: the candidates' names. */
  setsOf(candidates: readonly Candidate[]): readonly (readonly string[])[] {
    return unitsOf(this.#deps.state, candidates)
      .filter(({ unit, members }) => unit.nodes.size === members.length)
      .map(({ members }) => members.map(({ name }) => name))
  }

  /** The candidates of units of which all nodes are among them; of the others an event says what is in the way. */
  complete(
    candidates: readonly Candidate[],
    catalogue: Catalogue,
    disruptionClass: DisruptionClass,
  ): readonly Candidate[] {
    return unitsOf(this.#deps.state, candidates).flatMap(({ unit, members }) => {
      const obstacle = this.#obstacle(unit, members, catalogue, disruptionClass)
      if (obstacle === undefined) return members
      // What the groups themselves have against it is told of each node alone.
      if (obstacle === unit.obstacle) return []
      for (const candidate of members) this.tell(candidate, obstacle)
      return []
    })
  }

  /** Says on a node and its claim why they stay. */
  tell(candidate: Candidate, text: string): void {
    tellBlocked(this.#deps.events, candidate, text, { values: [text], dedupeTtlMs: toldForMs })
  }

  #obstacle(
    unit: GroupUnit,
    members: readonly Candidate[],
    catalogue: Catalogue,
    disruptionClass: DisruptionClass,
  ): string | undefined {
    const [first] = members
    if (first === undefined) return undefined
    const text = this.#deps.candidates.unitObstacle('', unit, catalogue, disruptionClass)
    if (text !== undefined || members.length === unit.nodes.size) return text
    const names = new Set(members.map(({ node }) => node.metadata.name))
    const missing = [...unit.nodes].filter((name) => !names.has(name)).toSorted()
    return togetherText(missing[0] ?? '', 'nothing is to be done about it now')
  }
}

/** Candidates by the unit that each is part of. */
export function unitsOf(
  state: Pick<ClusterState, 'podGroups' | 'stateNodes'>,
  candidates: readonly Candidate[],
): readonly { readonly unit: GroupUnit; readonly members: readonly Candidate[] }[] {
  const units = groupUnits(state)
  const byUnit = new Map<GroupUnit, Candidate[]>()
  for (const candidate of candidates) {
    const unit = units.get(candidate.node.metadata.name)
    if (unit === undefined) continue
    const members = byUnit.get(unit) ?? []
    byUnit.set(unit, members)
    members.push(candidate)
  }
  return Array.from(byUnit, ([unit, members]) => ({ unit, members }))
}
