import type { JournalEntry } from './entry.ts'

const hourMs = 3_600_000

export interface DaySavings {
  /** UTC, such as 2026-11-26. */
  readonly day: string
  readonly moves: number
  /** Moves with an unknown price, which the sums do not include. */
  readonly unpriced: number
  /** Expected savings per hour. */
  readonly expectedPerHour: number
  /** Expected savings until now: as if each move had taken effect at once and lasted. */
  readonly expected: number
  /** Actual savings until now. */
  readonly saved: number
  /** Undefined if the provider names none. */
  readonly currency: string | undefined
}

/** Of a NodeClaim; times are Unix milliseconds. */
interface Fate {
  launchedMs?: number
  goneMs?: number
  pricePerHour?: number
}

interface Move {
  readonly entry: JournalEntry
  readonly atMs: number
  /** When the command was abandoned, or the observed plan ended. */
  endedMs?: number
}

/**
 * Savings by day and currency, oldest first. A move saves from the deletion of the last of its nodes until the first of its
 * replacements is deleted. Without replacements it saves until its NodePool launches a node for pods again. While old and new
 * nodes both run, the move costs the price of the new ones. An observed move saves as if it had taken effect at once, while its
 * plan stands.
 * @param entries oldest first.
 * @param observed true: observed moves; false: those that were carried out.
 */
export function savingsByDay(
  entries: readonly JournalEntry[],
  nowMs: number,
  observed = false,
): readonly DaySavings[] {
  const moves = new Map<string, Move>()
  const fates = new Map<string, Fate>()
  const launches = new Map<string, number[]>()
  for (const entry of entries) {
    if ((entry.observed ?? false) !== observed) continue
    const atMs = Date.parse(entry.at)
    const { kind, decision = entry.id } = entry
    if (kind === 'move') moves.set(decision, { entry, atMs })
    const move = kind === 'refusal' ? moves.get(decision) : undefined
    if (move !== undefined) move.endedMs ??= atMs
    if (kind === 'launch' && entry.reason === 'Provisioned' && entry.nodePool !== undefined)
      launches.set(entry.nodePool, [...(launches.get(entry.nodePool) ?? []), atMs])
    for (const claim of entry.nodeClaims) noteFate(fates, claim, entry, atMs)
  }
  const facts = { fates, launches, nowMs, observed }
  const days = new Map<string, DaySavings>()
  for (const move of moves.values()) {
    const day = move.entry.at.slice(0, 10)
    const { currency } = move.entry
    const key = `${day} ${currency ?? ''}`
    days.set(key, sumWith(days.get(key) ?? noSavings(day, currency), move, facts))
  }
  return [...days.values()].toSorted((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0))
}

interface Facts {
  readonly fates: ReadonlyMap<string, Fate>
  /** When each NodePool launched nodes for pods. */
  readonly launches: ReadonlyMap<string, readonly number[]>
  readonly nowMs: number
  readonly observed: boolean
}

function noteFate(fates: Map<string, Fate>, claim: string, entry: JournalEntry, atMs: number): void {
  const { kind, pricePerHour } = entry
  const fate = fates.get(claim) ?? {}
  if (kind === 'launched') fate.launchedMs = atMs
  if (kind === 'removed') fate.goneMs = atMs
  const isBirth = kind === 'launch' || kind === 'launched' || kind === 'registered' || kind === 'initialized'
  // The last price is that of the instance, not of the plan.
  if (isBirth && pricePerHour?.after !== undefined) fate.pricePerHour = pricePerHour.after
  fates.set(claim, fate)
}

function noSavings(day: string, currency: string | undefined): DaySavings {
  return { day, moves: 0, unpriced: 0, expectedPerHour: 0, expected: 0, saved: 0, currency }
}

function sumWith(sum: DaySavings, move: Move, facts: Facts): DaySavings {
  const { before, after } = move.entry.pricePerHour ?? {}
  const saved =
    before === undefined || after === undefined ? undefined : savedBy(move, { before, after }, facts)
  if (before === undefined || after === undefined || saved === undefined)
    return { ...sum, moves: sum.moves + 1, unpriced: sum.unpriced + 1 }
  const perHour = before - after
  return {
    ...sum,
    moves: sum.moves + 1,
    expectedPerHour: sum.expectedPerHour + perHour,
    expected: sum.expected + perHour * hours(move.atMs, facts.nowMs),
    saved: sum.saved + saved,
  }
}

function savedBy(
  move: Move,
  { before, after }: { readonly before: number; readonly after: number },
  { fates, launches, nowMs, observed }: Facts,
): number {
  const { entry, atMs, endedMs } = move
  if (observed) return (before - after) * hours(atMs, endedMs ?? nowMs)
  // Nodes that were launched for an abandoned command serve pods, so they do not count as its cost.
  if (endedMs !== undefined) return 0
  const { replacements = [], nodeClaims, nodePool = '' } = entry
  const gone = nodeClaims.map((claim) => fates.get(claim)?.goneMs)
  const allGoneMs = gone.reduce<number>((last, each) => Math.max(last, each ?? nowMs), atMs)
  if (replacements.length === 0) {
    const takenBackMs = launches.get(nodePool)?.find((each) => each > allGoneMs) ?? nowMs
    return before * hours(allGoneMs, takenBackMs)
  }
  const born = replacements.map((claim) => fates.get(claim))
  const endMs = Math.min(nowMs, ...born.map((fate) => fate?.goneMs ?? nowMs))
  const cost = born.reduce((sum, fate) => {
    const pricePerHour = fate?.pricePerHour ?? after / replacements.length
    return sum + pricePerHour * hours(fate?.launchedMs ?? nowMs, endMs)
  }, 0)
  return before * hours(allGoneMs, endMs) - cost
}

function hours(fromMs: number, toMs: number): number {
  return Math.max(0, toMs - fromMs) / hourMs
}
