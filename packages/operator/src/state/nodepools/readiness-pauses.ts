/** NodePools whose nodes never take pods. */
import { isConditionTrue, labels, type NodeClaim, type NodeClass, type NodePool } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { FailureBackoff } from '../failure-backoff.ts'

const minute = 60_000
/** One node may fail by chance. */
const backoff = { freeFailures: 1, baseMs: 15 * minute, capMs: 120 * minute, memoryMs: 360 * minute } as const
/** Instances may go before they join, by interruption or by somebody's hand, many times before that is a loop. */
const loopBackoff = { freeFailures: 9, baseMs: minute, capMs: 60 * minute, memoryMs: 30 * minute } as const

/**
 * After two nodes in a row that registered and never took pods, and after ten instances in a row that were gone before
 * they did, whatever the cause, nothing is launched for the pool for a while, which grows with each failure. A node that
 * takes pods, or a change of the NodePool or of its node class, ends this.
 */
export class ReadinessPauses {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #caches: Pick<Caches, 'nodePools'>
  readonly #failures: FailureBackoff
  readonly #gone: FailureBackoff
  /** When the last instance went that counts as gone before its time, by NodePool; Unix milliseconds. */
  readonly #goneMs = new Map<string, number>()
  /** When the last failure that counts was noted, by NodePool; Unix milliseconds. */
  readonly #failedMs = new Map<string, number>()
  /** Pauses that another process began, by NodePool; Unix milliseconds. */
  readonly #restoredUntilMs = new Map<string, number>()

  constructor(
    caches: Pick<Caches, 'nodePools' | 'nodeClasses' | 'nodeClaims'>,
    clock: Pick<Clock, 'now' | 'monotonic'>,
  ) {
    this.#clock = clock
    this.#caches = caches
    this.#failures = new FailureBackoff(clock, backoff)
    this.#gone = new FailureBackoff(clock, loopBackoff)
    caches.nodePools.onChange((change) => {
      if (isChanged(change)) this.#forget(change.object.metadata.name)
    })
    for (const nodeClasses of caches.nodeClasses)
      nodeClasses.onChange((change) => {
        if (isChanged(change)) for (const pool of this.#poolsOf(change.object)) this.#forget(pool)
      })
    caches.nodeClaims.onChange((change) => {
      if (change.kind !== 'updated' || isConditionTrue(change.old, 'Initialized')) return
      const { object, old } = change
      const goes = isGoing(object) && !isGoing(old)
      if (isConditionTrue(object, 'Initialized')) this.#forget(poolOf(object))
      else if (goes && isConditionTrue(object, 'Launched')) this.#count(object, this.#goneMs, this.#gone)
    })
  }

  /** The claim's node did not take pods in time. */
  note(claim: NodeClaim): void {
    this.#count(claim, this.#failedMs, this.#failures)
  }

  /** Claims that were launched together fail together. */
  #count(claim: NodeClaim, lastMs: Map<string, number>, failures: FailureBackoff): void {
    const pool = poolOf(claim)
    const last = lastMs.get(pool)
    // Timestamps of objects are cut to seconds.
    if (last !== undefined && Date.parse(claim.metadata.creationTimestamp ?? '') + 1000 <= last) return
    lastMs.set(pool, this.#clock.now())
    failures.note([pool])
  }

  /** For how many milliseconds nothing is launched for the pool. */
  leftMs(pool: string): number {
    const restoredMs = (this.#restoredUntilMs.get(pool) ?? 0) - this.#clock.now()
    return Math.max(this.#failures.leftMs(pool), this.#gone.leftMs(pool), restoredMs, 0)
  }

  /** Takes over a pause. */
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

  #poolsOf({ kind, metadata }: NodeClass): readonly string[] {
    return this.#caches.nodePools.list().flatMap(({ metadata: { name }, spec }) => {
      const ref = spec.template.spec.nodeClassRef
      return ref.kind === kind && ref.name === metadata.name ? [name] : []
    })
  }
}

const isGoing = ({ metadata }: NodeClaim): boolean => metadata.deletionTimestamp !== undefined

const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

function isChanged(change: Change<NodePool | NodeClass>): boolean {
  if (change.kind === 'deleted') return true
  return change.kind === 'updated' && change.old.metadata.generation !== change.object.metadata.generation
}
