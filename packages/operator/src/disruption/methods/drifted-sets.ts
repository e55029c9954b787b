/** Replaces drifted nodes, those first that come first and whose pods all find a place (disruption.md 8, gangs.md 7.5). */
import type { RemovalResult } from '@tenon/engine'
import type { Candidate } from '../candidates.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import { type NodeLimitParts, tellFull } from '../node-limits.ts'
import type { DisruptionRemarks } from '../remarks.ts'
import { destinationsOf, type RemovalGround, type RemovalSimulation } from '../simulation.ts'
import type { Pass, PassOutcome } from './method.ts'
import { heldBackText } from './rollout-pause.ts'

/** What this file works with. */
interface Dependencies extends NodeLimitParts {
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly remarks: DisruptionRemarks
}

/** Nodes that are replaced in one command. */
type DriftedSet = readonly Candidate[]

interface DriftedSets {
  /** Those that budgets allow. */
  readonly allowed: readonly DriftedSet[]
  /** Which of them is tried first. */
  readonly inOrder: (a: DriftedSet, b: DriftedSet) => number
  /** Says on a node that nothing may be launched in place of it now. */
  readonly tellHeld: (candidate: Candidate, text: string) => void
}

const reason = 'Drifted'

/** Begins the replacement of one of the sets. */
export async function replaceFirst(
  deps: Dependencies,
  { allowed, inOrder, tellHeld }: DriftedSets,
  { mayNotLaunch, begin }: Pick<Pass, 'begin' | 'mayNotLaunch'>,
  signal: AbortSignal,
): Promise<PassOutcome> {
  const { remarks, replacements, simulation } = deps
  if (allowed.length === 0) return 'nothing'
  const ground = await simulation.ground(allowed.flat(), false, signal)
  if (ground === undefined) {
    remarks.noPools(reason)
    return 'again'
  }
  const judged = allowed.flatMap((set) => {
    const nodes = set.flatMap(({ name }) => ground.candidates.get(name) ?? [])
    return nodes.length === set.length ? [nodes] : []
  })
  for (const set of judged.toSorted(inOrder)) {
    const removal = await without(deps, ground, set, signal)
    if (removal === 'failed') continue
    if (removal === undefined) return 'nothing'
    if (removal.stranded.length > 0) {
      for (const candidate of set) remarks.stranded(candidate, removal.stranded)
      continue
    }
    // Nodes for other pods are launched by the provisioner; these nodes need not wait for them.
    const held = removal.replacements.find(({ nodePool }) => mayNotLaunch(nodePool))
    if (held !== undefined) {
      const text = tellFull(deps, held.nodePool) ?? heldBackText(held.nodePool)
      for (const candidate of set) tellHeld(candidate, text)
      continue
    }
    const overtaken = await begin({
      reason,
      type: '',
      candidates: set,
      isWhole: set.length > 1,
      replacements: removal.replacements.map((claim) => replacements.of(claim, reason)),
      destinations: destinationsOf(ground, removal.placements),
    })
    return overtaken === undefined ? 'begun' : 'again'
  }
  return 'nothing'
}

/** What becomes of the pods without the nodes; `failed` costs only these nodes their turn. */
async function without(
  { remarks, simulation }: Dependencies,
  ground: RemovalGround,
  set: DriftedSet,
  signal: AbortSignal,
): Promise<RemovalResult | 'failed' | undefined> {
  try {
    return await simulation.without(ground, set, signal)
  } catch (error) {
    if (signal.aborted) throw error
    const text = `simulating the placement of its pods failed: ${error instanceof Error ? error.message : String(error)}`
    for (const candidate of set) remarks.stays(candidate, text)
    return 'failed'
  }
}
