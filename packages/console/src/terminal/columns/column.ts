/** A column of a table. */
import type { Look } from '../paint.ts'

export interface Cell {
  /** Not yet fit for a screen: texts of objects may hold anything. */
  readonly text: string
  readonly look?: Look | undefined
}

export interface Column<R> {
  readonly title: string
  readonly cell: (row: R) => Cell
  /** Columns with a high number are left out first where there is no room. */
  readonly rank: number
  /** At most; default 40. */
  readonly widest?: number
  readonly side?: 'left' | 'right'
  /** Of names the middle is left out, of sentences the end. */
  readonly cut?: 'middle' | 'end'
  /** Takes the room that is left. */
  readonly grows?: true
  /** Only when asked for with Ctrl-W, or where there is room. */
  readonly isWide?: true
}

/** What cells are made with. */
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
