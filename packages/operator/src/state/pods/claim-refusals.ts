/** Pods whose NodeClaims the API server rejects: found by bisection, and paused. */
import type { Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import { FailureBackoff } from '../failure-backoff.ts'

const minute = 60_000
/** A quota may be raised, or a webhook fixed. */
const backoff = { freeFailures: 0, baseMs: minute, capMs: 60 * minute, memoryMs: 6 * 60 * minute }

/** Pods of which at least one kind is rejected. */
interface Suspects {
  readonly uids: ReadonlySet<string>
}

export interface Turn {
  /** Pods to decide about now. */
  readonly pods: readonly Pod[]
  /** Messages of the API server for paused pods. */
  readonly refused: ReadonlyMap<Pod, string>
  /** Whether suspects are left for later decisions. */
  readonly hasMore: boolean
}

/**
 * The pods of a rejected claim are split in two halves, each decided about separately, until a rejected claim has pods of
 * only one kind: those are at fault.
 */
export class ClaimRefusals {
  readonly #failures: FailureBackoff
  /** Message of the API server by pod UID. */
  readonly #messages = new Map<string, string>()
  /** Each gets a decision of its own. */
  #suspects: Suspects[] = []
  #isOthersTurn = true

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#failures = new FailureBackoff(clock, backoff)
  }

  /** Selects the pods for the next decision. */
  turn(pods: readonly Pod[]): Turn {
    const refused = new Map<Pod, string>()
    for (const pod of pods) {
      const message = this.#messages.get(uidOf(pod))
      if (message !== undefined && this.#failures.leftMs(uidOf(pod)) > 0) refused.set(pod, message)
    }
    const waiting = pods.filter((pod) => !refused.has(pod))
    const known = new Set(waiting.map(uidOf))
    this.#suspects = this.#suspects.filter(({ uids }) => [...uids].some((uid) => known.has(uid)))
    const suspected = new Set(this.#suspects.flatMap(({ uids }) => [...uids]))
    const others = waiting.filter((pod) => !suspected.has(uidOf(pod)))
    const isTheirs = this.#suspects.length === 0 || (this.#isOthersTurn && others.length > 0)
    this.#isOthersTurn = !isTheirs
    if (isTheirs) return { pods: others, refused, hasMore: this.#suspects.length > 0 }
    const next = this.#suspects.shift()
    const turn = waiting.filter((pod) => next?.uids.has(uidOf(pod)) === true)
    return { pods: turn, refused, hasMore: true }
  }

  /**
   * A claim for these pods was rejected.
   * @returns the pods at fault; none while that is unknown.
   */
  note(pods: readonly Pod[], message: string): readonly Pod[] {
    const kinds = [...Map.groupBy(pods, kindOf).values()]
    if (kinds.length > 1) {
      const middle = kinds.length >> 1
      for (const half of [kinds.slice(0, middle), kinds.slice(middle)])
        this.#suspects.push({ uids: new Set(half.flat().map(uidOf)) })
      return []
    }
    const uids = pods.map(uidOf)
    this.#failures.note(uids)
    for (const uid of uids) this.#messages.set(uid, message)
    return pods
  }

  /** A claim for these pods was created. */
  forget(pods: readonly Pod[]): void {
    if (this.#messages.size === 0) return
    const uids = pods.map(uidOf)
    this.#failures.forget(uids)
    for (const uid of uids) this.#messages.delete(uid)
  }
}

const uidOf = ({ metadata }: Pod): string => metadata.uid ?? ''

/** Pods of one controller are of one kind. */
function kindOf({ metadata }: Pod): string {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? metadata.uid ?? ''
}
