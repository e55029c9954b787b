/** Whether pods have what was launched for them, may yet get it, or will not (reports.md 1). */
import { isConditionTrue, labels, type Node, type NodeClaim, ownValue, type Pod, tolerates } from '@tenon/api'
import { accumulate, podRequests } from '@tenon/engine'
import type { Clock } from '@tenon/runtime'
import { isInitializationDoubtful } from '../../cluster/nodes/initialization-time.ts'
import type { Knowledge } from '../../cluster/nodes/node-evidence.ts'
import { isNodeReady } from '../../cluster/nodes/state-node.ts'
import { isReschedulable } from '../../cluster/pods/pods.ts'
import { workloadOf } from '../../cluster/pods/workloads.ts'
import type { Decided, DecidedPods } from './decided-pods.ts'
import { workloadsOf } from './launched-for.ts'
import { open, type Place, taken, type Verdict } from './place.ts'
import type { PlaceVolumes } from './place-volumes.ts'
import type { PodRefusals } from './pod-refusals.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'evidence' | 'isWellFormed' | 'parsed' | 'pods' | 'podsOn' | 'words'>
  readonly volumes: PlaceVolumes
  readonly decided: DecidedPods
  readonly refusals: PodRefusals
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'initializationTimeoutMs'>
}

/** On a node that has been still for so long since the pod was tried there is no place for the pod. */
export const settleMs = 2 * 60_000
/** The same if pods came or went since: the scheduler tries every pod once more within five minutes. */
const triedAgainMs = 6 * 60_000
/** The scheduler need not try a pod on a node that is too small for it. */
const shortSettleMs = 30_000
/** Conditions tell whole seconds, and the scheduler is told that a node is open before this process has noted it. */
const precisionMs = 2000

export class PlaceVerdicts {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Notes what a decision said of the places. */
  decided(result: Decided): void {
    this.#deps.decided.note(result)
  }

  /** Whether the node may never take pods: those that it was not launched for need not wait for it. */
  isDoubtful({ claim, node }: Place): boolean {
    const { clock, settings } = this.#deps
    const isInitialized = isConditionTrue(claim, 'Initialized')
    const isRegistered = node.metadata.labels?.[labels.registered] === 'true'
    return isInitializationDoubtful({ claim, isRegistered, isInitialized }, settings, clock.now())
  }

  /** What the scheduler says of the pod now; undefined when it does not refuse it any more. */
  wordsOf(pod: Pod, signal: AbortSignal): Promise<string | undefined> {
    return this.#deps.refusals.wordsOf(pod, signal)
  }

  /** Whether a decision was about each of the pods and put none on the node. */
  areElsewhere(pods: readonly Pod[], { metadata }: Node): boolean {
    return this.#deps.decided.areElsewhere(pods, metadata.name)
  }

  /** What is known about the place, from the first pod that tells; all of them ask for the same. */
  onAny(pods: readonly Pod[], place: Place): { readonly verdict: Verdict; readonly pod: Pod } {
    const [first] = pods
    let last: { readonly verdict: Verdict; readonly pod: Pod } = { verdict: open, pod: first as Pod }
    for (const pod of pods) {
      last = { verdict: this.on(pod, place), pod }
      // All of them ask for the same; only what was said about each differs.
      if (last.verdict.kind !== 'open') return last
    }
    return last
  }

  /** What is known about the place of one pod. */
  on(pod: Pod, place: Place): Verdict {
    const { claim, node, openedMs } = place
    const { clock, decided, refusals, state, volumes } = this.#deps
    if (!isConditionTrue(claim, 'Initialized')) return open
    if (!isNodeReady(node) || isClosed(node, pod)) return taken
    const { name } = node.metadata
    const { requests, daemonRequests } = state.pods.useOf(name)
    const has = state.parsed(node.status?.allocatable)
    const wanted = podRequests(pod.spec)
    const saidMs = state.words.lastMs(pod.metadata.uid ?? '')
    const short = lacking(wanted, has, daemonRequests)
    if (short.length > 0) {
      const isSettled = clock.now() - openedMs >= shortSettleMs || saidMs >= openedMs + precisionMs
      return isSettled ? { kind: 'short', names: short } : open
    }
    if (lacking(wanted, has, requests).length > 0 || volumes.areFull(pod, place)) return taken
    // Whether others are in the way shows once a decision was about the pod, which may have just come.
    const isJudged = this.#isSettled(saidMs, place) && decided.has(pod.metadata.uid ?? '')
    if (!isJudged || volumes.areAwaited(pod)) return open
    if (refusals.isOfShortGroup(pod)) return taken
    return this.#isTakenByOthers(pod, claim, node) ? taken : { kind: 'refused' }
  }

  /** Whether a pod about which the scheduler last spoke then would have the place by now. */
  #isSettled(saidMs: number, { openedMs, changedMs }: Place): boolean {
    const now = this.#deps.clock.now()
    const isFresh = saidMs >= changedMs - precisionMs
    // The same words as before are not written again.
    const isTriedAgain = saidMs > 0 && now - openedMs >= triedAgainMs
    const isTold = isFresh || saidMs >= openedMs - precisionMs || isTriedAgain
    return isTold && now - changedMs >= (isFresh ? settleMs : triedAgainMs)
  }

  /**
   * Whether pods came to the node that it was not launched for, and decisions know no place for the pod there any more:
   * because of a host port, for instance, or of a rule about the others. The next node need not have them.
   */
  #isTakenByOthers({ metadata: { uid = '' } }: Pod, claim: NodeClaim, { metadata }: Node): boolean {
    const { decided, state } = this.#deps
    const isWithoutPlace = decided.has(uid) && decided.nodeOf(uid) === undefined
    const hostname = metadata.labels?.[labels.hostname] ?? metadata.name
    if (!isWithoutPlace || state.evidence.refusing(uid).includes(hostname)) return false
    const expected = workloadsOf(claim)
    return state
      .podsOn(metadata.name)
      .some((pod) => isReschedulable(pod) && state.isWellFormed(pod) && !expected.has(workloadOf(pod)))
  }

  /** @param like pods of the same workload: decisions may have had the node for any of them. */
  knowledgeOf(pod: Pod, like: readonly Pod[], node: Node): Knowledge {
    const { decided, volumes } = this.#deps
    if (volumes.isElsewhere(pod, node)) return 'lasting'
    // Launches of the type know from now on how many volumes it attaches.
    if (!volumes.fit(pod, node)) return 'lasting'
    const isDecided = like.some(({ metadata }) => decided.nodeOf(metadata.uid ?? '') === node.metadata.name)
    return isDecided ? 'none' : 'present'
  }
}

/** Resources of which less is left than wanted, in order of name. */
function lacking(
  wanted: Readonly<Record<string, number>>,
  has: Readonly<Record<string, number>>,
  used: Readonly<Record<string, number>>,
): readonly string[] {
  const left: Record<string, number> = { ...has }
  accumulate(left, Object.fromEntries(Object.entries(used).map(([name, amount]) => [name, -amount])))
  return Object.entries(wanted)
    .filter(([name, amount]) => amount > 0 && amount > (ownValue(left, name) ?? 0))
    .map(([name]) => name)
    .toSorted()
}

/** Whether something closes the node to the pod that its launch did not foresee. */
function isClosed({ spec }: Node, pod: Pod): boolean {
  if (spec?.unschedulable === true) return true
  return (spec?.taints ?? []).some(
    (taint) =>
      taint.effect !== 'PreferNoSchedule' &&
      !(pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  )
}
