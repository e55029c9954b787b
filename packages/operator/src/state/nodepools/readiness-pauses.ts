/** Pauses launches of NodePools whose nodes never become ready. */
import { isConditionTrue, type NodeClaim } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { FailureBackoff } from '../failure-backoff.ts'
import { isSpecChange, poolOf, poolsOfClass } from './managed-pool.ts'

const minute = 60_000
/** One failure may be chance. */
const backoff = { freeFailures: 1, baseMs: 15 * minute, capMs: 120 * minute, memoryMs: 360 * minute } as const
/** Instances may be interrupted or deleted many times before that is a loop. */
const loopBackoff = { freeFailures: 9, baseMs: minute, capMs: 60 * minute, memoryMs: 30 * minute } as const

/**
 * A pool pauses after two consecutive nodes that registered but were never initialized, or after ten consecutive instances
 * that were deleted before. The pause grows with each failure. An initialized node, or a change of the NodePool or its
 * node class, ends it.
 */
export class ReadinessPauses {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #failures: FailureBackoff
  readonly #gone: FailureBackoff
  /** When the last instance was counted as gone, by NodePool; Unix milliseconds. */
  readonly #goneMs = new Map<string, number>()
  /** When the last failure was counted, by NodePool; Unix milliseconds. */
  readonly #failedMs = new Map<string, number>()
  /** Pauses of an earlier process, by NodePool; Unix milliseconds. */
  readonly #restoredUntilMs = new Map<string, number>()

  constructor(
    caches: Pick<Caches, 'nodePools' | 'nodeClasses' | 'nodeClaims'>,
    clock: Pick<Clock, 'now' | 'monotonic'>,
  ) {
    this.#clock = clock
    this.#failures = new FailureBackoff(clock, backoff)
    this.#gone = new FailureBackoff(clock, loopBackoff)
    caches.nodePools.onChange((change) => {
      if (isSpecChange(change)) this.#forget(change.object.metadata.name)
    })
    for (const nodeClasses of caches.nodeClasses)
      nodeClasses.onChange((change) => {
        if (!isSpecChange(change)) return
        for (const { metadata } of poolsOfClass(caches, change.object)) this.#forget(metadata.name)
      })
    caches.nodeClaims.onChange((change) => {
      if (change.kind !== 'updated' || isConditionTrue(change.old, 'Initialized')) return
      const { object, old } = change
      const goes = isGoing(object) && !isGoing(old)
      if (isConditionTrue(object, 'Initialized')) this.#forget(poolOf(object))
      else if (goes && isConditionTrue(object, 'Launched')) this.#count(object, this.#goneMs, this.#gone)
    })
  }

  /** The claim's node was not initialized in time. */
  note(claim: NodeClaim): void {
    this.#count(claim, this.#failedMs, this.#failures)
  }

  /** Claims launched before the last failure count with it: they fail together. */
  #count(claim: NodeClaim, lastMs: Map<string, number>, failures: FailureBackoff): void {
    const pool = poolOf(claim)
    const last = lastMs.get(pool)
    // Timestamps of objects have whole seconds.
    if (last !== undefined && Date.parse(claim.metadata.creationTimestamp ?? '') + 1000 <= last) return
    lastMs.set(pool, this.#clock.now())
    failures.note([pool])
  }

  /** Milliseconds left of the pause. */
  leftMs(pool: string): number {
    const restoredMs = (this.#restoredUntilMs.get(pool) ?? 0) - this.#clock.now()
    return Math.max(this.#failures.leftMs(pool), this.#gone.leftMs(pool), restoredMs, 0)
  }

  restore(pool: string, untilMs: number): void {
    this.#restoredUntilMs.set(pool, untilMs)
  }

  #forget(pool: string): void {
    this.#failedMs.delete(pool)
    this.#restoredUntilMs.delete(pool)
    this.#failures.forget([pool])
    this.#goneMs.delete(pool)
    this.#gone.forget([pool])
  }
}

const isGoing = ({ metadata }: NodeClaim): boolean => metadata.deletionTimestamp !== undefined
