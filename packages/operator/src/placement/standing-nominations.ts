/** Whether the scheduler knows which pods closed nodes are for (planned-placement.md). */
import type { Clock } from '@tenon/runtime'
import { isKnownEphemeralTaint, labels, type Node, sameTaint, unregisteredTaint } from '@tenon/api'
import { nominatedNodeOf } from '../state/pods/nominated-pods.ts'
import { isNodeReady } from '../state/nodes/state-node.ts'
import { awaitsTwins } from './spread-turn.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'nodeOf' | 'nominations' | 'plans' | 'pods'>
  readonly clock: Pick<Clock, 'now'>
}

/**
 * Nominations must have stood this long: an attempt that was under way when they came clears them, which is told a
 * little later, as changes of pods are gathered.
 */
const standingMs = 300
/**
 * Shares of a decision's nominations: those that may be missing when its Nodes open, and those that may not have stood
 * long enough. The scheduler goes on trying pods in vain for as long as the Nodes are closed, and clears the nomination
 * of each; with many pods there is no moment at which all stand. A pod that was just tried has to wait before it is
 * tried again, so its nomination is back in time.
 */
const leeway = { missing: 0.01, young: 0.05 } as const

type Knowledge = Dependencies

/** How many pods wait. */
interface Standing {
  /** Those that the scheduler was told of, and among them those whose nomination is cleared, or new. */
  told: number
  missing: number
  young: number
  fillers: number
}

const none: ReadonlySet<string> = new Set()

/**
 * Whether nothing speaks against opening because of these claims, and which of them miss nominations: none where some
 * pods fill what others leave, as that room is open to all of them.
 */
export function standingOf(
  deps: Knowledge,
  names: ReadonlySet<string>,
): { readonly isReady: boolean; readonly lagging: ReadonlySet<string> } {
  const total: Standing = { told: 0, missing: 0, young: 0, fillers: 0 }
  const lagging = new Set<string>()
  for (const name of names) {
    const { missing } = total
    if (!isReady(deps, name, total)) return { isReady: false, lagging: none }
    if (total.missing > missing) lagging.add(name)
  }
  const { told, missing, young, fillers } = total
  const areEnough = missing <= told * leeway.missing && young <= told * leeway.young
  return { isReady: areEnough, lagging: fillers > 0 ? none : lagging }
}

/** Whether the claim's Node can open, apart from nominations that were made and do not stand, which are counted. */
function isReady(deps: Knowledge, name: string, total: Standing): boolean {
  const { caches, state } = deps
  const claim = caches.nodeClaims.get({ name })
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return true
  if (!isSteered(state, name)) return true
  const node = state.nodeOf(claim)
  if (node === undefined) return false
  if (node.metadata.labels?.[labels.registered] === 'true') return true
  return canOpen(node) && areTold(deps, name, node, total)
}

/** Whether pods still wait for this claim, and which of them go to its Node matters. */
export function isSteered({ plans, pods }: Knowledge['state'], claim: string): boolean {
  return plans
    .podsOf({ kind: 'claim', name: claim })
    .some((uid) => (plans.get(uid)?.steering ?? 'free') !== 'free' && pods.unplaced(uid) !== undefined)
}

/** Whether the scheduler was told of every pod that waits for this node, unless it cannot be. */
function areTold(
  { clock, state }: Knowledge,
  claim: string,
  { metadata: { name } }: Node,
  total: Standing,
): boolean {
  const latestMs = clock.now() - standingMs
  return state.plans.podsOf({ kind: 'claim', name: claim }).every((uid) => {
    const pod = state.pods.unplaced(uid)
    const steering = state.plans.get(uid)?.steering
    if (pod !== undefined && steering === 'filler') total.fillers++
    if (pod === undefined || steering !== 'told') return true
    const present = nominatedNodeOf(pod)
    const written = state.plans.written(uid)
    if (present !== name) {
      if (present === '' && awaitsTwins(state, pod)) return true
      if (present !== '' && !state.nominations.isOurs(pod)) return true
      if (written?.node !== name || !written.isAccepted) return false
    }
    total.told++
    if (present !== name) total.missing++
    else if ((written?.atMs ?? 0) > latestMs) total.young++
    return true
  })
}

/** Whether the unregistered taint is all that keeps pods away. */
export function canOpen(node: Node): boolean {
  const taints = node.spec?.taints ?? []
  return (
    isNodeReady(node) &&
    !taints.some((taint) => isKnownEphemeralTaint(taint) && !sameTaint(taint, unregisteredTaint))
  )
}
