/** Computes where each node's cell is, in map units, which the picture scales. */
import type { PlacedPod } from '../../answers/placement.ts'
import type { PageNodeRow } from '../../model/page-view.ts'
import { shareOf } from '../format.ts'

export type Grouping = 'pool' | 'zone' | 'type' | 'price'
export const groupings: readonly Grouping[] = ['pool', 'zone', 'type', 'price']

/** A square of the picture. */
export interface Box {
  readonly id: string
  readonly x: number
  readonly y: number
  readonly size: number
  /** Fill level; 1 is full, and it may be higher. */
  readonly fill: number
}

/** The cell of a node, with the id of its row. */
export interface Cell extends Box {
  readonly row: PageNodeRow
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
  /** Grouping and rows of this layout, so that the next one can reuse unchanged parts. */
  readonly by: Grouping
  readonly ratio: number
  readonly cells: readonly Cell[]
  readonly groups: readonly Group[]
  readonly width: number
  readonly height: number
}

const gap = 2
const groupGap = 14
/** Height of a group's title above its cells. */
export const titleHeight = 18
/** Sides of cells, which form rows: one core is 10, growing with the square root. */
const [smallest, largest] = [8, 60]

function groupOf(row: PageNodeRow, by: Grouping): string {
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

/** The bounds double, so that every order of magnitude has a few bands. */
function priceBand(price: number | undefined): string {
  if (price === undefined) return 'unknown price'
  if (price === 0) return 'free'
  const low = 2 ** Math.floor(Math.log2(price))
  return `${low.toPrecision(2)} to ${(low * 2).toPrecision(2)} per hour`
}

/** The area of a cell is proportional to the capacity. */
function sideOf({ resources }: PageNodeRow): number {
  const cores = (resources['cpu']?.allocatable ?? 1000) / 1000
  return Math.round(Math.min(largest, Math.max(smallest, 10 * Math.sqrt(Math.max(cores, 0)))))
}

/** The larger share of CPU and memory. */
function fillOf({ resources }: PageNodeRow): number {
  return Math.max(
    0,
    ...['cpu', 'memory'].map((name) => shareOf(resources[name]?.used, resources[name]?.allocatable) ?? 0),
  )
}

/**
 * Groups from left to right and top to bottom, largest first. Cells of a group are sorted by size and id, so
 * that a cell keeps its place if others change.
 * @param ratio desired ratio of width to height.
 * @param last the previous layout: if only fill levels have changed, unchanged cells are the same objects.
 */
export function layoutMap(
  rows: readonly PageNodeRow[],
  by: Grouping,
  ratio: number,
  last?: MapLayout,
): MapLayout {
  return (
    (last?.by === by && last.ratio === ratio ? refilled(last, rows) : undefined) ?? laidOut(rows, by, ratio)
  )
}

/**
 * Pods come and go all the time, which moves no cell.
 * @returns undefined if a cell has to move.
 */
function refilled(last: MapLayout, rows: readonly PageNodeRow[]): MapLayout | undefined {
  if (rows.length !== last.cells.length) return undefined
  const byId = new Map(rows.map((row) => [row.id, row]))
  const cells: Cell[] = []
  for (const cell of last.cells) {
    const row = byId.get(cell.id)
    if (row === undefined) return undefined
    if (row === cell.row) cells.push(cell)
    else if (groupOf(row, last.by) === groupOf(cell.row, last.by) && sideOf(row) === cell.size)
      cells.push({ ...cell, row, fill: fillOf(row) })
    else return undefined
  }
  return { ...last, cells }
}

/** With groups that are nearly square, or of the ratio of the frame: whichever is shown larger. */
function laidOut(rows: readonly PageNodeRow[], by: Grouping, ratio: number): MapLayout {
  const members = Map.groupBy(rows, (row) => groupOf(row, by))
  const scaleOf = ({ width, height }: MapLayout) => Math.min(ratio / width, 1 / height)
  const [square, wide] = [arranged(members, by, ratio, 1.5), arranged(members, by, ratio, ratio)]
  return scaleOf(wide) > scaleOf(square) ? wide : square
}

/** @param shape desired ratio of width to height of each group. */
function arranged(
  members: ReadonlyMap<string, readonly PageNodeRow[]>,
  by: Grouping,
  ratio: number,
  shape: number,
): MapLayout {
  const grouped = [...members]
    .map(([name, rows]) => packed(name, rows, shape))
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
  return { by, ratio, cells, groups, width, height: y + rowHeight }
}

interface PackedGroup {
  readonly name: string
  readonly cells: readonly Cell[]
  readonly width: number
  readonly height: number
  readonly area: number
}

/** Rows of cells. */
function packed(name: string, members: readonly PageNodeRow[], shape: number): PackedGroup {
  const sized = members
    .map((row) => ({ row, size: sideOf(row) }))
    .toSorted((a, b) => b.size - a.size || (a.row.id < b.row.id ? -1 : 1))
  const area = sized.reduce((sum, { size }) => sum + (size + gap) ** 2, 0)
  // At least as wide as the title.
  const most = Math.max(Math.sqrt(area * shape), 90, sized[0]?.size ?? 0)
  const cells: Cell[] = []
  let [x, y, rowHeight, width] = [0, 0, 0, 0]
  for (const { row, size } of sized) {
    if (x > 0 && x + size > most) {
      x = 0
      y += rowHeight + gap
      rowHeight = 0
    }
    cells.push({ id: row.id, row, x, y, size, fill: fillOf(row) })
    x += size + gap
    width = Math.max(width, x - gap)
    rowHeight = Math.max(rowHeight, size)
  }
  return { name, cells, width: Math.max(width, 90), height: y + rowHeight + titleHeight, area }
}

/**
 * Pods as squares in their cells, in rows from the bottom, largest first. The area of each is its share of the
 * node.
 */
export function podBoxes(
  cells: readonly Cell[],
  pods: ReadonlyMap<string, readonly PlacedPod[]>,
): readonly Box[] {
  return cells.flatMap((cell) => boxesIn(cell, pods.get(cell.row.node ?? '') ?? []))
}

/** Squares leave gaps, so they are shrunk until all of them fit. */
const parts = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4] as const

function boxesIn(cell: Cell, pods: readonly PlacedPod[]): readonly Box[] {
  for (const part of parts) {
    const boxes = boxesOf(cell, pods, part)
    if (boxes.length === pods.length) return boxes
  }
  return boxesOf(cell, pods, 0.3)
}

/** Pods that do not fit are omitted; hint and explanation count them. */
function boxesOf({ row, size, x, y }: Cell, pods: readonly PlacedPod[], part: number): readonly Box[] {
  const cores = row.resources['cpu']?.allocatable ?? 0
  const [margin, apart] = [size * 0.07, size * 0.03]
  const room = size - 2 * margin
  const boxes: Box[] = []
  let [left, low, rowHeight] = [0, 0, 0]
  for (const { cpuMillis, name, namespace } of pods) {
    const share = cores > 0 ? Math.min(1, cpuMillis / cores) : 0
    const side = Math.max(room * 0.05, Math.sqrt(share) * room * part)
    if (left > 0 && left + side > room) {
      left = 0
      low += rowHeight + apart
      rowHeight = 0
    }
    if (low + side > room) break
    const top = y + size - margin - low - side
    boxes.push({ id: `${namespace}/${name}`, x: x + margin + left, y: top, size: side, fill: 1 })
    left += side + apart
    rowHeight = Math.max(rowHeight, side)
  }
  return boxes
}
