/** What was spent, by period and group, and what it will be (page.md 2). */
import { type SpendDimension, spendDimensions, type SpendGroup, type Spent } from '@tenon/ask/cost'
import type { FoldedDecision } from '../model/folded-decisions.ts'
import type { Past } from '../model/past.ts'

interface SpendQuestion {
  readonly by: SpendDimension
  readonly label: string
  /** The latest one if undefined. */
  readonly currency: string | undefined
  /** Bounds of the periods, in Unix milliseconds; ascending. */
  readonly edges: readonly number[]
  /** Beginnings of the day, the month and the next month where the user is. */
  readonly midnightMs: number
  readonly monthMs: number
  readonly monthEndMs: number
}

/** Amounts in the currency; times in Unix milliseconds. */
export interface SpendAnswer extends Omit<Spent, 'unpricedHours'> {
  readonly by: SpendDimension
  readonly currency: string
  readonly currencies: readonly string[]
  /** Labels to choose from. */
  readonly labels: readonly string[]
  readonly edges: readonly number[]
  readonly takenAtMs: number
  /** Groups beyond those listed, which are together in the last one. */
  readonly moreGroups: number
  readonly unpricedHours: number
  /** Of now. */
  readonly pricePerHour: number
  readonly figures: SpendFigures
  /** When the journal begins: what was spent before is unknown. */
  readonly fromMs?: number
  /** Since when it says who uses the nodes. */
  readonly dividedFromMs?: number
  /** Whether older entries are still being read. */
  readonly isReading: boolean
  /** Groups that cost more, or less, than in the seven days before; the largest changes first. */
  readonly weeks: readonly WeekChange[]
  /** What changed the price most within the periods. */
  readonly changes: readonly FoldedDecision[]
}

export interface WeekChange {
  readonly kind: 'group' | 'idle' | 'undivided'
  /** Absent for what has no such label or NodePool. */
  readonly name?: string
  readonly before: number
  readonly last: number
}

export interface SpendFigures {
  readonly today: number
  readonly month: number
  readonly last30Days: number
  readonly last7Days: number
  /** The seven days before these. */
  readonly before7Days: number
  readonly forecast: Forecast
}

