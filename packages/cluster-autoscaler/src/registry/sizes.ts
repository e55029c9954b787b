/** Actual, acceptable and incorrect sizes of groups (cluster-autoscaler.md 2.4). Pure. */
import type { Readiness } from './readiness.ts'

/** The range of sizes that recent requests explain. */
export interface AcceptableRange {
  readonly min: number
  readonly target: number
  readonly max: number
}

export interface IncorrectSize {
  readonly groupId: string
  readonly registered: number
  readonly target: number
  /** Since when both figures have not changed. */
  readonly sinceMs: number
}

/**
 * @param increase requested nodes that have not appeared.
 * @param deletions begun in the last five minutes.
 */
export function acceptableRange(
  target: number,
  longUnregistered: number,
  increase: number,
  deletions: number,
): AcceptableRange {
  return { min: target - longUnregistered - increase, target, max: target + deletions }
}

/** How many nodes the target still lacks; may be negative. */
export function missingNodes(target: number, readiness: Readiness | undefined): number {
  if (readiness === undefined) return target
  const { ready, unready, suspended, longUnregistered } = readiness
  return target - (ready.length + unready.length + suspended.length + longUnregistered.length)
}

export function isSizeIncorrect(target: number, readiness: Readiness): boolean {
  const registered = readiness.registered.length
  const coming = readiness.unregistered.length + readiness.longUnregistered.length
  return registered > target || registered < target - coming
}
