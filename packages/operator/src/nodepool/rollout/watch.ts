/** What becomes of replacements while they are watched (ask.md 9). */
import { controllerOf, isConditionTrue, type Node, type NodeClaim, type Pod } from '@tenon/api'
import { isNodeReady } from '../../state/nodes/state-node.ts'
import { isActive } from '../../state/pods/pods.ts'
import { isPodReady } from '../../state/pods/pods.ts'
import type { RolloutRecord, Watched } from '../../state/nodepools/rollout-settings.ts'
import { canaryCount, type RolloutSettings } from '../../state/nodepools/rollout-settings.ts'

/** What is to be seen of one replacement. */
export interface Sight {
  readonly claim: NodeClaim | undefined
  readonly node: Node | undefined
  readonly pods: readonly Pod[]
}

/** A claim that goes earlier without ever having had an instance found no capacity, or somebody took it away. */
const launchMs = 5 * 60_000
/** A replacement that takes no pods by then never will. */
const initializationMs = 30 * 60_000

/** What is known of a replacement now; undefined when it went without anything against it. */
export function watched(
  each: Watched,
  { claim, node, pods }: Sight,
  { watchMs }: RolloutSettings,
  nowMs: number,
): Watched | undefined {
  if (each.unhealthy !== undefined || each.isHealthy === true) return each
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return whenGone(each, nowMs)
  if (each.initializedMs === undefined) {
    if (isConditionTrue(claim, 'Initialized')) return { ...each, initializedMs: nowMs }
    if (nowMs - each.sinceMs < initializationMs) return each
    return { ...each, unhealthy: `it was not initialized within ${initializationMs / 60_000} min` }
  }
  if (node === undefined || !isNodeReady(node)) return { ...each, unhealthy: 'its node stopped being Ready' }
  if (nowMs < each.initializedMs + watchMs) return each
  const moved = pods.filter((pod) => isActive(pod) && each.owners.includes(controllerOf(pod)?.uid ?? ''))
  const unready = moved.filter((pod) => !isPodReady(pod))
  if (2 * unready.length > moved.length)
    return { ...each, unhealthy: `${unready.length} of ${moved.length} moved pods are not Ready` }
  return { ...each, isHealthy: true }
}

function whenGone(each: Watched, nowMs: number): Watched | undefined {
  if (each.initializedMs !== undefined || nowMs - each.sinceMs < launchMs) return undefined
  return { ...each, unhealthy: 'it never became a node' }
}

/** The rollout as it is after a look at its replacements. */
export function advanced(
  record: RolloutRecord,
  seen: readonly Watched[],
  settings: RolloutSettings,
  pool: { readonly nodes: number; readonly drifted: string; readonly nowMs: number },
): RolloutRecord {
  const unhealthy = seen.filter(isUnhealthy)
  const settled = seen.filter((each) => isUnhealthy(each) || each.isHealthy === true)
  const isHalted = unhealthy.length > settings.maxUnhealthy
  const isThrough = settled.length === seen.length && seen.length >= canaryCount(settings, pool.nodes)
  const hasPassed = record.hasPassed || (!isHalted && isThrough)
  return {
    of: record.of,
    // Of those that are healthy nothing more is to be known once they need not be counted.
    replacements: hasPassed ? seen.filter((each) => each.isHealthy !== true) : seen,
    hasPassed,
    ...(isHalted && { halted: record.halted ?? { atMs: pool.nowMs, drifted: pool.drifted } }),
  }
}

export const isUnhealthy = ({ unhealthy }: Watched): boolean => unhealthy !== undefined

/** When to look again at replacements on which nothing happens; Unix milliseconds, Infinity when none is watched. */
export function nextLookMs(seen: readonly Watched[], { watchMs }: RolloutSettings): number {
  const open = seen.filter((each) => !isUnhealthy(each) && each.isHealthy !== true)
  return Math.min(
    ...open.map(({ initializedMs, sinceMs }) =>
      initializedMs === undefined ? sinceMs + initializationMs : initializedMs + watchMs,
    ),
    Number.POSITIVE_INFINITY,
  )
}
