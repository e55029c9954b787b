/** How long a node may take from its registration until it takes pods (reports.md 4). */
import { type NodeClaim, parseDuration } from '@tenon/api'
import type { Settings } from '../../settings.ts'
import { type StateNode, transitionMs } from './state-node.ts'

/** Of a NodeClaim, mostly from its NodePool's template: a duration such as `30m`, or `Never`. */
const initializationTimeoutAnnotation = 'tenon.sh/initialization-timeout'
/** Nodes that work take less than this. */
const leastDoubtMs = 3 * 60_000

/**
 * From registration to initialization, in milliseconds; Infinity when nothing bounds it. What cannot be read in the
 * claim's annotation does not count.
 */
export function initializationTimeoutMs(
  claim: NodeClaim,
  settings: Pick<Settings, 'initializationTimeoutMs'>,
): number {
  const text = claim.metadata.annotations?.[initializationTimeoutAnnotation]
  if (text === 'Never') return Number.POSITIVE_INFINITY
  const durationMs = text === undefined ? undefined : parseDuration(text)
  return durationMs === undefined || durationMs <= 0 ? settings.initializationTimeoutMs : durationMs
}

/**
 * Whether a third of that time, and at least 3 min, have passed since the node registered: then it may never take
 * pods, and is no room for those it was not launched for.
 * @param now Unix milliseconds.
 */
export function isInitializationDoubtful(
  { claim, isRegistered, isInitialized }: Pick<StateNode, 'claim' | 'isRegistered' | 'isInitialized'>,
  settings: Pick<Settings, 'initializationTimeoutMs'>,
  now: number,
): boolean {
  if (claim === undefined || !isRegistered || isInitialized) return false
  const sinceMs = transitionMs(claim, 'Registered')
  const doubtMs = Math.max(leastDoubtMs, initializationTimeoutMs(claim, settings) / 3)
  return sinceMs !== undefined && now - sinceMs >= doubtMs
}
