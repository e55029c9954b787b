import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry, JournalShare } from '@tenon/operator'
import { assert as holds, integer, property } from 'fast-check'
import { SpendLedger, type SpendQuery, type Spent } from './spend-ledger.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const startMs = Date.parse('2026-11-02T00:00:00Z')
const days = 14
const endMs = startMs + days * dayMs
const edges = Array.from({ length: days + 1 }, (_, day) => startMs + day * dayMs)

/** Numbers from 0 to 1 that a seed repeats. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface Instance {
  readonly pool: string
  price: number
  readonly fromMs: number
}

/** A cluster that writes its journal, and what it has really cost. */
class Cluster {
  readonly entries: JournalEntry[] = []
  /** By currency, then by day. */
  readonly cost = new Map<string, number[]>()
  readonly instances = new Map<string, Instance>()
  nowMs = startMs
  currency = 'EUR'
  #count = 0

  note(kind: JournalEntry['kind'], more: Partial<JournalEntry>): void {
    const id = `e${this.#count++}`
    const at = new Date(this.nowMs).toISOString()
    this.entries.push({ id, at, kind, reason: 'R', message: 'm', nodeClaims: [], nodes: [], ...more })
  }

  pass(ms: number): void {
    const toMs = Math.min(endMs, this.nowMs + ms)
    for (const { price } of this.instances.values()) this.#bill(price, this.nowMs, toMs)
    this.nowMs = toMs
  }

  #bill(price: number, fromMs: number, toMs: number): void {
    const cost = this.cost.get(this.currency) ?? Array.from({ length: days }, () => 0)
    this.cost.set(this.currency, cost)
    for (let day = 0; day < days; day++) {
      const [start = 0, end = 0] = [edges[day], edges[day + 1]]
      const ms = Math.min(end, toMs) - Math.max(start, fromMs)
      if (ms > 0) cost[day] = (cost[day] ?? 0) + (price * ms) / hourMs
    }
  }

  launch(pool: string, price: number): string {
    const name = `${pool}-${this.#count}`
    this.instances.set(name, { pool, price, fromMs: this.nowMs })
    return name
  }

  priced(kind: 'launched' | 'registered' | 'initialized', name: string, isKnown = true): void {
    const { pool = '', price = 0 } = this.instances.get(name) ?? {}
    const pricePerHour = isKnown ? { after: price } : {}
    this.note(kind, { nodeClaims: [name], nodePool: pool, pricePerHour, currency: this.currency })
  }

  remove(name: string, isWritten = true): void {
    const { pool: nodePool = '', price: before = 0 } = this.instances.get(name) ?? {}
    this.instances.delete(name)
    if (!isWritten) return
    const { currency } = this
    this.note('removed', { nodeClaims: [name], nodePool, pricePerHour: { before, after: 0 }, currency })
  }

  spend(): void {
    const pools = Map.groupBy(this.instances.values(), ({ pool }) => pool)
    this.note('spend', {
      currency: this.currency,
      spend: Array.from(pools, ([nodePool, own]) => {
        const pricePerHour = own.reduce((sum, { price }) => sum + price, 0)
        const share = (namespace: string, workload: string, part: number): JournalShare => ({
          namespace,
          workload,
          pricePerHour: part * pricePerHour,
          labels: { team: namespace },
        })
        return {
          nodePool,
          pricePerHour,
          unpriced: 0,
          shares: [share('shop', 'deployment/web', 0.5), share('data', 'job/etl', 0.2)],
        }
      }),
    })
  }
}

function ledgerOf(entries: readonly JournalEntry[]): SpendLedger {
  const ledger = new SpendLedger()
  for (const entry of entries) ledger.add(entry)
  return ledger
}

function spent(ledger: SpendLedger, query: Partial<SpendQuery> = {}): Spent {
  const work = ledger.spending({ by: 'nodepool', edges, nowMs: endMs, currency: 'EUR', ...query })
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}

const sum = (amounts: readonly number[]) => amounts.reduce((all, each) => all + each, 0)

function near(actual: number, expected: number, what: string): void {
  assert.ok(
    Math.abs(actual - expected) <= 1e-6 * Math.max(1, Math.abs(expected)),
    `${what}: ${actual}, not ${expected}`,
  )
}

