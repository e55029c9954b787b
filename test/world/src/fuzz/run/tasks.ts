/** Messages between `npm run fuzz` and its child processes. */
import type { Clock } from '@tenon/runtime'
import type { Io as WorldIo } from '../../simulation/run/io.ts'
import type { Case, Finding } from '../case.ts'
import type { Part } from '../generate/draw.ts'

export interface Io extends WorldIo {
  /** Real time. */
  readonly clock: Clock
}

/** A case to judge or to shrink. */
export interface Task {
  readonly part: Part
  readonly seed: number
  /** Number of consecutive seeds to try until one fails; default 1. */
  readonly count?: number
  /** The case timed out before. */
  readonly isRepeated?: boolean
  /** A fault to plant. */
  readonly fault?: string
  /** Shrinks the case that fails with this oracle, for this many seconds. */
  readonly shrink?: { readonly oracle: string; readonly seconds: number }
}

export interface Verdict {
  readonly findings: readonly Finding[]
  /** Seed of the failing case. */
  readonly seed?: number
  readonly pods: number
  readonly nodes: number
  /** Result of shrinking. */
  readonly smaller?: { readonly case: Case; readonly finding: Finding }
}
