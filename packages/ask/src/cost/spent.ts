/** What NodePools have cost over a time, from the journal (ask.md 11). */
import { conditionOf, labels, type NodeClaim, type PricePerHour } from '@tenon/api'
import type { JournalEntry, JournalKind } from '@tenon/operator'

/** A time, in Unix milliseconds. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** What one NodePool has cost. */
export interface SpentGroup {
  /** Absent for instances without a NodePool. */
  readonly nodePool?: string
  /** In the provider's currency, not per hour. */
  readonly spent: number
  readonly instanceHours: number
  /** Instances without a known price; their hours are counted, and cost nothing here. */
  readonly unpriced: number
}

export interface SpentReport extends Span {
  /** The most expensive first, then by name. */
  readonly groups: readonly SpentGroup[]
  readonly spent: number
  /** Time of the oldest entry; before it, instances that are gone are not known. Absent without entries. */
  readonly journalFromMs?: number
  /** NodeClaims without a known price. */
  readonly unpriced: readonly string[]
}

/** An instance that is there, and what it costs. */
export interface PresentClaim {
  readonly claim: NodeClaim
  readonly pricePerHour: PricePerHour
}

interface Life {
  readonly nodePool: string | undefined
  readonly fromMs: number
  toMs: number
  readonly pricePerHour: PricePerHour
}

const hourMs = 3_600_000

/**
 * Adds up what each instance has cost in a time. One that is there costs from when it was launched; one that is
 * gone from the entry `launched`, or from the beginning if there is none, to the entry `removed`. One that is neither
 * there nor `removed` costs until now: its end is not known.
 * @param entries of the journal, in any order; those of an observer, who does nothing, are left out.
 */
export function spentReport(
  present: readonly PresentClaim[],
  entries: readonly JournalEntry[],
  span: Span,
): SpentReport {
  const own = entries.filter(({ observed }) => observed !== true)
  const lives = livesOf(present, own, span)
  const groups = new Map<string | undefined, { spent: number; instanceHours: number; unpriced: number }>()
  const unpriced: string[] = []
  for (const [name, life] of lives) {
    const hours = (Math.min(life.toMs, span.toMs) - Math.max(life.fromMs, span.fromMs)) / hourMs
    if (hours <= 0) continue
    const group = groups.get(life.nodePool) ?? { spent: 0, instanceHours: 0, unpriced: 0 }
    groups.set(life.nodePool, group)
    group.instanceHours += hours
    if (life.pricePerHour === undefined) {
      group.unpriced++
      unpriced.push(name)
    } else group.spent += hours * life.pricePerHour
  }
  const sorted = [...groups]
    .map(([nodePool, group]) => ({ ...(nodePool !== undefined && { nodePool }), ...group }))
    .toSorted((a, b) => b.spent - a.spent || ((a.nodePool ?? '') < (b.nodePool ?? '') ? -1 : 1))
  const times = own.map(({ at }) => Date.parse(at))
  return {
    ...span,
    groups: sorted,
    spent: sorted.reduce((sum, { spent }) => sum + spent, 0),
    ...(times.length > 0 && { journalFromMs: times.reduce((first, time) => Math.min(first, time)) }),
    unpriced: unpriced.toSorted(),
  }
}

/** By the names of NodeClaims, which are never used again. */
function livesOf(
  present: readonly PresentClaim[],
  entries: readonly JournalEntry[],
  span: Span,
): ReadonlyMap<string, Life> {
  const lives = new Map<string, Life>()
  for (const { claim, pricePerHour } of present) {
    const nodePool = claim.metadata.labels?.[labels.nodePool]
    const fromMs = launchedAt(claim)
    if (fromMs !== undefined)
      lives.set(claim.metadata.name, { nodePool, fromMs, toMs: span.toMs, pricePerHour })
  }
  for (const [name, told] of entriesByClaim(entries)) {
    const life = lifeTold(told, span)
    const known = lives.get(name)
    if (life === undefined) continue
    if (known === undefined) lives.set(name, life)
    else known.toMs = Math.min(known.toMs, life.toMs)
  }
  return lives
}

function entriesByClaim(entries: readonly JournalEntry[]): ReadonlyMap<string, readonly JournalEntry[]> {
  const pairs = entries.flatMap((entry) => entry.nodeClaims.map((name) => ({ name, entry })))
  const groups = Map.groupBy(pairs, ({ name }) => name)
  return new Map([...groups].map(([name, each]) => [name, each.map(({ entry }) => entry)]))
}

/** Entries that tell the price of the one NodeClaim that they are about. */
const priceTellers: ReadonlySet<JournalKind> = new Set([
  'launched',
  'registered',
  'initialized',
  'removal',
  'removed',
])

/** What the entries about one NodeClaim tell of its instance; undefined when there was none, or they do not tell. */
function lifeTold(entries: readonly JournalEntry[], span: Span): Life | undefined {
  const timeOf = (kind: JournalKind) => {
    const found = entries.find((entry) => entry.kind === kind)
    return found && Date.parse(found.at)
  }
  const [launchedMs, removedMs] = [timeOf('launched'), timeOf('removed')]
  if (launchedMs === undefined) {
    const neverWas = timeOf('launch') !== undefined || timeOf('failure') !== undefined
    if (removedMs === undefined || neverWas) return undefined
  }
  const prices = entries
    .filter(({ kind }) => priceTellers.has(kind))
    .map(({ kind, pricePerHour = {} }) =>
      kind === 'removal' || kind === 'removed' ? pricePerHour.before : pricePerHour.after,
    )
  return {
    nodePool: entries.find(({ nodePool }) => nodePool !== undefined)?.nodePool,
    fromMs: launchedMs ?? span.fromMs,
    toMs: removedMs ?? span.toMs,
    pricePerHour: prices.findLast((price) => price !== undefined),
  }
}

/** When it began to cost; undefined when it does not. */
function launchedAt(claim: NodeClaim): number | undefined {
  if ((claim.status?.providerID ?? '') === '') return undefined
  const launched = conditionOf(claim, 'Launched')
  const atMs = Date.parse(launched?.lastTransitionTime ?? claim.metadata.creationTimestamp ?? '')
  return Number.isNaN(atMs) ? undefined : atMs
}
