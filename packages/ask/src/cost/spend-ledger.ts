/**
 * What was spent, from the journal (page.md 2). Between two entries of kind `spend`, launches and removals change the price of
 * a NodePool; a `spend` entry says what it is, which corrects lost entries, new prices and another currency.
 */
import { ownValue, sumOfPrices } from '@tenon/api'
import type { JournalEntry, JournalKind, JournalSpend } from '@tenon/operator'
import { NewEntries } from './new-entries.ts'

/** The price of the instances of a NodePool from a time on. */
interface Step {
  readonly atMs: number
  readonly pool: PoolRate
  perHour: number
  unpriced: number
  readonly currency: string
}

/** Who uses the NodePools from a time on. */
interface Division {
  readonly atMs: number
  readonly pools: ReadonlyMap<PoolRate, readonly Part[]>
}

/** The part of a NodePool's price that a workload requests, up to 1. What is left is idle. */
interface Part {
  readonly namespace: string
  readonly workload: string
  readonly part: number
}

interface Claim {
  readonly pool: PoolRate
  readonly fromMs: number
  pricePerHour: number | undefined
}

/** A NodePool now. */
interface PoolRate {
  readonly name: string
  readonly claims: Set<Claim>
  /** Of {@link claims}. */
  perHour: number
  unpriced: number
  currency: string
  /** What its instances cost beside {@link claims}: they are older than the journal, or it lost their end. */
  others: number
  othersUnpriced: number
}

export const spendDimensions = ['nodepool', 'namespace', 'workload', 'label'] as const
export type SpendDimension = (typeof spendDimensions)[number]

export interface SpendQuery {
  readonly by: SpendDimension
  /** For `label`. */
  readonly label?: string
  /** Bounds of the periods, in Unix milliseconds; ascending. */
  readonly edges: readonly number[]
  /** Nothing is spent yet after it. */
  readonly nowMs: number
  readonly currency: string
}

export interface SpendGroup {
  /** Absent for what has no such label or NodePool. */
  readonly name?: string
  /** Per period. By NodePool with what is idle. */
  readonly amounts: readonly number[]
  /** Of {@link amounts} together: what no pod requests; 0 unless by NodePool. */
  readonly idle: number
}

/** Amounts in the currency. They add up: total = groups + idle + undivided. */
export interface Spent {
  /** Most expensive first. */
  readonly groups: readonly SpendGroup[]
  /** Per period: what no pod requests; 0 by NodePool. */
  readonly idle: readonly number[]
  /** Per period, before the journal says who uses the nodes; 0 by NodePool. */
  readonly undivided: readonly number[]
  readonly total: readonly number[]
  /** Hours of instances of unknown price, which no amount includes. */
  readonly unpricedHours: number
}

/** They are about one NodeClaim with an instance. */
const pricedKinds: ReadonlySet<JournalKind> = new Set(['launched', 'registered', 'initialized'])

const hourMs = 3_600_000
/** Bounds memory to some 30 MiB; two weeks with 5,000 launches a day have 140,000. */
const mostSteps = 300_000
const mostDivisions = 3_000
/** The first instance of a kind is priced shortly after its launch. */
const mostPricedBack = 5_000
/** Prices of instances are compared with the sum that the controller noted. */
const tolerance = 1e-9

/** Entries are added oldest first; older ones than the last are ignored, as a journal is read again after a cut. */
export class SpendLedger {
  readonly #pools = new Map<string, PoolRate>()
  readonly #claims = new Map<string, Claim>()
  readonly #labels = new Map<string, Readonly<Record<string, string>>>()
  #steps: Step[] = []
  #divisions: Division[] = []
  /** When each came up. */
  readonly #currencies = new Map<string, number>()
  #fromMs: number | undefined
  readonly #new = new NewEntries()

  /** The time of the oldest entry; undefined if there is none. */
  get fromMs(): number | undefined {
    return this.#fromMs
  }

  /** Since when the journal says who uses the nodes; undefined if it does not. */
  get dividedFromMs(): number | undefined {
    return this.#divisions[0]?.atMs
  }