/** Two weeks with launches, removals, new prices, restarts that read entries again, and another currency. */
function twoWeeks(seed: number): Cluster {
  const random = randomOf(seed)
  const cluster = new Cluster()
  const pick = (names: Iterable<string>) => {
    const all = [...names]
    return all[Math.floor(random() * all.length)]
  }
  const changeMs = startMs + random() * days * dayMs
  cluster.spend()
  while (cluster.nowMs < endMs) {
    const unpriced: string[] = []
    const what = random()
    const name = pick(cluster.instances.keys())
    if (what < 0.4) {
      const launched = cluster.launch(`pool-${Math.floor(random() * 3)}`, Math.ceil(random() * 5000) / 1e4)
      const isKnown = random() < 0.7
      cluster.priced('launched', launched, isKnown)
      if (!isKnown) unpriced.push(launched)
    } else if (what < 0.65 && name !== undefined) cluster.remove(name)
    else if (what < 0.7) {
      // The process dies before it writes that an instance is gone; the next one notes what is there.
      if (name !== undefined) cluster.remove(name, false)
      cluster.spend()
    } else if (what < 0.75) {
      for (const instance of cluster.instances.values()) instance.price *= 0.5 + random()
      cluster.spend()
    } else if (what < 0.8) cluster.entries.push(...cluster.entries.slice(-Math.ceil(random() * 20)))
    else if (what < 0.9) cluster.spend()
    for (const each of unpriced) {
      cluster.pass(random() * 60_000)
      cluster.priced('registered', each)
    }
    cluster.pass(random() * 12 * hourMs)
    if (cluster.currency === 'EUR' && cluster.nowMs > changeMs) {
      for (const instance of cluster.instances.values()) instance.price *= 1.1
      cluster.currency = 'USD'
      cluster.spend()
    }
  }
  return cluster
}

test('PGE-4 spend by day adds up to the integral of prices, over restarts and a change of currency', () => {
  holds(
    property(integer(), (seed) => {
      const cluster = twoWeeks(seed)
      const ledger = ledgerOf(cluster.entries)
      for (const [currency, cost] of cluster.cost) {
        const pools = spent(ledger, { currency })
        for (const [day, amount] of cost.entries()) near(pools.total[day] ?? 0, amount, `day ${day}`)
        for (const query of [
          { by: 'nodepool' },
          { by: 'namespace' },
          { by: 'workload' },
          { by: 'label', label: 'team' },
          { by: 'label', label: '__proto__' },
        ] as const) {
          const parts = spent(ledger, { ...query, currency })
          const groups = parts.groups.map(({ amounts }) => sum(amounts))
          near(sum(groups) + sum(parts.idle) + sum(parts.undivided), sum(cost), query.by)
        }
      }
    }),
    { numRuns: 1000 },
  )
})

test('PGE-4 each workload, namespace and label has its part, and what no pod requests is idle', () => {
  const cluster = new Cluster()
  const name = cluster.launch('general', 1)
  cluster.priced('launched', name)
  cluster.pass(dayMs)
  cluster.spend()
  cluster.pass(dayMs)
  cluster.remove(name)
  const ledger = ledgerOf(cluster.entries)
  const workloads = spent(ledger, { by: 'workload' })
  assert.deepEqual(
    workloads.groups.map((group) => [
      group.name,
      ...group.amounts.slice(0, 3).map((each) => each.toFixed(6)),
    ]),
    [
      ['shop/deployment/web', '0.000000', '12.000000', '0.000000'],
      ['data/job/etl', '0.000000', '4.800000', '0.000000'],
    ],
  )
  assert.equal(workloads.undivided[0], 24)
  near(workloads.idle[1] ?? 0, 7.2, 'idle')
  const [general] = spent(ledger).groups
  near(general?.idle ?? 0, 7.2, 'idle of the NodePool')
  assert.deepEqual(
    spent(ledger, { by: 'label', label: 'team' }).groups.map((group) => group.name),
    ['shop', 'data'],
  )
  assert.deepEqual(
    spent(ledger, { by: 'label', label: 'app' }).groups.map((group) => group.name),
    [undefined],
  )
  assert.deepEqual(ledger.labelKeys(), ['team'])
})

test('PGE-4 instances older than the journal count from the first entry that has them, and unknown prices in no sum', () => {
  const cluster = new Cluster()
  cluster.note('spend', {
    currency: 'EUR',
    spend: [{ nodePool: 'old', pricePerHour: 2, unpriced: 3, shares: [] }],
  })
  const { total, unpricedHours } = spent(ledgerOf(cluster.entries))
  near(sum(total), 2 * 24 * days, 'of the price that is known')
  near(unpricedHours, 3 * 24 * days, 'hours')
})

test('PGE-4 a ledger of two weeks with 5,000 nodes answers in short steps', () => {
  const cluster = new Cluster()
  const names = Array.from({ length: 5000 }, (_, at) =>
    cluster.launch(`pool-${at % 20}`, 0.1 + (at % 7) / 100),
  )
  for (const name of names) cluster.priced('launched', name)
  for (let hour = 0; hour < 24 * days; hour++) {
    cluster.spend()
    for (let at = 0; at < 40; at++) {
      cluster.remove(names[(hour * 40 + at) % names.length] ?? '')
      cluster.priced('launched', cluster.launch(`pool-${at % 20}`, 0.2))
    }
    cluster.nowMs += hourMs
  }
  const ledger = ledgerOf(cluster.entries)
  const work = ledger.spending({ by: 'workload', edges, nowMs: endMs, currency: 'EUR' })
  let steps = 0
  while (work.next().done !== true) steps++
  // No step is about more than one NodeClaim.
  assert.ok(steps >= names.length + 40 * 24 * days)
})
