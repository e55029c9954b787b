/** Whether a move is worth the pods that it evicts (reports-2.md 9). */
import { sumOfPrices } from '@tenon/api'
import type { PlannedMove } from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Settings } from '../../settings.ts'
import type { Candidate } from '../candidates.ts'

export interface PayBackDependencies {
  readonly state: Pick<ClusterState, 'recentlyFilledNodes'>
  readonly settings: Pick<Settings, 'compatibility'>
  readonly clock: Pick<Clock, 'now'>
}

/** To evict what runs on nodes is worth so much of their price. */
const evictionMs = 15 * 60_000

/**
 * When a move that launches nodes begins to be worth it: pods are expected to live on for as long as they have lived,
 * and so long it has to save what a quarter of an hour of its nodes costs. Nodes that pods have left, and prices that
 * are not known, do not count.
 * @returns Unix milliseconds; undefined when it is worth it now.
 */
export function worthFromMs(
  { clock, settings, state }: PayBackDependencies,
  move: PlannedMove,
  nodes: readonly Candidate[],
): number | undefined {
  if (settings.compatibility === 'karpenter' || move.claims.length === 0) return undefined
  const settled = nodes.filter(({ claim }) => state.recentlyFilledNodes.has(claim.metadata.name))
  const { pricePerHour: price } = sumOfPrices(nodes.map(({ pricePerHour }) => pricePerHour))
  if (settled.length === 0 || price === 0) return undefined
  const youngestMs = Math.max(...settled.flatMap(({ movable }) => movable.map(startMs)))
  const fromMs = youngestMs + (evictionMs * price) / move.savings
  return fromMs > clock.now() ? fromMs : undefined
}

function startMs({ metadata, status }: Candidate['movable'][number]): number {
  return Date.parse(status?.startTime ?? metadata.creationTimestamp ?? '')
}