/** To the end of the month: what was spent, and a mean per hour for the hours that are left. */
interface Forecast {
  readonly amount: number
  readonly spent: number
  readonly meanPerHour: number
  /** That the mean is of: up to seven days, as far as the journal knows them. 0: the price of now. */
  readonly meanHours: number
  readonly hoursLeft: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const mostEdges = 400
const mostGroups = 200
const mostChanges = 12
const mostWeekChanges = 8
/** The mean of less is no better than the price of now. */
const leastMeanHours = 1

/** @returns a problem, a clause without a full stop, of a question that has no answer. */
export function spendQuestion(asked: URLSearchParams): SpendQuestion | { readonly problem: string } {
  const by = spendDimensions.find((each) => each === (asked.get('by') ?? 'nodepool'))
  if (by === undefined) return { problem: `by: use one of ${spendDimensions.join(', ')}` }
  const edges = (asked.get('edges') ?? '').split(',').map(Number)
  const isAscending = edges.every((edge, at) => Number.isFinite(edge) && edge > (edges[at - 1] ?? -1))
  if (edges.length < 2 || edges.length > mostEdges || !isAscending)
    return { problem: `edges: use 2 to ${mostEdges} ascending times in milliseconds` }
  const times = ['midnight', 'month', 'monthEnd'].map((name) => Number(asked.get(name) ?? 'none'))
  const [midnightMs, monthMs, monthEndMs] = times
  if (
    midnightMs === undefined ||
    monthMs === undefined ||
    monthEndMs === undefined ||
    !times.every(Number.isFinite)
  )
    return { problem: 'midnight, month and monthEnd: use times in milliseconds' }
  const currency = asked.get('currency') ?? undefined
  return { by, label: asked.get('label') ?? '', currency, edges, midnightMs, monthMs, monthEndMs }
}

/** In short steps. */
export function* spendAnswer(
  { decisions, isReading, spend }: Past,
  { by, currency: wanted, edges, label, midnightMs, monthEndMs, monthMs }: SpendQuestion,
  nowMs: number,
): Generator<undefined, SpendAnswer, undefined> {
  const currencies = spend.currencies()
  const currency = currencies.find((each) => each === wanted) ?? currencies.at(-1) ?? ''
  const { groups, ...spent } = yield* spend.spending({ by, label, edges, nowMs, currency })
  const bounds = [nowMs - 30 * dayMs, nowMs - 14 * dayMs, nowMs - 7 * dayMs, midnightMs, monthMs, nowMs]
  const parts = [...new Set(bounds)].filter((ms) => ms <= nowMs).toSorted((a, b) => a - b)
  const { total } = yield* spend.spending({ by: 'nodepool', edges: parts, nowMs, currency })
  const week = yield* spend.spending({
    by,
    label,
    edges: [nowMs - 14 * dayMs, nowMs - 7 * dayMs, nowMs],
    nowMs,
    currency,
  })
  const between = (fromMs: number, toMs: number) =>
    total.reduce(
      (sum, each, at) => sum + ((parts[at] ?? 0) >= fromMs && (parts[at + 1] ?? 0) <= toMs ? each : 0),
      0,
    )
  const pricePerHour = spend.now().get(currency) ?? 0
  const last7Days = between(nowMs - 7 * dayMs, nowMs)
  const month = between(monthMs, nowMs)
  const knownMs = Math.max(spend.firstMs(currency) ?? nowMs, nowMs - 7 * dayMs)
  const hours = (nowMs - knownMs) / hourMs
  const isMean = hours >= leastMeanHours && pricePerHour > 0
  const meanPerHour = isMean ? last7Days / hours : pricePerHour
  const hoursLeft = Math.max(0, monthEndMs - nowMs) / hourMs
  const { fromMs, dividedFromMs } = spend
  return {
    by,
    currency,
    currencies,
    labels: spend.labelKeys(),
    edges,
    takenAtMs: nowMs,
    ...listed(groups),
    ...spent,
    pricePerHour,
    figures: {
      today: between(midnightMs, nowMs),
      month,
      last30Days: between(nowMs - 30 * dayMs, nowMs),
      last7Days,
      before7Days: between(nowMs - 14 * dayMs, nowMs - 7 * dayMs),
      forecast: {
        amount: month + meanPerHour * hoursLeft,
        spent: month,
        meanPerHour,
        meanHours: isMean ? hours : 0,
        hoursLeft,
      },
    },
    ...(fromMs !== undefined && { fromMs }),
    ...(dividedFromMs !== undefined && { dividedFromMs }),
    isReading,
    weeks: weekChanges(week),
    changes: decisions.largest({ fromMs: edges[0] ?? 0, toMs: edges.at(-1) ?? 0, currency }, mostChanges),
  }
}

function weekChanges({ groups, idle, undivided }: Spent): readonly WeekChange[] {
  const changeOf = ([before = 0, last = 0]: readonly number[]) => ({ before, last })
  const size = ({ before, last }: WeekChange) => Math.abs(last - before)
  return [
    ...groups.map(
      ({ amounts, name }): WeekChange => ({
        kind: 'group',
        ...(name !== undefined && { name }),
        ...changeOf(amounts),
      }),
    ),
    { kind: 'idle' as const, ...changeOf(idle) },
    { kind: 'undivided' as const, ...changeOf(undivided) },
  ]
    .filter((change) => size(change) > 0)
    .toSorted((a, b) => size(b) - size(a))
    .slice(0, mostWeekChanges)
}

/** The smallest groups are summed up. */
function listed(groups: readonly SpendGroup[]): Pick<SpendAnswer, 'groups' | 'moreGroups'> {
  const [first, rest] = [groups.slice(0, mostGroups), groups.slice(mostGroups)]
  if (rest.length === 0) return { groups, moreGroups: 0 }
  const others = rest.reduce((sum, { amounts, idle }) => ({
    amounts: sum.amounts.map((each, at) => each + (amounts[at] ?? 0)),
    idle: sum.idle + idle,
  }))
  return { groups: [...first, { ...others, name: `${rest.length} smaller ones` }], moreGroups: rest.length }
}
