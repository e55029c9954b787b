/**
 * The minimum cost of pods on whole nodes. The columns of a linear program are the ways to fill a node, which
 * are generated on demand (column generation). A way may be bought in fractions; nodes and pods are whole
 * within it.
 */
import type { Resources } from '@tenon/api'
import { LinearProgram } from '../scheduling/linear-program.ts'

/** Pods with equal requests. */
export interface TraceShape {
  readonly requests: Resources
  /** Averaged over an hour. */
  readonly count: number
}

/** A type and its limits of pods per node. */
export interface WholeType {
  readonly capacity: Resources
  readonly pricePerHour: number
}

/** A way to fill a node. */
interface Filling {
  readonly pricePerHour: number
  /** The last question that used it. */
  usedAt: number
  /** Number of pods by name of their shape. */
  readonly counts: ReadonlyMap<string, number>
}

/** Ways that were not used for this many questions are dropped. */
const questionsKept = 24
/** The bound is at most this fraction below the minimum cost. */
const gap = 1e-4
/** Scales amounts, as the solver needs similar magnitudes. */
const units: Resources = { cpu: 1000, memory: 1024 ** 3, 'ephemeral-storage': 1024 ** 3 }

export class WholeNodes {
  readonly #types: readonly WholeType[]
  /** The ways found so far: nearly all are useful again in the next hour. */
  #fillings: Filling[] = []
  #question = 0

  constructor(types: readonly WholeType[]) {
    this.#types = types
  }

  /**
   * A lower bound of the price per hour of these pods.
   * @throws Error if one of them fits no type.
   */
  async leastPrice(shapes: ReadonlyMap<string, TraceShape>): Promise<number> {
    if (shapes.size === 0) return 0
    this.#question++
    this.#fillings = this.#fillings.filter(({ usedAt }) => this.#question - usedAt <= questionsKept)
    for (const [name, shape] of shapes) this.#fillings.push(this.#alone(name, shape))
    let least = 0
    for (;;) {
      const { cost, worth } = await this.#cheapest(shapes)
      // By how much the cost may be too high: the value of the best way relative to its price.
      let most = 1
      for (const type of this.#types) {
        const filling = await fullest(type, shapes, worth)
        if (filling === undefined) continue
        most = Math.max(most, filling.value / type.pricePerHour)
        if (filling.value > type.pricePerHour)
          this.#fillings.push({
            pricePerHour: type.pricePerHour,
            counts: filling.counts,
            usedAt: this.#question,
          })
      }
      least = Math.max(least, cost / most)
      if (least >= cost * (1 - gap)) return least
    }
  }

  /** A node of the cheapest type for one pod. */
  #alone(name: string, { requests }: TraceShape): Filling {
    const prices = this.#types
      .filter(({ capacity }) => fits(requests, capacity))
      .map(({ pricePerHour }) => pricePerHour)
    if (prices.length === 0) throw new Error(`no type has ${JSON.stringify(requests)}`)
    return { pricePerHour: Math.min(...prices), counts: new Map([[name, 1]]), usedAt: this.#question }
  }

  /** The cost of the pods with the known ways, and the dual price of each shape. */
  async #cheapest(
    shapes: ReadonlyMap<string, TraceShape>,
  ): Promise<{ readonly cost: number; readonly worth: ReadonlyMap<string, number> }> {
    const problem = new LinearProgram()
    const rows = new Map(
      Array.from(shapes, ([name, { count }]) => [name, problem.addRow(count, Number.POSITIVE_INFINITY)]),
    )
    for (const { counts, pricePerHour } of this.#fillings)
      problem.addColumn(
        pricePerHour,
        [...counts].flatMap(([name, count]): [row: number, value: number][] => {
          const row = rows.get(name)
          return row === undefined ? [] : [[row, count]]
        }),
      )
    const { cost, values, rowPrices } = await problem.solve()
    for (const [at, filling] of this.#fillings.entries())
      if ((values[at] ?? 0) > 0) filling.usedAt = this.#question
    return { cost, worth: new Map(Array.from(rows, ([name, row]) => [name, rowPrices[row] ?? 0])) }
  }
}

/** The most valuable way to fill a node of the type; undefined if it cannot be worth more than its price. */
async function fullest(
  { capacity, pricePerHour }: WholeType,
  shapes: ReadonlyMap<string, TraceShape>,
  worth: ReadonlyMap<string, number>,
): Promise<{ readonly value: number; readonly counts: ReadonlyMap<string, number> } | undefined> {
  const goods = [...shapes].flatMap(([name, { requests }]) => {
    const value = worth.get(name) ?? 0
    return value > 0 && fits(requests, capacity) ? [{ name, requests, value }] : []
  })
  const resources = [...new Set(goods.flatMap(({ requests }) => Object.keys(requests)))]
  // The value of a whole resource if the node had enough of all others.
  const bounds = resources.map((resource) =>
    goods.every(({ requests }) => (requests[resource] ?? 0) > 0)
      ? (capacity[resource] ?? 0) *
        Math.max(...goods.map(({ requests, value }) => value / (requests[resource] ?? 0)))
      : Number.POSITIVE_INFINITY,
  )
  if (goods.length === 0 || Math.min(...bounds) <= pricePerHour) return undefined
  const problem = new LinearProgram({ areWhole: true })
  const rows = resources.map((resource) => ({
    resource,
    unit: units[resource] ?? 1,
    row: problem.addRow(Number.NEGATIVE_INFINITY, (capacity[resource] ?? 0) / (units[resource] ?? 1)),
  }))
  for (const { requests, value } of goods)
    problem.addColumn(
      -value,
      rows.flatMap(({ resource, row, unit }): [row: number, value: number][] =>
        requests[resource] === undefined ? [] : [[row, requests[resource] / unit]],
      ),
    )
  const { cost, values } = await problem.solve()
  const counts = goods.flatMap(({ name }, at): [string, number][] => {
    const count = Math.round(values[at] ?? 0)
    return count === 0 ? [] : [[name, count]]
  })
  return { value: -cost, counts: new Map(counts) }
}

const fits = (requests: Resources, capacity: Resources): boolean =>
  Object.entries(requests).every(([name, amount]) => amount <= (capacity[name] ?? 0))
