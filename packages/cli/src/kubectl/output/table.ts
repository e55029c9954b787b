/** Tables as kubectl prints them: one object per line, upper-case titles, three spaces between columns. */

/** A column of rows of one kind. */
export interface Column<R> {
  readonly title: string
  readonly value: (row: R) => string
  /** Only with `-o wide`. */
  readonly isWide?: true
}

/** Cells of one line. */
export type Cells = readonly string[]

const gap = 3
const narrowest = 6

/** Writes lines below each other. Columns stay as wide as they have been, so that a watch does not jump. */
export class TableWriter {
  readonly #out: (text: string) => void
  readonly #widths: number[] = []

  constructor(out: (text: string) => void) {
    this.#out = out
  }

  write(lines: readonly Cells[]): void {
    const shown = lines.map((line) => line.map(shownCell))
    for (const line of shown)
      for (const [at, cell] of line.entries())
        this.#widths[at] = Math.max(this.#widths[at] ?? narrowest, width(cell) + gap)
    for (const line of shown) this.#out(`${line.map((cell, at) => this.#padded(cell, at, line)).join('')}\n`)
  }

  #padded(cell: string, at: number, line: Cells): string {
    if (at === line.length - 1) return cell
    return cell + ' '.repeat(Math.max(0, (this.#widths[at] ?? 0) - width(cell)))
  }
}

/** Titles first, unless they are not wanted. */
export function tableLines<R>(
  columns: readonly Column<R>[],
  rows: readonly R[],
  { isWide = false, noHeaders = false }: { readonly isWide?: boolean; readonly noHeaders?: boolean } = {},
): readonly Cells[] {
  const shown = columns.filter((column) => isWide || column.isWide !== true)
  const lines = rows.map((row) => shown.map((column) => column.value(row)))
  return noHeaders ? lines : [shown.map(({ title }) => title), ...lines]
}

/** Go's `text/tabwriter`, which kubectl uses, counts characters. */
function width(cell: string): number {
  return Array.from(cell).length
}

const controls = /\p{Cc}/gu
const named: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\t', '\\t'],
  ['\r', '\\r'],
])

/** A cell is one line, and no text of an object gives orders to the terminal. */
function shownCell(cell: string): string {
  return cell.replaceAll(
    controls,
    (letter) => named.get(letter) ?? `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}
