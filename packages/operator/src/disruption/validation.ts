/** Validates moves of consolidation a while after the decision (disruption.md 13). */
import type { CloudProvider } from '@tenon/provider'
import { labels, wellKnownLabels } from '@tenon/api'
import type { PlannedMove } from '@tenon/engine'
import { isCheaper, isConfirmed } from '@tenon/engine/consolidation'
import type { Candidate } from './candidates.ts'
import type { CatalogueReader } from './catalogue.ts'
import type { Pass } from './methods/method.ts'
import type { RemovalSimulation } from './simulation.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly state: Pick<ClusterState, 'decidable' | 'isNominated'>
  readonly provider: Pick<CloudProvider, 'wellKnownLabels'>
  readonly simulation: RemovalSimulation
  readonly catalogue: CatalogueReader
}

type Rejection = 'budget' | 'scheduling' | 'churn' | 'price' | 'unknown'

interface Now extends Pick<Pass, 'find' | 'budgets'> {
  /**
   * Whether the move was found by packing all nodes together, which a simulation would not find by itself: then its pods
   * must only find places, planned or not, for less.
   */
  readonly isPacked: boolean
  /** Moves validated before, whose nodes use up budgets. */
  readonly confirmed: readonly PlannedMove[]
}

export class MoveValidation {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns why the move is rejected; undefined if it is still valid. */
  rejectionOf(move: PlannedMove, now: Now, signal: AbortSignal): Promise<Rejection | undefined> {
    return rejectionOf(this.#deps, move, now, signal)
  }
}

async function rejectionOf(
  deps: Dependencies,
  move: PlannedMove,
  now: Now,
  signal: AbortSignal,
): Promise<Rejection | undefined> {
  const { isPacked } = now
  if (!deps.state.decidable()) return 'churn'
  const nodes = await stillThere(deps, move, now)
  if (typeof nodes === 'string') return nodes
  const prepared = await deps.simulation.prepare(nodes, true, signal)
  if (prepared === undefined) return 'unknown'
  if (prepared.candidates.size < nodes.length) return 'scheduling'
  const plan = isPacked ? move.placements : []
  const removal = await deps.simulation.without(prepared, nodes, signal, plan)
  if (removal === undefined) return 'unknown'
  const moving = isPacked ? nodes.flatMap(({ movable }) => movable) : undefined
  if (!isConfirmed(move, removal, moving)) return 'scheduling'
  if (!(await isStillCheaper(deps, move, nodes, signal))) return 'price'
  const again = await stillThere(deps, move, now)
  return typeof again === 'string' ? again : undefined
}

/** Whether the new nodes cost less than the old ones at current prices. */
async function isStillCheaper(
  deps: Dependencies,
  { claims }: PlannedMove,
  nodes: readonly Candidate[],
  signal: AbortSignal,
): Promise<boolean> {
  if (claims.length === 0) return true
  const catalogue = await deps.catalogue.read(signal)
  const wellKnown = new Set([...wellKnownLabels, ...deps.provider.wellKnownLabels])
  const before = nodes.map(({ pricePerHour }) => pricePerHour)
  return isCheaper(claims, before, catalogue, wellKnown)
}

/** The current candidates of the move, if all of them may still go. */
async function stillThere(
  deps: Dependencies,
  { candidates }: PlannedMove,
  { budgets, confirmed, find }: Now,
): Promise<readonly Candidate[] | Rejection> {
  const names = new Set(candidates)
  const all = await find()
  const nodes = all.filter(({ name }) => names.has(name))
  if (nodes.length < names.size) return 'churn'
  const remaining = new Map(budgets())
  const spend = ({ claim }: Candidate): boolean => {
    const pool = claim.metadata.labels?.[labels.nodePool] ?? ''
    const left = remaining.get(pool) ?? 0
    remaining.set(pool, left - 1)
    return left > 0
  }
  const others = new Set(confirmed.flatMap((move) => move.candidates))
  for (const node of all) if (others.has(node.name)) spend(node)
  for (const node of nodes) if (!spend(node) || deps.state.isNominated(node.providerID)) return 'budget'
  return nodes
}
