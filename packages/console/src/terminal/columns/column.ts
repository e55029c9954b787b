import type { Look } from '../paint.ts'

export interface Cell {
  /** Raw text of an object; escaped when it is drawn. */
  readonly text: string
  readonly look?: Look | undefined
}

export interface Column<R> {
  readonly title: string
  readonly cell: (row: R) => Cell
  /** Columns with the highest rank are dropped first if there is not enough room. */
  readonly rank: number
  /** Maximum width; default 40. */
  readonly widest?: number
  readonly side?: 'left' | 'right'
  /** Which part of a long text is dropped: the middle of names, the end of sentences. */
  readonly cut?: 'middle' | 'end'
  /** Takes the remaining width. */
  readonly grows?: true
  /** Only shown after Ctrl-W, or if there is room. */
  readonly isWide?: true
}

export interface CellFacts {
  readonly nowMs: number
  readonly resources: readonly string[]
  readonly extraLabels: readonly string[]
  readonly hasPricing: boolean
  readonly currency?: string
}

export function text(value: string | number | undefined): Cell {
  return { text: value === undefined ? '' : String(value) }
}
