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

/** Why nothing is launched for a pod until the pause ends. */
export interface Refusal {
  /** Of the API server. */
  readonly message: string
  /** When the pause ends, Unix milliseconds. */
  readonly untilMs: number
}

export interface Turn {
  /** Pods to decide about now. */
  readonly pods: readonly Pod[]
  readonly refused: ReadonlyMap<Pod, Refusal>
  /** Whether suspects are left for later decisions. */
  readonly hasMore: boolean
}

/**
 * The pods of a rejected claim are split in two halves, each decided about separately, until a rejected claim has pods of
 * only one kind: those are at fault.
 */
export class ClaimRefusals {
  readonly #failures: FailureBackoff
  readonly #clock: Pick<Clock, 'now'>
  /** By pod UID. */
  readonly #refusals = new Map<string, Refusal>()
  /** Each gets a decision of its own. */
  #suspects: Suspects[] = []
  #isOthersTurn = true

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>) {
    this.#clock = clock
    this.#failures = new FailureBackoff(clock, backoff)
  }

  /** The pods that are paused. */
  among(pods: readonly Pod[]): ReadonlyMap<Pod, Refusal> {
    const refused = new Map<Pod, Refusal>()
    if (this.#refusals.size === 0) return refused
    for (const pod of pods) {
      const refusal = this.#refusal(uidOf(pod))
      if (refusal !== undefined) refused.set(pod, refusal)
    }
    return refused
  }

  #refusal(uid: string): Refusal | undefined {
    return this.#failures.leftMs(uid) > 0 ? this.#refusals.get(uid) : undefined
  }

  /** The pauses that have not ended, by UID of the pod. */
  all(): readonly (readonly [uid: string, Refusal])[] {
    return [...this.#refusals].filter(([uid]) => this.#failures.leftMs(uid) > 0)
  }

  /** Takes over a pause of another process. */
  restore(uid: string, refusal: Refusal): void {
    this.#failures.restore(uid, 1, refusal.untilMs - this.#clock.now())
    this.#refusals.set(uid, refusal)
  }

  /** Selects the pods for the next decision. */
  turn(pods: readonly Pod[]): Turn {
    const refused = this.among(pods)
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
    // Most pods are deleted at some time.
    for (const uid of this.#refusals.keys()) if (!this.#failures.hasFailed(uid)) this.#refusals.delete(uid)
    for (const uid of uids)
      this.#refusals.set(uid, { message, untilMs: this.#clock.now() + this.#failures.leftMs(uid) })
    return pods
  }

  /** A claim for these pods was created. */
  forget(pods: readonly Pod[]): void {
    if (this.#refusals.size === 0) return
    const uids = pods.map(uidOf)
    this.#failures.forget(uids)
    for (const uid of uids) this.#refusals.delete(uid)
  }
}

const uidOf = ({ metadata }: Pod): string => metadata.uid ?? ''

/** Pods of one controller are of one kind. */
function kindOf({ metadata }: Pod): string {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? metadata.uid ?? ''
}
