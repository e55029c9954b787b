/**
 * `podgroup.members`: records events for groups that the scheduler does not report on: pods whose group misses members, or
 * does not exist, get no condition at all (gangs.md 5.4).
 */
import { done, type ReconcileResult } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isProvisionable } from '../../state/pods/pods.ts'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { GroupReport } from './report.ts'

/** Members are created one after the other, and the group's object may come after them. */
const settlingMs = 10_000
const againMs = 5 * 60_000
const pollMs = 1_000

export class SilentMembers implements ControllerSpec {
  readonly name = 'podgroup.members'
  readonly concurrency = { least: 1, most: 1 }
  readonly #state: Pick<ClusterState, 'isWellFormed' | 'podGroups'>
  readonly #report: GroupReport
  readonly #clock: Pick<Clock, 'now'>
  /** Since when the group misses members, by its id. */
  readonly #since = new Map<string, number>()

  constructor(
    state: Pick<ClusterState, 'isWellFormed' | 'podGroups'>,
    report: GroupReport,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#state = state
    this.#report = report
    this.#clock = clock
  }

  watch(enqueue: Enqueue): void {
    this.#state.podGroups.changes.add((id) => {
      enqueue(id)
    })
  }

  /** @param id of a group. */
  reconcile(id: string): Promise<ReconcileResult> {
    return Promise.resolve(this.#look(id))
  }

  #look(id: string): ReconcileResult {
    const { podGroups } = this.#state
    const ref = podGroups.ref(id)
    const pods = podGroups.members(id).filter((pod) => this.#state.isWellFormed(pod))
    const waiting = pods.filter(
      ({ spec }) => (spec.nodeName ?? '') === '' && (spec.schedulingGates ?? []).length === 0,
    )
    const bound = pods.filter(({ spec }) => (spec.nodeName ?? '') !== '').length
    const group = ref && podGroups.get(ref)
    // Decisions report on pods that the scheduler has rejected.
    const isSilent =
      ref !== undefined && ref.source !== 'request' && waiting.length > 0 && !waiting.some(isProvisionable)
    if (!isSilent || podGroups.isAbsent(ref) || waiting.length + bound >= (group?.minCount ?? Infinity)) {
      this.#since.delete(id)
      return done
    }
    // Unknown is not missing.
    if (podGroups.problemOf(ref) === undefined && !podGroups.isKnown(ref))
      return { kind: 'after', delayMs: pollMs }
    const sinceMs = this.#since.get(id) ?? this.#clock.now()
    this.#since.set(id, sinceMs)
    const leftMs = sinceMs + settlingMs - this.#clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: leftMs }
    if (group === undefined) this.#report.doesNotExist(ref)
    else this.#report.isShort(group, { members: waiting.length, bound })
    return { kind: 'after', delayMs: againMs }
  }
}
