/** Finds the most valuable filling of one bin: an integer knapsack with several resources, by beam search. */
import type { Amounts } from '../pods/resource-space.ts'
import { type Item, resourcePrices } from './resource-prices.ts'

interface State {
  readonly counts: readonly number[]
  readonly rest: Float64Array
  readonly worth: number
  readonly bound: number
}

/** States that are kept after each item, and counts of an item that are tried. */
const beamWidth = 24
const mostChoices = 10

/** A bin, and the items that may go into it. */
export interface FillingProblem {
  readonly room: Amounts
  readonly items: readonly Item[]
  /** What each item is worth. */
  readonly worth: Float64Array
  /** How many of each item there are. */
  readonly left: Int32Array
}

/**
 * @param atLeast fillings of less worth are not returned.
 * @param spend is called with the work done.
 */
export function worthiestFilling(
  { room, items, worth, left }: FillingProblem,
  atLeast: number,
  spend: (units: number) => void,
): Int32Array | undefined {
  const usable = items.flatMap((item, index) =>
    (left[index] as number) > 0 && (worth[index] as number) > 0 && fits(item.amounts, room) ? [index] : [],
  )
  if (usable.length === 0) return undefined
  const scarcity = scarcityOf(room, items, worth, usable)
  spend(usable.length * room.length * 4)
  const costOf = (amounts: Amounts) => dot(amounts, scarcity)
  if (costOf(room) < atLeast) return undefined
  const byEfficiency = usable
    .map((index) => ({
      index,
      efficiency: (worth[index] as number) / Math.max(costOf((items[index] as Item).amounts), 1e-12),
    }))
    .toSorted((a, b) => b.efficiency - a.efficiency || a.index - b.index)
  let beam: readonly State[] = [{ counts: [], rest: room, worth: 0, bound: costOf(room) }]
  for (const [step, { index }] of byEfficiency.entries()) {
    const next: State[] = []
    const later = byEfficiency[step + 1]?.efficiency ?? 0
    for (const state of beam) {
      const { amounts } = items[index] as Item
      const most = Math.min(left[index] as number, timesIn(amounts, state.rest))
      for (const count of choices(most)) {
        const rest = state.rest.map((amount, i) => amount - count * (amounts[i] as number))
        const sum = state.worth + count * (worth[index] as number)
        const bound = sum + dot(rest, scarcity) * Math.min(1, later)
        if (bound >= atLeast) next.push({ counts: [...state.counts, count], rest, worth: sum, bound })
      }
      spend(mostChoices * room.length)
    }
    if (next.length === 0) return undefined
    beam = next.toSorted((a, b) => b.bound - a.bound || b.worth - a.worth).slice(0, beamWidth)
  }
  const best = beam.reduce((a, b) => (b.worth > a.worth ? b : a))
  if (best.worth < atLeast) return undefined
  const counts = new Int32Array(items.length)
  for (const [step, count] of best.counts.entries()) counts[byEfficiency[step]?.index ?? 0] = count
  return counts
}

/** Dual prices of the room: the worth of a unit of each resource, if items could be split. */
function scarcityOf(
  room: Amounts,
  items: readonly Item[],
  worth: Float64Array,
  usable: readonly number[],
): Float64Array {
  const rows = [...room].map((amount, resource) => ({
    room: new Float64Array(usable.map((index) => (items[index] as Item).amounts[resource] as number)),
    pricePerHour: amount,
  }))
  return resourcePrices(rows, new Float64Array(usable.map((index) => worth[index] as number))).bins
}

/** Counts from `most` down to 0; large ranges are thinned out. */
function choices(most: number): readonly number[] {
  if (most < mostChoices) return Array.from({ length: most + 1 }, (_, i) => most - i)
  const step = most / (mostChoices - 5)
  const coarse = Array.from({ length: mostChoices - 5 }, (_, i) => Math.floor(i * step))
  return [...new Set([most, most - 1, most - 2, most - 3, ...coarse])].filter((count) => count >= 0)
}

function timesIn(amounts: Amounts, rest: Amounts): number {
  let times = Number.POSITIVE_INFINITY
  for (let i = 0; i < amounts.length; i++) {
    const amount = amounts[i] as number
    if (amount > 0) times = Math.min(times, Math.floor((rest[i] as number) / amount))
  }
  return Math.max(0, times)
}

function fits(amounts: Amounts, room: Amounts): boolean {
  return amounts.every((amount, i) => amount <= (room[i] as number))
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number)
  return sum
}
