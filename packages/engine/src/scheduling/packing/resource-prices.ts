/**
 * Prices of resources at which no type is worth more than it costs, and at which the demand is worth the most. By
 * duality this worth is the lowest price of the demand if nodes could be bought in parts.
 */
import type { Amounts } from '../pods/resource-space.ts'

/** A type that can be filled. */
export interface Bin {
  readonly room: Amounts
  readonly pricePerHour: number
}

/** Pods with equal requests. */
export interface Item {
  readonly amounts: Amounts
  readonly count: number
}

const tolerance = 1e-9

/** The primal and the dual solution of a pricing problem. */
export interface Prices {
  /** The price of one unit of each resource; 0 if it is not scarce. */
  readonly prices: Float64Array
  /** The number of each bin, in fractions, that hold the demand at the lowest total price. */
  readonly bins: Float64Array
}

/** Solves max demand·x, room·x ≤ price for every bin, x ≥ 0 by the simplex method. */
export function resourcePrices(bins: readonly Bin[], demand: Amounts): Prices {
  const size = demand.length
  // Resources are scaled by their demand: bytes and cores differ by a factor of 10⁹.
  const scale = demand.map((amount) => (amount > 0 ? amount : 1))
  const rows = bins.map(({ room, pricePerHour }) => ({
    coefficients: room.map((amount, i) => Math.max(0, amount) / (scale[i] as number)),
    bound: pricePerHour,
  }))
  const objective = demand.map((amount, i) => amount / (scale[i] as number))
  /** Variables by number: the resources, then the slack of each bin. */
  const basis = bins.map((_, row) => size + row)
  const columns = Array.from({ length: size }, (_, i) => i)
  for (let pivots = 0; pivots < 50 * size + 50; pivots++) {
    const column = steepest(objective)
    const row = column < 0 ? -1 : tightest(rows, column)
    if (row < 0) break
    exchange(rows, objective, row, column)
    const leaving = basis[row] as number
    basis[row] = columns[column] as number
    columns[column] = leaving
  }
  const prices = new Float64Array(size)
  for (const [row, variable] of basis.entries())
    if (variable < size) prices[variable] = (rows[row]?.bound ?? 0) / (scale[variable] as number)
  const amounts = new Float64Array(bins.length)
  for (const [column, variable] of columns.entries())
    if (variable >= size) amounts[variable - size] = Math.max(0, -(objective[column] as number))
  return { prices, bins: amounts }
}

function steepest(objective: Float64Array): number {
  let best = -1
  let most = tolerance
  for (let i = 0; i < objective.length; i++) {
    if ((objective[i] as number) <= most) continue
    most = objective[i] as number
    best = i
  }
  return best
}

/** The row that limits the growth of a column first. */
function tightest(rows: readonly Row[], column: number): number {
  let best = -1
  let least = Number.POSITIVE_INFINITY
  for (let row = 0; row < rows.length; row++) {
    const { coefficients, bound } = rows[row] as Row
    const coefficient = coefficients[column] as number
    if (coefficient <= tolerance || bound / coefficient >= least - 1e-12) continue
    least = bound / coefficient
    best = row
  }
  return best
}

interface Row {
  readonly coefficients: Float64Array
  bound: number
}

/** One pivot of the condensed tableau: the column's variable enters, the row's leaves. */
function exchange(rows: readonly Row[], objective: Float64Array, pivot: number, column: number): void {
  const row = rows[pivot] as Row
  const by = row.coefficients[column] as number
  for (let i = 0; i < row.coefficients.length; i++)
    row.coefficients[i] = (i === column ? 1 : (row.coefficients[i] as number)) / by
  row.bound /= by
  for (const other of rows) {
    if (other === row) continue
    const factor = other.coefficients[column] as number
    if (factor === 0) continue
    other.coefficients[column] = 0
    for (let i = 0; i < row.coefficients.length; i++)
      other.coefficients[i] = (other.coefficients[i] as number) - factor * (row.coefficients[i] as number)
    other.bound -= factor * row.bound
  }
  const factor = objective[column] as number
  objective[column] = 0
  for (let i = 0; i < row.coefficients.length; i++)
    objective[i] = (objective[i] as number) - factor * (row.coefficients[i] as number)
}
