/** What groups that run together say against disrupting a node with some of their pods (gangs.md 7.5). */
import type { ClusterState } from '../state/cluster-state.ts'
import type { KnownGroup } from '../state/pods/pod-groups.ts'
import type { Obstacle } from './obstacles.ts'

type State = Pick<ClusterState, 'podGroups' | 'stateNodes'>

/**
 * Members that go leave the others without the number that must run together, unless so many more run. A node at a
 * time may take of those: of several, the first by name. Nodes of which none may go alone are moved together by
 * methods of their own.
 */
export function* groupObstacles(state: State, nodeName: string): Generator<Obstacle, undefined, undefined> {
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

/** Whether the group says anything about how its members are disrupted. */
export function isTogether({ minCount, movesWhole }: KnownGroup): boolean {
  return minCount > 0 || movesWhole
}

interface Question {
  readonly id: string
  readonly group: KnownGroup
  readonly nodeName: string
  /** Names of nodes that go away. */
  readonly leaving: ReadonlySet<string>
}

function objectionOf({ podGroups }: State, { id, group, nodeName, leaving }: Question): string | undefined {
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

/** How many members are on each node, those left out that go away. */
export function membersByNode(
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