  /** In the order in which they came up; `''` if the provider names none. */
  currencies(): readonly string[] {
    return [...this.#currencies.keys()]
  }

  /** Since when instances cost something in this currency; undefined if they never did. */
  firstMs(currency: string): number | undefined {
    return this.#currencies.get(currency)
  }

  /** Keys that pods have or had. */
  labelKeys(): readonly string[] {
    return [...new Set([...this.#labels.values()].flatMap((labels) => Object.keys(labels)))].toSorted()
  }

  add(entry: JournalEntry): void {
    const atMs = Date.parse(entry.at)
    if (entry.observed === true || !this.#new.take(entry.id, atMs)) return
    this.#fromMs ??= atMs
    const currency = entry.currency ?? ''
    if (pricedKinds.has(entry.kind)) this.#price(entry, currency, atMs)
    else if (entry.kind === 'removed')
      for (const name of entry.nodeClaims) this.#remove(name, entry, currency, atMs)
    else if (entry.kind === 'spend') this.#correct(entry.spend ?? [], currency, atMs)
  }

  #price({ nodeClaims, nodePool = '', pricePerHour }: JournalEntry, currency: string, atMs: number): void {
    const [name] = nodeClaims
    const price = pricePerHour?.after
    if (name === undefined) return
    let claim = this.#claims.get(name)
    if (claim === undefined) {
      const pool = this.#pool(nodePool, currency)
      // What is still in another currency stays so until the controller says what it costs now.
      if (pool.claims.size === 0 && pool.others === 0) pool.currency = currency
      claim = { pool, fromMs: atMs, pricePerHour: price }
      pool.claims.add(claim)
      this.#claims.set(name, claim)
      if (price === undefined) pool.unpriced++
      else pool.perHour += price
      this.#step(pool, atMs)
      return
    }
    if (price === undefined || claim.pricePerHour === price || claim.pool.currency !== currency) return
    this.#reprice(claim, price, atMs)
  }

  #reprice(claim: Claim, price: number, atMs: number): void {
    const { pool, pricePerHour } = claim
    pool.perHour += price - (pricePerHour ?? 0)
    claim.pricePerHour = price
    if (pricePerHour === undefined) {
      pool.unpriced--
      this.#priceBack(claim, price)
    }
    this.#step(pool, atMs)
  }

  /** It has cost as much since its launch. */
  #priceBack({ fromMs, pool }: Claim, price: number): void {
    for (let at = this.#steps.length - 1; at >= Math.max(0, this.#steps.length - mostPricedBack); at--) {
      const step = this.#steps[at]
      if (step === undefined || step.atMs < fromMs) return
      if (step.pool !== pool || step.currency !== pool.currency) continue
      step.perHour += price
      step.unpriced = Math.max(0, step.unpriced - 1)
    }
  }

  #remove(name: string, { nodePool = '', pricePerHour }: JournalEntry, currency: string, atMs: number): void {
    const claim = this.#claims.get(name)
    const pool = claim?.pool ?? this.#pools.get(nodePool)
    if (pool === undefined) return
    // The price may have changed since the launch.
    const before = pool.currency === currency ? pricePerHour?.before : undefined
    if (claim === undefined) pool.others = Math.max(0, pool.others - (before ?? 0))
    else {
      this.#claims.delete(name)
      pool.claims.delete(claim)
      if (claim.pricePerHour === undefined) pool.unpriced--
      else {
        pool.perHour = pool.claims.size === 0 ? 0 : pool.perHour - claim.pricePerHour
        pool.others += claim.pricePerHour - (before ?? claim.pricePerHour)
      }
    }
    this.#step(pool, atMs)
  }

  #correct(spend: readonly JournalSpend[], currency: string, atMs: number): void {
    const noted = new Map(spend.map((each) => [each.nodePool, each]))
    const parts = new Map<PoolRate, readonly Part[]>()
    for (const name of new Set([...this.#pools.keys(), ...noted.keys()])) {
      const pool = this.#pool(name, currency)
      const { pricePerHour = 0, shares = [], unpriced = 0 } = noted.get(name) ?? {}
      if (!noted.has(name)) this.#forget(pool)
      this.#settle(pool, { pricePerHour, unpriced }, currency)
      this.#step(pool, atMs)
      parts.set(
        pool,
        shares.map(({ namespace, pricePerHour: share, workload }) => ({
          namespace,
          workload,
          part: pricePerHour === 0 ? 0 : share / pricePerHour,
        })),
      )
      for (const { labels, namespace, workload } of shares)
        if (labels !== undefined) this.#labels.set(`${namespace}/${workload}`, labels)
    }
    this.#divisions.push({ atMs, pools: parts })
    if (this.#divisions.length > mostDivisions) this.#divisions.splice(0, mostDivisions / 10)
  }

  /** Takes over what the controller says. */
  #settle(
    pool: PoolRate,
    { pricePerHour, unpriced }: Pick<JournalSpend, 'pricePerHour' | 'unpriced'>,
    currency: string,
  ): void {
    // Added up again, as rounding errors gather.
    const known = sumOfPrices(Array.from(pool.claims, (claim) => claim.pricePerHour))
    if (pool.currency === currency || known.pricePerHour === 0) {
      const others = pricePerHour - known.pricePerHour
      pool.perHour = known.pricePerHour
      pool.others = Math.abs(others) <= tolerance * Math.max(1, pricePerHour) ? 0 : others
    } else {
      const factor = pricePerHour / known.pricePerHour
      for (const claim of pool.claims) if (claim.pricePerHour !== undefined) claim.pricePerHour *= factor
      pool.perHour = pricePerHour
      pool.others = 0
    }
    pool.currency = currency
    pool.unpriced = known.unpriced
    pool.othersUnpriced = unpriced - known.unpriced
  }

  /** The NodePool has no instances, whatever the journal lost. */
  #forget(pool: PoolRate): void {
    if (pool.claims.size === 0) return
    for (const [name, claim] of this.#claims) if (claim.pool === pool) this.#claims.delete(name)
    pool.claims.clear()
  }

  #pool(name: string, currency: string): PoolRate {
    let pool = this.#pools.get(name)
    if (pool === undefined) {
      pool = { name, claims: new Set(), perHour: 0, unpriced: 0, currency, others: 0, othersUnpriced: 0 }
      this.#pools.set(name, pool)
    }
    return pool
  }

  #step(pool: PoolRate, atMs: number): void {
    const { currency, others, othersUnpriced } = pool
    if (!this.#currencies.has(currency)) this.#currencies.set(currency, atMs)
    this.#steps.push({
      atMs,
      pool,
      perHour: Math.max(0, pool.perHour + others),
      unpriced: Math.max(0, pool.unpriced + othersUnpriced),
      currency,
    })
    if (this.#steps.length > mostSteps) this.#dropOldest()
  }

