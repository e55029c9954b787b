/** Whether the nominations for closed nodes are in place (planned-placement.md). */
import type { Clock } from '@tenon/runtime'
import {
  isKnownEphemeralTaint,
  labels,
  matchesSelector,
  type Node,
  type Pod,
  sameTaint,
  unregisteredTaint,
} from '@tenon/api'
import { nominatedNodeOf } from '../state/pods/nominated-pods.ts'
import { isNodeReady } from '../state/nodes/state-node.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { hardSpreadOf } from '@tenon/engine'

/**
 * How old nominations must be: a scheduling attempt in progress clears them, and that shows a little later, as changes
 * of pods are batched.
 */
const standingMs = 300
/**
 * Shares of a decision's nominations that may be missing, or too young, when its Nodes open. While Nodes are closed the
 * scheduler keeps trying pods in vain, and clears the nomination of each; with many pods there is no moment at which all
 * are in place. A pod that was just tried has to back off, so its nomination is back in time.
 */
const leeway = { missing: 0.01, young: 0.05 } as const

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'nodeOf' | 'nominations' | 'plans' | 'pods'>
  readonly clock: Pick<Clock, 'now'>
}

/** Counts of pending pods. */
interface Standing {
  /** Pods that were nominated, and among them those whose nomination is cleared, or new. */
  nominated: number
  missing: number
  young: number
  fillers: number
}

const none: ReadonlySet<string> = new Set()

/**
 * Whether these claims are ready to open, and which of them miss nominations: none if filler pods wait, as the room is
 * open to all of them.
 */
export function standingOf(
  deps: Dependencies,
  names: ReadonlySet<string>,
): { readonly isReady: boolean; readonly lagging: ReadonlySet<string> } {
  const total: Standing = { nominated: 0, missing: 0, young: 0, fillers: 0 }
  const lagging = new Set<string>()
  for (const name of names) {
    const { missing } = total
    if (!isReady(deps, name, total)) return { isReady: false, lagging: none }
    if (total.missing > missing) lagging.add(name)
  }
  const { nominated, missing, young, fillers } = total
  const areEnough = missing <= nominated * leeway.missing && young <= nominated * leeway.young
  return { isReady: areEnough, lagging: fillers > 0 ? none : lagging }
}

/** Whether the claim's Node can open. Nominations that are missing or too young are counted, not judged. */
function isReady(deps: Dependencies, name: string, total: Standing): boolean {
  const { caches, state } = deps
  const claim = caches.nodeClaims.get({ name })
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return true
  if (!isSteered(state, name)) return true
  const node = state.nodeOf(claim)
  if (node === undefined) return false
  if (node.metadata.labels?.[labels.registered] === 'true') return true
  return canOpen(node) && areNominated(deps, name, node, total)
}

/** Whether pods still wait for this claim, not all of them free to go anywhere. */
export function isSteered({ plans, pods }: Dependencies['state'], claim: string): boolean {
  return plans
    .podsOf({ kind: 'claim', name: claim })
    .some((uid) => (plans.get(uid)?.steering ?? 'free') !== 'free' && pods.unplaced(uid) !== undefined)
}

/** Whether every pod that waits for this node was nominated, as far as it can be. */
function areNominated(
  { clock, state }: Dependencies,
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
    total.nominated++
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

/**
 * Whether the pod must wait for pods of the same spread constraint that are planned for the same node. The scheduler
 * counts pods nominated for the node as if they ran there, but none of the other nodes': more at a time than maxSkew
 * would exclude each other, and a rejected pod loses its nomination.
 */
export function awaitsTwins(
  {
    plans,
    pods,
  }: {
    readonly plans: Pick<ClusterState['plans'], 'get' | 'podsOf'>
    readonly pods: Pick<ClusterState['pods'], 'unplaced'>
  },
  pod: Pod,
): boolean {
  const uid = pod.metadata.uid ?? ''
  const target = plans.get(uid)?.target
  const constraints = hardSpreadOf(pod)
  if (constraints.length === 0 || target === undefined) return false
  const planned = plans.podsOf(target)
  const ahead = planned.slice(0, planned.indexOf(uid)).flatMap((each) => pods.unplaced(each) ?? [])
  return constraints.some(({ maxSkew, labelSelector }) => {
    if (labelSelector === undefined) return false
    const counting = ahead.filter(
      ({ metadata }) =>
        metadata.namespace === pod.metadata.namespace &&
        matchesSelector(labelSelector, metadata.labels ?? {}),
    )
    return counting.length >= maxSkew
  })
}
