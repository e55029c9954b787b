/** Lays out tables in the columns of a screen. */
import { shownText } from '../text/shown.ts'
import { clipped, elided, padded, widthOf } from '../text/width.ts'
import type { Cell, Column } from './columns/column.ts'
import type { Paint } from './paint.ts'

const gap = 2
const usualWidest = 40
/**
 * Minimum width of a growing column if there is room, as lines of additional resources are drawn below it. It
 * never gets wider than its content, so that values stay close to the name.
 */
const roomy = 24

/** A column with its width. */
export interface Placed<R> {
  readonly column: Column<R>
  readonly width: number
}

interface PlacingOptions {
  readonly width: number
  readonly isWide: boolean
  /** Minimum widths by title, so that a table does not jump. */
  readonly least: Map<string, number>
  /** Whether to cut columns to the width; default true. */
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
  const present = natural.filter(({ column, width: each }) => column.grows === true || each > 0)
  const kept = new Set<Placed<R>>()
  let rest = width + gap
  for (const each of present.toSorted((a, b) => a.column.rank - b.column.rank)) {
    const needed = gap + leastOf(each.column, each.width)
    // A narrow column of low rank may fit where a wider one does not.
    if (needed > rest && kept.size > 0) continue
    kept.add(each)
    rest -= needed
  }
  const chosen = present.filter((each) => kept.has(each))
  return chosen.map(({ column, width: most }) => {
    const own = leastOf(column, most)
    if (!fills || column.grows !== true) return { column, width: fills ? Math.max(1, own) : most }
    const grown = Math.max(1, Math.min(Math.max(most, roomy), own + Math.max(0, rest)))
    rest -= grown - own
    return { column, width: grown }
  })
}

/** A growing column may be narrow, and is shown even if it is empty. */
function leastOf<R>(column: Column<R>, natural: number): number {
  return column.grows === true ? Math.max(1, Math.min(natural, 18)) : natural
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

/** @param isSelected is also shown by a marker before the line. */
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