  /** The prices at the new beginning stand for those before. */
  #dropOldest(): void {
    const dropped = this.#steps.splice(0, mostSteps / 10)
    const first = this.#steps[0]?.atMs ?? 0
    const last = new Map(dropped.map((step) => [step.pool, step]))
    this.#steps.unshift(...Array.from(last.values(), (step) => ({ ...step, atMs: first })))
    this.#fromMs = first
  }

  /** The price per hour of all instances now, in the currency of each. */
  now(): ReadonlyMap<string, number> {
    const sums = new Map<string, number>()
    for (const { currency, others, perHour } of this.#pools.values())
      sums.set(currency, (sums.get(currency) ?? 0) + Math.max(0, perHour + others))
    return sums
  }

  /** In short steps, so that others run meanwhile. */
  *spending(query: SpendQuery): Generator<undefined, Spent, undefined> {
    const sums = new SpendSums(query, this.#labels)
    let divisions = 0
    let isDivided: Division | undefined
    for (const step of this.#steps) {
      for (let next = this.#divisions[divisions]; next !== undefined && next.atMs <= step.atMs; ) {
        sums.divide(isDivided?.pools, next.atMs)
        isDivided = next
        next = this.#divisions[++divisions]
        yield
      }
      sums.step(step)
      yield
    }
    for (const next of this.#divisions.slice(divisions)) {
      sums.divide(isDivided?.pools, next.atMs)
      isDivided = next
      yield
    }
    sums.divide(isDivided?.pools, query.nowMs)
    return sums.result()
  }
}

type Amounts = number[]

interface Running {
  perHour: number
  unpriced: number
  fromMs: number
}

/** Sums up steps and divisions by period. */
class SpendSums {
  readonly #query: SpendQuery
  readonly #labels: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly #running = new Map<PoolRate, Running>()
  /** What was spent since the last division. */
  readonly #open = new Map<PoolRate, Map<number, number>>()
  readonly #groups = new Map<string | undefined, { readonly amounts: Amounts; idle: number }>()
  readonly #idle: Amounts
  readonly #undivided: Amounts
  readonly #total: Amounts
  #unpricedHours = 0

  constructor(query: SpendQuery, labels: ReadonlyMap<string, Readonly<Record<string, string>>>) {
    this.#query = query
    this.#labels = labels
    this.#idle = this.#zeros()
    this.#undivided = this.#zeros()
    this.#total = this.#zeros()
  }

  #zeros(): Amounts {
    return Array.from({ length: Math.max(0, this.#query.edges.length - 1) }, () => 0)
  }

  step({ atMs, currency, perHour, pool, unpriced }: Step): void {
    this.#spend(pool, atMs)
    const isCounted = currency === this.#query.currency
    this.#running.set(pool, {
      perHour: isCounted ? perHour : 0,
      unpriced: isCounted ? unpriced : 0,
      fromMs: atMs,
    })
  }

  /** @param parts who used the NodePools until `atMs`. */
  divide(parts: Division['pools'] | undefined, atMs: number): void {
    for (const pool of this.#running.keys()) this.#spend(pool, atMs)
    for (const [pool, amounts] of this.#open) this.#share(pool, amounts, parts?.get(pool))
    this.#open.clear()
  }

  result(): Spent {
    const totalOf = ({ amounts }: SpendGroup) => sumOf(amounts)
    return {
      groups: Array.from(this.#groups, ([name, group]) => ({
        ...(name !== undefined && { name }),
        ...group,
      })).toSorted((a, b) => totalOf(b) - totalOf(a) || ((a.name ?? '') < (b.name ?? '') ? -1 : 1)),
      idle: this.#idle,
      undivided: this.#undivided,
      total: this.#total,
      unpricedHours: this.#unpricedHours,
    }
  }

  #spend(pool: PoolRate, toMs: number): void {
    const running = this.#running.get(pool)
    if (running === undefined) return
    const { edges, nowMs } = this.#query
    const { fromMs, perHour, unpriced } = running
    const [first = nowMs, last = nowMs] = [edges[0], edges.at(-1)]
    const [from, to] = [Math.max(fromMs, first), Math.min(toMs, last, nowMs)]
    running.fromMs = Math.max(fromMs, toMs)
    if (to <= from) return
    this.#unpricedHours += (unpriced * (to - from)) / hourMs
    if (perHour === 0) return
    const amounts = this.#open.get(pool) ?? new Map<number, number>()
    this.#open.set(pool, amounts)
    for (let at = periodAt(edges, from); at < edges.length - 1; at++) {
      const [start = 0, end = 0] = [edges[at], edges[at + 1]]
      if (start >= to) break
      const amount = (perHour * (Math.min(end, to) - Math.max(start, from))) / hourMs
      amounts.set(at, (amounts.get(at) ?? 0) + amount)
      this.#total[at] = (this.#total[at] ?? 0) + amount
    }
  }

  #share(pool: PoolRate, amounts: ReadonlyMap<number, number>, parts: readonly Part[] | undefined): void {
    // Requests beyond what nodes have share all of it.
    const all = parts?.reduce((sum, { part }) => sum + part, 0) ?? 0
    const requested = Math.min(1, all)
    if (this.#query.by === 'nodepool') {
      const group = this.#group(pool.name === '' ? undefined : pool.name)
      addTo(group.amounts, amounts, 1)
      if (parts !== undefined) group.idle += (1 - requested) * sumOf(amounts.values())
      return
    }
    if (parts === undefined) {
      addTo(this.#undivided, amounts, 1)
      return
    }
    addTo(this.#idle, amounts, 1 - requested)
    for (const each of parts)
      if (each.part > 0) addTo(this.#group(this.#nameOf(each)).amounts, amounts, each.part / Math.max(1, all))
  }

  #group(name: string | undefined): { readonly amounts: Amounts; idle: number } {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = { amounts: this.#zeros(), idle: 0 }
      this.#groups.set(name, group)
    }
    return group
  }

  #nameOf({ namespace, workload }: Part): string | undefined {
    const { by, label = '' } = this.#query
    if (by === 'namespace') return namespace === '' ? undefined : namespace
    if (by === 'workload') return workload === '' ? undefined : `${namespace}/${workload}`
    const labels = this.#labels.get(`${namespace}/${workload}`)
    return ownValue(labels, label)
  }
}

function addTo(sums: Amounts, amounts: ReadonlyMap<number, number>, factor: number): void {
  for (const [at, amount] of amounts) sums[at] = (sums[at] ?? 0) + amount * factor
}

function sumOf(amounts: Iterable<number>): number {
  let sum = 0
  for (const amount of amounts) sum += amount
  return sum
}

/** The period that a time is in. */
function periodAt(edges: readonly number[], atMs: number): number {
  let [low, high] = [0, edges.length - 1]
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((edges[middle] ?? 0) <= atMs) low = middle
    else high = middle
  }
  return low
}
