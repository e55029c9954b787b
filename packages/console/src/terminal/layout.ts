/** Tables on so many columns of a screen. */
import { shownText } from '../text/shown.ts'
import { clipped, elided, padded, widthOf } from '../text/width.ts'
import type { Cell, Column } from './columns/column.ts'
import type { Paint } from './paint.ts'

const gap = 2
const usualWidest = 40

/** A column with the room that it has. */
export interface Placed<R> {
  readonly column: Column<R>
  readonly width: number
}

interface PlacingOptions {
  readonly width: number
  readonly isWide: boolean
  /** Widths that columns keep, by title, so that a table does not jump. */
  readonly least: Map<string, number>
  /** Whether columns that can grow take all the room; default true. */
  readonly fills?: boolean
}

/** Chooses the columns that fit, and their widths. */
export function placed<R>(
  columns: readonly Column<R>[],
  rows: readonly R[],
  options: PlacingOptions,
): readonly Placed<R>[] {
  const { width, isWide, least, fills = true } = options
  const natural = columns
    .filter((column) => isWide || column.isWide !== true)
    .map((column) => ({ column, width: naturalWidth(column, rows, least) }))
  let kept = natural.filter(({ column, width: each }) => column.grows === true || each > 0)
  const sum = () => kept.reduce((total, { column, width: each }) => total + gap + leastOf(column, each), -gap)
  while (sum() > width && kept.length > 1) {
    const last = kept.reduce((a, b) => (b.column.rank > a.column.rank ? b : a))
    kept = kept.filter((each) => each !== last)
  }
  if (!fills) return kept
  const rest = width - kept.reduce((total, each) => total + gap + leastOf(each.column, each.width), -gap)
  return kept.map((each) => ({
    column: each.column,
    width: Math.max(1, leastOf(each.column, each.width) + (each.column.grows === true ? rest : 0)),
  }))
}

/** A column that grows may begin small. */
function leastOf<R>(column: Column<R>, natural: number): number {
  return column.grows === true ? Math.min(natural, 18) : natural
}

function naturalWidth<R>(column: Column<R>, rows: readonly R[], least: Map<string, number>): number {
  const { title, widest = usualWidest } = column
  let [width, isEmpty] = [Math.max(title.length, least.get(title) ?? 0), true]
  for (const row of rows) {
    const { text } = column.cell(row)
    if (text !== '') isEmpty = false
    width = Math.max(width, Math.min(widest, widthOf(shownText(text))))
  }
  if (isEmpty && !least.has(title)) return 0
  least.set(title, width)
  return width
}

export function titleLine<R>(columns: readonly Placed<R>[]): string {
  return joined(columns.map(({ column, width }) => fitted({ text: column.title }, column, width)))
}

/** @param isSelected is told by the marker before the line as well. */
export function rowLine<R>(row: R, columns: readonly Placed<R>[], paint: Paint): string {
  return joined(
    columns.map(({ column, width }) => {
      const cell = column.cell(row)
      return paint(cell.look, fitted(cell, column, width))
    }),
  )
}

function fitted<R>({ text }: Cell, { cut = 'end', side = 'left' }: Column<R>, width: number): string {
  const shown = shownText(text)
  const short = cut === 'middle' ? elided(shown, width) : clipped(shown, width)
  return padded(short, width, side)
}

function joined(cells: readonly string[]): string {
  return cells.join(' '.repeat(gap))
}
