/** What was decided in a period (page.md 2). */
import { type FoldedDecision, foldedKinds } from '../model/folded-decisions.ts'
import type { Past } from '../model/past.ts'

export interface PastDecisions {
  /** Newest first. */
  readonly rows: readonly FoldedDecision[]
  /** How many there are, of which `rows` has the newest. */
  readonly all: number
  readonly kinds: readonly string[]
  readonly nodePools: readonly string[]
  /** When the journal begins, in Unix milliseconds; absent if it is empty. */
  readonly fromMs?: number
  /** Whether older entries are still being read. */
  readonly isReading: boolean
}

const mostRows = 200

export function decisionsAnswer(
  { decisions, isReading, spend }: Past,
  asked: URLSearchParams,
): PastDecisions {
  const fromMs = timeOf(asked.get('from')) ?? Number.NEGATIVE_INFINITY
  const toMs = timeOf(asked.get('to')) ?? Number.POSITIVE_INFINITY
  const [nodePool, kind, text] = ['pool', 'kind', 'text'].map((name) => asked.get(name) ?? '')
  const query = { fromMs, toMs, nodePool: nodePool ?? '', kind: kind ?? '', text: text ?? '' }
  return {
    ...decisions.list(query, mostRows),
    kinds: foldedKinds,
    nodePools: decisions.nodePools(),
    ...(spend.fromMs !== undefined && { fromMs: spend.fromMs }),
    isReading,
  }
}

function timeOf(text: string | null): number | undefined {
  const ms = text === null || text === '' ? Number.NaN : Number(text)
  return Number.isFinite(ms) ? ms : undefined
}
