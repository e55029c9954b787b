/** What NodePools cost over a period, from the journal (ask.md 11). */
import { conditionOf, labels, type NodeClaim, type PricePerHour } from '@tenon/api'
import type { JournalEntry, JournalKind } from '@tenon/operator'

/** A period, in Unix milliseconds. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

export interface SpentGroup {
  /** Absent for instances without a NodePool. */
  readonly nodePool?: string
  /** A total in the provider's currency, not a rate. */
  readonly spent: number
  readonly instanceHours: number
  /** Instances with an unknown price: their hours are counted, their cost is not. */
  readonly unpriced: number
}

export interface SpentReport extends Span {
  /** Most expensive first, then by name. */
  readonly groups: readonly SpentGroup[]
  readonly spent: number
  /** Time of the oldest entry; instances that were removed earlier are unknown. Absent if there are no entries. */
  readonly journalFromMs?: number
  /** NodeClaims with an unknown price. */
  readonly unpriced: readonly string[]
}

/** An existing instance and its price. */
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
 * Sums up the cost of each instance in a period. An existing instance costs from its launch; a removed one from
 * its `launched` entry, or from the start of the period if there is none, to its `removed` entry. One that
 * neither exists nor has a `removed` entry costs until now, as its end is unknown.
 * @param entries of the journal, in any order. Entries in observe mode are ignored, as nothing was done.
 */
export function spentReport(
  present: readonly PresentClaim[],
  entries: readonly JournalEntry[],
  span: Span,
): SpentReport {
  const own = entries.filter(({ kind, observed }) => observed !== true && kind !== 'seen')
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

/** Groups by NodeClaim name, which is never reused. */
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
  for (const [name, ofClaim] of entriesByClaim(entries)) {
    const life = lifeFrom(ofClaim, span)
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

/** Kinds of entries with the price of a single NodeClaim. */
const pricedKinds: ReadonlySet<JournalKind> = new Set([
  'launched',
  'registered',
  'initialized',
  'removal',
  'removed',
])

/** The lifetime of an instance according to the journal; undefined if there was none or the entries do not say. */
function lifeFrom(entries: readonly JournalEntry[], span: Span): Life | undefined {
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
    .filter(({ kind }) => pricedKinds.has(kind))
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

/** When the instance began to cost; undefined if it was not launched. */
function launchedAt(claim: NodeClaim): number | undefined {
  if ((claim.status?.providerID ?? '') === '') return undefined
  const launched = conditionOf(claim, 'Launched')
  const atMs = Date.parse(launched?.lastTransitionTime ?? claim.metadata.creationTimestamp ?? '')
  return Number.isNaN(atMs) ? undefined : atMs
}
