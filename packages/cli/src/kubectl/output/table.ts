/** Tables as kubectl prints them: one object per line, upper-case titles, three spaces between columns. */

import type { Paint, Style } from '../color.ts'

export interface Column<R> {
  readonly title: string
  readonly value: (row: R) => string
  readonly style?: (value: string) => Style | undefined
  /** Only with `-o wide`. */
  readonly isWide?: true
}

/** A text, perhaps with a colour. */
type Cell = string | { readonly text: string; readonly style: Style }

/** The cells of one line. */
export type Cells = readonly Cell[]

const gap = 3
const narrowest = 6

/** Prints rows. Columns never shrink, so that the output of a watch does not jump. */
export class TableWriter {
  readonly #out: (text: string) => void
  readonly #paint: Paint
  readonly #widths: number[] = []

  constructor(out: (text: string) => void, paint: Paint = (_style, text) => text) {
    this.#out = out
    this.#paint = paint
  }

  write(lines: readonly Cells[]): void {
    const shown = lines.map((line) => line.map(shownCell))
    for (const line of shown)
      for (const [at, cell] of line.entries())
        this.#widths[at] = Math.max(this.#widths[at] ?? narrowest, width(textOf(cell)) + gap)
    for (const line of shown) this.#out(`${line.map((cell, at) => this.#padded(cell, at, line)).join('')}\n`)
  }

  #padded(cell: Cell, at: number, line: Cells): string {
    const shown = typeof cell === 'string' ? cell : this.#paint(cell.style, cell.text)
    if (at === line.length - 1) return shown
    return shown + ' '.repeat(Math.max(0, (this.#widths[at] ?? 0) - width(textOf(cell))))
  }
}

/** The titles, unless they are disabled, and the rows. */
export function tableLines<R>(
  columns: readonly Column<R>[],
  rows: readonly R[],
  { isWide = false, noHeaders = false }: { readonly isWide?: boolean; readonly noHeaders?: boolean } = {},
): readonly Cells[] {
  const shown = columns.filter((column) => isWide || column.isWide !== true)
  const lines = rows.map((row) => shown.map((column) => cellOf(column, row)))
  return noHeaders ? lines : [shown.map(({ title }) => title), ...lines]
}

function cellOf<R>({ value, style }: Column<R>, row: R): Cell {
  const text = value(row)
  const found = style?.(text)
  return found === undefined ? text : { text, style: found }
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text
}

/** Counts characters, as Go's `text/tabwriter` does, which kubectl uses. */
function width(cell: string): number {
  return Array.from(cell).length
}

const controls = /\p{Cc}/gu
const named: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\t', '\\t'],
  ['\r', '\\r'],
])

/** A cell has one line, and no control characters from an object reach the terminal. */
function shownCell(cell: Cell): Cell {
  return typeof cell === 'string' ? shownText(cell) : { ...cell, text: shownText(cell.text) }
}

function shownText(text: string): string {
  return text.replaceAll(
    controls,
    (letter) => named.get(letter) ?? `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}
