/** Where each node's cell is on the map. Pure; in units of the map, which the picture scales. */
import type { NodeRow } from '../../model/view.ts'

export type Grouping = 'pool' | 'zone' | 'type' | 'price'
export const groupings: readonly Grouping[] = ['pool', 'zone', 'type', 'price']

export interface Cell {
  readonly row: NodeRow
  readonly x: number
  readonly y: number
  readonly size: number
}

export interface Group {
  readonly name: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly cells: number
}

export interface MapLayout {
  readonly cells: readonly Cell[]
  readonly groups: readonly Group[]
  readonly width: number
  readonly height: number
}

const gap = 2
const groupGap = 14
/** Of a group, above its cells. */
export const titleHeight = 18
/** Sides of cells, so that they stand in rows; of one core 10, growing with the root. */
const [smallest, largest] = [8, 60]

/** What a node's group is called. */
function groupOf(row: NodeRow, by: Grouping): string {
  switch (by) {
    case 'pool':
      return row.nodePool ?? 'no NodePool'
    case 'zone':
      return row.zone ?? 'unknown zone'
    case 'type':
      return row.instanceType ?? 'unknown type'
    case 'price':
      return priceBand(row.pricePerHour)
  }
}

/** The bounds double, so that every order of magnitude has a few. */
function priceBand(price: number | undefined): string {
  if (price === undefined) return 'unknown price'
  if (price === 0) return 'free'
  const low = 2 ** Math.floor(Math.log2(price))
  return `${low.toPrecision(2)} to ${(low * 2).toPrecision(2)} per hour`
}

/** The side of a cell: its area is the capacity. */
function sideOf({ resources }: NodeRow): number {
  const cores = (resources['cpu']?.allocatable ?? 1000) / 1000
  return Math.round(Math.min(largest, Math.max(smallest, 10 * Math.sqrt(Math.max(cores, 0)))))
}

/**
 * Groups from left to right and from top to bottom, the largest first; cells of a group in order of their size,
 * then of their ids, so that a cell keeps its place when others change.
 * @param ratio width by height that the whole should have.
 */
export function layoutMap(rows: readonly NodeRow[], by: Grouping, ratio: number): MapLayout {
  const grouped = [...Map.groupBy(rows, (row) => groupOf(row, by))]
    .map(([name, members]) => packed(name, members))
    .toSorted((a, b) => b.area - a.area || (a.name < b.name ? -1 : 1))
  const area = grouped.reduce((sum, { height, width }) => sum + (width + groupGap) * (height + groupGap), 0)
  const most = Math.max(Math.sqrt(area * ratio), ...grouped.map(({ width }) => width))
  const cells: Cell[] = []
  const groups: Group[] = []
  let [x, y, rowHeight, width] = [0, 0, 0, 0]
  for (const group of grouped) {
    if (x > 0 && x + group.width > most) {
      x = 0
      y += rowHeight + groupGap
      rowHeight = 0
    }
    for (const cell of group.cells) cells.push({ ...cell, x: cell.x + x, y: cell.y + y + titleHeight })
    const { height, name } = group
    groups.push({ name, x, y, width: group.width, height, cells: group.cells.length })
    x += group.width + groupGap
    width = Math.max(width, x - groupGap)
    rowHeight = Math.max(rowHeight, height)
  }
  return { cells, groups, width, height: y + rowHeight }
}

interface PackedGroup {
  readonly name: string
  readonly cells: readonly Cell[]
  readonly width: number
  readonly height: number
  readonly area: number
}

/** Rows of cells, about as wide as high. */
function packed(name: string, members: readonly NodeRow[]): PackedGroup {
  const sized = members
    .map((row) => ({ row, size: sideOf(row) }))
    .toSorted((a, b) => b.size - a.size || (a.row.id < b.row.id ? -1 : 1))
  const area = sized.reduce((sum, { size }) => sum + (size + gap) ** 2, 0)
  // Never narrower than its title.
  const most = Math.max(Math.sqrt(area) * 1.25, 90, sized[0]?.size ?? 0)
  const cells: Cell[] = []
  let [x, y, rowHeight, width] = [0, 0, 0, 0]
  for (const { row, size } of sized) {
    if (x > 0 && x + size > most) {
      x = 0
      y += rowHeight + gap
      rowHeight = 0
    }
    cells.push({ row, x, y, size })
    x += size + gap
    width = Math.max(width, x - gap)
    rowHeight = Math.max(rowHeight, size)
  }
  return { name, cells, width: Math.max(width, 90), height: y + rowHeight + titleHeight, area }
}
