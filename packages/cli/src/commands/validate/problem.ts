/** Problems that `tenon validate` finds, and how they are printed. */
import type { OfflineFinding } from '@tenon/provider'

/** A position in a file; lines and columns count from 1. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

export interface Problem extends Place {
  /** Only errors make the exit code 1: the API server or the controller would reject the object. */
  readonly severity: 'error' | 'warning'
  /** `NodePool default`; absent for text without an object. */
  readonly object?: string
  /** Path in the object; empty for the object as a whole. */
  readonly field: string
  readonly message: string
  /** What to write instead. */
  readonly fix?: string
}

/** A problem without its position, as checks report it. */
export type Finding = OfflineFinding

/** `FILE:LINE:COLUMN: error: NodePool default: FIELD: MESSAGE; FIX`. */
export function renderProblem(problem: Problem): string {
  const { file, line, column, severity, object, field, message, fix } = problem
  const subject = [object, field]
    .filter((part) => part !== undefined && part !== '')
    .map((part) => `${part}: `)
  return `${file}:${line}:${column}: ${severity}: ${subject.join('')}${message}${fix === undefined ? '' : `; ${fix}`}`
}

/** Sorted by position, without duplicates. */
export function inOrder(problems: readonly Problem[]): readonly Problem[] {
  const once = new Map(problems.map((problem) => [JSON.stringify(problem), problem]))
  return [...once.values()].toSorted(
    (a, b) =>
      (a.file < b.file ? -1 : a.file > b.file ? 1 : 0) ||
      a.line - b.line ||
      a.column - b.column ||
      (a.field < b.field ? -1 : a.field > b.field ? 1 : 0),
  )
}
