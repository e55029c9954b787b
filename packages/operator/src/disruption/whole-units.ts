/** Units: nodes that can only be removed together, as a group of pods runs on them (gangs.md 7.5). */
import type { EventRecorder } from '@tenon/kube'
import type { ClusterState } from '../state/cluster-state.ts'
import type { StateNode } from '../state/nodes/state-node.ts'
import { type Candidate, type CandidateFinder, reportBlocked } from './candidates.ts'
import type { Catalogue } from './catalogue.ts'
import { type GroupUnit, groupUnits, togetherText } from './group-units.ts'
import type { DisruptionClass } from './obstacles.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'podGroups' | 'stateNodes'>
  readonly candidates: Pick<CandidateFinder, 'unitObstacle'>
  readonly events: EventRecorder
}

/** An event with the same reason is not repeated within this time. */
const repeatMs = 60 * 60_000

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

  /** Names of candidates by unit, for units whose nodes are all candidates. */
  setsOf(candidates: readonly Candidate[]): readonly (readonly string[])[] {
    return unitsOf(this.#deps.state, candidates)
      .filter(({ unit, members }) => unit.nodes.size === members.length)
      .map(({ members }) => members.map(({ name }) => name))
  }

  /** The candidates of units whose nodes are all candidates; events say what prevents the others. */
  complete(
    candidates: readonly Candidate[],
    catalogue: Catalogue,
    disruptionClass: DisruptionClass,
  ): readonly Candidate[] {
    return unitsOf(this.#deps.state, candidates).flatMap(({ unit, members }) => {
      const obstacle = this.#obstacle(unit, members, catalogue, disruptionClass)
      if (obstacle === undefined) return members
      // Obstacles of the groups themselves are reported for each node.
      if (obstacle === unit.obstacle) return []
      for (const candidate of members) this.report(candidate, obstacle)
      return []
    })
  }

  /** Says on a node and its claim why they stay. */
  report(candidate: Candidate, text: string): void {
    reportBlocked(this.#deps.events, candidate, text, { values: [text], dedupeTtlMs: repeatMs })
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
