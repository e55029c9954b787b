/** Replaces nodes one set after the other, whether or not that saves anything: the replacements first (disruption.md 8). */
import type { NewClaim, RemovalResult } from '@tenon/engine'
import type { Overtaken } from '../../provisioning/overtaken.ts'
import type { Candidate } from '../candidates.ts'
import type { CommandReason, CommandTerms } from '../commands/command.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import { type NodeLimitParts, reportFull } from '../node-limits.ts'
import type { DisruptionReport } from '../report.ts'
import { destinationsOf, type PreparedRemoval, type RemovalSimulation } from '../simulation.ts'
import { mayGoFirst, uncounted } from '../without-surge.ts'
import type { Pass, PassOutcome } from './method.ts'

interface ReplaceFirstParts extends NodeLimitParts {
  readonly simulation: RemovalSimulation
  readonly replacements: PlannedReplacements
  readonly report: DisruptionReport
}

/** Nodes that are replaced in one command. */
type ReplacedSet = readonly Candidate[]

export interface ReplacedSets {
  readonly reason: CommandReason
  /** The sets that budgets allow. */
  readonly allowed: readonly ReplacedSet[]
  /** The order in which they are tried. */
  readonly inOrder: (a: ReplacedSet, b: ReplacedSet) => number
  /** Records on a node that no replacement may be launched now. */
  readonly reportHeld: (candidate: Candidate, text: string) => void
  /** Asked last, before the command begins. Default: the set may go. */
  readonly confirmed?: (set: ReplacedSet) => Promise<boolean>
  readonly terms?: CommandTerms
}

/** Replaces the first set whose pods all find a place. */
export async function replaceFirst(
  deps: ReplaceFirstParts,
  { reason, allowed, inOrder, reportHeld, confirmed, terms }: ReplacedSets,
  { mayNotLaunch, begin }: Pick<Pass, 'begin' | 'mayNotLaunch'>,
  signal: AbortSignal,
): Promise<PassOutcome> {
  const { report, replacements, simulation } = deps
  if (allowed.length === 0) return 'nothing'
  const mayLaunch = ({ nodePool }: NewClaim) => !mayNotLaunch(nodePool)
  const prepared = await simulation.prepare(allowed.flat(), false, signal)
  if (prepared === undefined) {
    report.noPools(reason)
    return 'again'
  }
  const judged = allowed.flatMap((set) => {
    const nodes = set.flatMap(({ name }) => prepared.candidates.get(name) ?? [])
    return nodes.length === set.length ? [nodes] : []
  })
  for (const set of judged.toSorted(inOrder)) {
    const removal = await without(deps, prepared, set, signal)
    if (removal === 'failed') continue
    if (removal === undefined) return 'nothing'
    const command = {
      reason,
      type: '',
      candidates: set,
      isWhole: set.length > 1,
      ...(terms && { terms }),
    } as const
    if (removal.stranded.length > 0) {
      // The provisioner launches what follows it, once quotas have room.
      if (reason === 'Drifted' && (await goesFirst(deps, prepared, { set, removal, mayLaunch }, signal)))
        return outcomeOf(await begin({ ...command, replacements: [], destinations: [] }))
      for (const candidate of set) report.stranded(candidate, removal.stranded)
      continue
    }
    // Nodes for other pods are the provisioner's; this command does not wait for them.
    const held = removal.replacements.find((claim) => !mayLaunch(claim))
    if (held !== undefined) {
      const text = reportFull(deps, held.nodePool) ?? heldBackText(held.nodePool)
      for (const candidate of set) reportHeld(candidate, text)
      continue
    }
    if (confirmed !== undefined && !(await confirmed(set))) continue
    const overtaken = await begin({
      ...command,
      replacements: removal.replacements.map((claim) => replacements.of(claim, reason)),
      destinations: destinationsOf(prepared, removal.placements),
    })
    return outcomeOf(overtaken)
  }
  return 'nothing'
}

/**
 * Whether quotas leave room for a node of the same NodePool for other pods: it is about to come, or its launches fail, as
 * that of the next successor would.
 */
function isAwaited({ claims }: RemovalResult, set: ReplacedSet): boolean {
  const pools = new Set(set.map(({ pool }) => pool.metadata.name))
  const moving = new Set(set.flatMap(({ movable }) => movable.map(({ metadata }) => metadata.uid)))
  return claims.some(
    ({ nodePool, pods }) => pools.has(nodePool) && pods.some(({ metadata }) => !moving.has(metadata.uid)),
  )
}

/** Whether the nodes go before what replaces them, for which quotas have room then. */
async function goesFirst(
  deps: ReplaceFirstParts,
  prepared: PreparedRemoval,
  {
    set,
    removal,
    mayLaunch,
  }: {
    readonly set: ReplacedSet
    readonly removal: RemovalResult
    readonly mayLaunch: (claim: NewClaim) => boolean
  },
  signal: AbortSignal,
): Promise<boolean> {
  if (!mayGoFirst(deps, set) || isAwaited(removal, set)) return false
  const after = await without(deps, uncounted(prepared, set), set, signal)
  return after !== 'failed' && after?.stranded.length === 0 && after.replacements.every(mayLaunch)
}

function outcomeOf(overtaken: Overtaken | undefined): PassOutcome {
  return overtaken === undefined ? 'begun' : 'again'
}

/** Simulates the removal of the nodes; after a failure the next set is tried. */
async function without(
  { report, simulation }: ReplaceFirstParts,
  prepared: PreparedRemoval,
  set: ReplacedSet,
  signal: AbortSignal,
): Promise<RemovalResult | 'failed' | undefined> {
  try {
    return await simulation.without(prepared, set, signal)
  } catch (error) {
    if (signal.aborted) throw error
    const text = `simulating the placement of its pods failed: ${error instanceof Error ? error.message : String(error)}`
    for (const candidate of set) report.stays(candidate, text)
    return 'failed'
  }
}

export function heldBackText(pool: string): string {
  return `no NodeClaim of NodePool ${pool} is created as a replacement for now, because the last one did not become a node`
}
