/**
 * The lowest possible price per hour for pods, by a linear program: nodes may be bought in fractions and pods split,
 * and of topology only exclusion from a node counts. No set of whole nodes can be cheaper; usually none reaches it.
 *
 *   minimise  Σ price(t) · y(t)
 *   where     Σ_t x(s,t) = pods of shape s                for every shape s
 *             Σ_s request(s,r) · x(s,t) ≤ capacity(t,r) · y(t)   for every source t and resource r
 *             Σ x(s,t) ≤ y(t)    over the shapes that exclude each other, for every source t
 *
 * with y(t) fixed for existing nodes, and x(s,t) only where the constraints of shape s allow source t.
 */
import type { Resources } from '@tenon/api'
import type { SchedulingInput } from '@tenon/engine'
import { LinearProgram } from './linear-program.ts'
import { type Shape, shapesOf, type Source, sourcesOf } from './offers.ts'

/** Scales amounts to near 1, for the solver: cores and GiB. */
const units: Resources = { cpu: 1000, memory: 1024 ** 3, 'ephemeral-storage': 1024 ** 3 }

/** Price per hour. `leftOut` are UIDs of pods to ignore, `boundOn` selects the resources of a new node. */
export async function lowerBound(
  input: SchedulingInput,
  leftOut: ReadonlySet<string>,
  boundOn: 'capacity' | 'allocatable',
): Promise<number> {
  const pods = input.pods.filter(({ metadata }) => !leftOut.has(metadata.uid ?? ''))
  const shapes = shapesOf(pods, input.nodes.length)
  const sources = sourcesOf(input, shapes, boundOn)
  const problem = new LinearProgram()
  const demand = shapes.map(({ count }) => problem.addRow(count, count))
  for (const source of sources) addSource(problem, source, shapes, demand)
  return (await problem.solve()).cost
}

function addSource(
  problem: LinearProgram,
  { pricePerHour, capacity, existing, hosts }: Source,
  shapes: readonly Shape[],
  demand: readonly number[],
): void {
  const nodes: (readonly [row: number, value: number])[] = []
  // The resources of a node: on the right of the row for existing nodes, else in y's column.
  const limitRow = (amount: number): number => {
    const row = problem.addRow(Number.NEGATIVE_INFINITY, existing === undefined ? 0 : amount)
    nodes.push([row, -amount])
    return row
  }
  const hosted = hosts.map((index) => ({ shape: shapes[index] as Shape, demandRow: demand[index] as number }))
  const resources = new Set(hosted.flatMap(({ shape }) => Object.keys(shape.requests)))
  const rows = new Map(
    [...resources].map((name) => [name, limitRow((capacity[name] ?? 0) / (units[name] ?? 1))]),
  )
  const exclusions = new Set(hosted.flatMap(({ shape }) => shape.exclusive ?? []))
  const exclusionRows = new Map([...exclusions].map((key) => [key, limitRow(existing ?? 1)]))
  if (existing === undefined) problem.addColumn(pricePerHour, nodes)
  for (const { shape, demandRow } of hosted) {
    const entries: (readonly [row: number, value: number])[] = [[demandRow, 1]]
    for (const [name, amount] of Object.entries(shape.requests)) {
      if (amount > 0) entries.push([rows.get(name) as number, amount / (units[name] ?? 1)])
    }
    const exclusion = exclusionRows.get(shape.exclusive ?? '')
    if (exclusion !== undefined) entries.push([exclusion, 1])
    problem.addColumn(0, entries)
  }
}
