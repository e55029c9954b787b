/** Messages between `npm run fuzz` and its child processes. */
import type { Clock } from '@tenon/runtime'
import type { Io as WorldIo } from '../../simulation/run/io.ts'
import type { Case, Finding } from '../case.ts'
import type { Part } from '../generate/draw.ts'

/** What the command is given. */
export interface Io extends WorldIo {
  /** Real time. */
  readonly clock: Clock
}

/** One case to judge, or to make smaller. */
export interface Task {
  readonly part: Part
  readonly seed: number
  /** So many seeds from that one on, until one fails; one unless given. */
  readonly count?: number
  /** The case did not end in time before. */
  readonly isRepeated?: boolean
  /** A fault planted in the product. */
  readonly fault?: string
  /** Set to make the case smaller that fails so, in so many seconds. */
  readonly shrink?: { readonly oracle: string; readonly seconds: number }
}

export interface Verdict {
  readonly findings: readonly Finding[]
  /** Of the case that failed. */
  readonly seed?: number
  readonly pods: number
  readonly nodes: number
  /** Of a task that makes a case smaller. */
  readonly smaller?: { readonly case: Case; readonly finding: Finding }
}
