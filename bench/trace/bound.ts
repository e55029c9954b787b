/**
 * The minimum cost of the pods of a trace in each hour: with fractional nodes, where all pods are one pool of
 * resources, and with whole pods on whole nodes.
 */
import type { Resources } from '@tenon/api'
import { LinearProgram } from '../scheduling/linear-program.ts'
import { requestsWithSeat, type Seats, seatsOf, traceTypes, typesWith } from './catalogue.ts'
import { type TraceShape, WholeNodes } from './whole-nodes.ts'
import type { TraceInstance } from './read-trace.ts'

const hourSeconds = 3600
const units: Resources = { cpu: 1000, memory: 1024 ** 3, 'ephemeral-storage': 1024 ** 3 }
const roles = ['CN', 'HN'] as const

/** Bounds of one hour, in money. */
export interface BoundHour {
  /** Each role on its own nodes. */
  readonly perRole: number
  /** Roles may share nodes: no real fleet can be cheaper. */
  readonly together: number
  /** With whole pods on whole nodes, and their limits per node: no fleet that fits them can be cheaper. */
  readonly wholeNodes: number
}

/** Bounds of every hour; a pod counts for the part of the hour in which it exists. */
export async function hourlyBounds(
  instances: readonly TraceInstance[],
  hours: number,
): Promise<readonly BoundHour[]> {
  const sums = hourlySums(instances, hours)
  const seats = seatsOf(instances)
  const shapes = hourlyShapes(instances, seats, hours)
  const wholeNodes = new WholeNodes(
    typesWith(seats).map(({ capacity, offerings }) => ({
      capacity,
      pricePerHour: offerings[0]?.pricePerHour ?? Number.NaN,
    })),
  )
  const bounds: BoundHour[] = []
  for (let hour = 0; hour < hours; hour++) {
    const [cpu, gpus] = roles.map((role) => sums.get(role)?.[hour] ?? new Map<string, number>())
    const all = new Map(cpu)
    for (const [name, amount] of gpus ?? []) all.set(name, (all.get(name) ?? 0) + amount)
    bounds.push({
      perRole: (await leastPrice(cpu ?? new Map())) + (await leastPrice(gpus ?? new Map())),
      together: await leastPrice(all),
      wholeNodes: await wholeNodes.leastPrice(shapes[hour] ?? new Map()),
    })
  }
  return bounds
}

type Sums = ReadonlyMap<string, readonly Map<string, number>[]>

/** Mean amounts over each hour, by role. */
function hourlySums(instances: readonly TraceInstance[], hours: number): Sums {
  const sums = new Map(
    roles.map((role) => [role as string, Array.from({ length: hours }, () => new Map<string, number>())]),
  )
  for (const instance of instances) {
    const { role, requests } = instance
    for (const [hour, share] of hoursOf(instance, hours)) {
      const sum = sums.get(role)?.[hour]
      if (sum === undefined) continue
      for (const [name, amount] of Object.entries({ ...requests, pods: 1 }))
        sum.set(name, (sum.get(name) ?? 0) + amount * share)
    }
  }
  return sums
}

/** The hours in which an instance exists, with the fraction of each. */
function* hoursOf(
  { startSeconds, endSeconds }: TraceInstance,
  hours: number,
): Generator<readonly [hour: number, share: number], void, undefined> {
  const end = Math.min(endSeconds ?? Number.POSITIVE_INFINITY, hours * hourSeconds)
  for (let hour = Math.floor(startSeconds / hourSeconds); hour * hourSeconds < end; hour++) {
    const from = Math.max(startSeconds, hour * hourSeconds)
    const share = (Math.min(end, (hour + 1) * hourSeconds) - from) / hourSeconds
    if (share > 0) yield [hour, share]
  }
}

/** Numbers of pods with equal requests, averaged over each hour. */
function hourlyShapes(
  instances: readonly TraceInstance[],
  seats: Seats,
  hours: number,
): readonly ReadonlyMap<string, TraceShape>[] {
  const all = Array.from({ length: hours }, () => new Map<string, { requests: Resources; count: number }>())
  for (const instance of instances) {
    const requests = { ...requestsWithSeat(instance, seats), pods: 1 }
    const key = JSON.stringify(Object.entries(requests).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    for (const [hour, share] of hoursOf(instance, hours)) {
      const shapes = all[hour]
      const shape = shapes?.get(key)
      if (shape === undefined) shapes?.set(key, { requests, count: share })
      else shape.count += share
    }
  }
  return all
}

async function leastPrice(demand: ReadonlyMap<string, number>): Promise<number> {
  if (demand.size === 0) return 0
  const problem = new LinearProgram()
  const rows = Array.from(demand, ([name, amount]) => {
    const unit = units[name] ?? 1
    return { name, unit, row: problem.addRow(amount / unit, Number.POSITIVE_INFINITY) }
  })
  for (const { capacity, offerings } of traceTypes) {
    const price = offerings[0]?.pricePerHour ?? Number.NaN
    const entries = rows.flatMap(({ name, unit, row }): [row: number, value: number][] => {
      const amount = capacity[name] ?? 0
      return amount === 0 ? [] : [[row, amount / unit]]
    })
    problem.addColumn(price, entries)
  }
  return (await problem.solve()).cost
}
