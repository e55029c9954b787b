/**
 * Finds nodes that were launched in vain (reports.md 1): they are there, and the scheduler still refuses the pods they
 * were launched for. Runs before each decision, which would else launch the same again.
 */
import { isConditionTrue, labels, type Pod } from '@tenon/api'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import { transitionMs } from '../../cluster/nodes/state-node.ts'
import { isActive } from '../../cluster/pods/pods.ts'
import { workloadOf } from '../../cluster/pods/workloads.ts'
import type { Decided } from './decided-pods.ts'
import type { EvidenceReport } from './evidence-report.ts'
import type { EvidenceFindings } from './findings.ts'
import { workloadsOf } from './launched-for.ts'
import type { Place } from './place.ts'
import type { Places } from './places.ts'
import { type PlaceVerdicts, settleMs } from './place-verdicts.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<
    ClusterState,
    'claimOf' | 'evidence' | 'isWellFormed' | 'nominations' | 'plans' | 'pods'
  >
  readonly places: Places
  readonly verdicts: PlaceVerdicts
  readonly findings: EvidenceFindings
  readonly report: EvidenceReport
  readonly slicing: Slicing & { readonly clock: Pick<Clock, 'monotonic' | 'now'> }
}

/** A node that has been there for so long without being found useless was not launched in vain. */
const openMs = 60 * 60_000

/** Pods that wait for a node that was launched for them, by key of their workload, and how many it was launched for. */
export type OnTrial = ReadonlyMap<string, number>

/** Keeps what claims were launched for until that has come true, or proved to be in vain. */
export class NodeEvidenceJudge {
  readonly #deps: Dependencies
  /** By claim name the workloads that have no pod on its node yet. */
  readonly #open = new Map<string, Map<string, number>>()
  /** Claims whose workloads were read. */
  readonly #read = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Follows claims until the returned function is called. */
  follow(): () => void {
    const { findings, places, slicing } = this.#deps
    return places.onClaim(({ kind, object }) => {
      const { name, deletionTimestamp } = object.metadata
      if (kind !== 'deleted' && deletionTimestamp === undefined) {
        if (this.#read.has(name)) return
        this.#read.add(name)
        const initializedMs = isConditionTrue(object, 'Initialized')
          ? transitionMs(object, 'Initialized')
          : undefined
        if (initializedMs !== undefined && slicing.clock.now() - initializedMs > openMs) return
        const workloads = new Map(workloadsOf(object))
        if (workloads.size > 0) this.#open.set(name, workloads)
        return
      }
      const workloads = this.#open.get(name)
      if (workloads !== undefined) findings.unborn(object, workloads)
      this.#open.delete(name)
      if (kind === 'deleted') this.#read.delete(name)
    })
  }

  /** Notes on which of the nodes that there are a decision put pods, and for which pods it knows none. */
  decided(result: Decided): void {
    this.#deps.verdicts.decided(result)
  }

  /** Judges every node that some pod waits for. */
  async run(signal: AbortSignal): Promise<OnTrial> {
    const { places, report, slicing, state } = this.#deps
    const { evidence } = state
    evidence.stand(places.ground())
    const onTrial = new Map<string, number>()
    const isIdle = this.#open.size === 0 && evidence.isEmpty
    const waiting = isIdle ? new Map<string, Pod[]>() : await inSlices(this.#waiting(), slicing)
    for (const [name, workloads] of this.#open) {
      const place = places.of(name)
      if (place === undefined) continue
      const served = places.served(place.node)
      for (const [workload, count] of workloads) {
        const pods = waiting.get(workload) ?? []
        if (served.has(workload)) workloads.delete(workload)
        else if (pods.length > 0 && (await this.#isOnTrial({ place, workload, pods }, signal)))
          onTrial.set(workload, (onTrial.get(workload) ?? 0) + count)
      }
      for (const [workload, ms] of served) evidence.served(workload, ms)
      if (workloads.size === 0) this.#open.delete(name)
    }
    await this.#judgePlans(signal)
    report.held(waiting)
    evidence.try(onTrial)
    return onTrial
  }

  *#waiting(): Generator<undefined, Map<string, Pod[]>, undefined> {
    const { state } = this.#deps
    const waiting = new Map<string, Pod[]>()
    for (const pod of state.pods.waiting()) {
      yield
      if (!state.isWellFormed(pod) || !isActive(pod)) continue
      const key = workloadOf(pod)
      const pods = waiting.get(key)
      if (pods === undefined) waiting.set(key, [pod])
      else pods.push(pod)
    }
    return waiting
  }

  /** Whether a workload may yet get the place that was launched for it: nothing else is launched meanwhile. */
  async #isOnTrial(
    {
      place,
      workload,
      pods,
    }: { readonly place: Place; readonly workload: string; readonly pods: readonly Pod[] },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { findings, state, verdicts } = this.#deps
    const { evidence } = state
    const { claim } = place
    // Pods that such a node was launched for stay with it; others of the workload need not wait for it.
    if (verdicts.isDoubtful(place)) return false
    const known = evidence.of(workload)
    const isKnown = known !== undefined && evidence.isFound(workload, claim.metadata.name)
    if (isKnown && (known.cause === 'short' || evidence.isHeld(known))) return false
    // What kept the pods away is still there, and decisions know it: they may have a place elsewhere.
    if (isKnown && verdicts.areElsewhere(pods, place.node)) return false
    // What was refused is tried once more, for a while.
    const again = isKnown
      ? { ...place, changedMs: Math.max(evidence.liftedMs(workload), place.changedMs) }
      : place
    const { verdict, pod } = verdicts.onAny(pods, again)
    if (verdict.kind === 'open') return true
    if (verdict.kind === 'taken') {
      this.#open.get(place.claim.metadata.name)?.delete(workload)
      return false
    }
    const words = await verdicts.wordsOf(pod, signal)
    if (words === undefined) return true
    await findings.note(place, { pod, like: pods }, verdict, words, signal)
    return false
  }

  /** A pod that stays refused on a node that was there keeps it no longer, and is planned elsewhere. */
  async #judgePlans(signal: AbortSignal): Promise<void> {
    const { places, slicing, state, verdicts } = this.#deps
    for (const [uid, { target, madeMs }] of state.plans.entries()) {
      if (slicing.clock.now() - madeMs < settleMs) continue
      const pod = state.pods.unplaced(uid)
      const node = pod && state.nominations.nodeFor(target)
      const claim = node && state.claimOf(node)
      if (pod === undefined || node === undefined || claim === undefined || !state.isWellFormed(pod)) continue
      if (this.#open.get(claim.metadata.name)?.has(workloadOf(pod)) === true) continue
      const place = places.of(claim.metadata.name)
      if (place === undefined) continue
      if (verdicts.on(pod, place).kind !== 'refused') continue
      if ((await verdicts.wordsOf(pod, signal)) === undefined) continue
      state.plans.giveUp([uid])
      state.evidence.refuse(uid, node.metadata.labels?.[labels.hostname] ?? node.metadata.name)
    }
  }
}
