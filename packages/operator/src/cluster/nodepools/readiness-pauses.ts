/** NodePools whose nodes register and never take pods. */
import { isConditionTrue, labels, type NodeClaim, type NodeClass, type NodePool } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { FailureBackoff } from '../failure-backoff.ts'

const minute = 60_000
/** One node may fail by chance. */
const backoff = { freeFailures: 1, baseMs: 15 * minute, capMs: 120 * minute, memoryMs: 360 * minute } as const

/**
 * After two failures in a row nothing is launched for the pool for a while, which grows with each failure. A node
 * that takes pods, or a change of the NodePool or of its node class, ends this.
 */
export class ReadinessPauses {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #caches: Pick<Caches, 'nodePools'>
  readonly #failures: FailureBackoff
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
    caches.nodePools.onChange((change) => {
      if (isChanged(change)) this.#forget(change.object.metadata.name)
    })
    for (const nodeClasses of caches.nodeClasses)
      nodeClasses.onChange((change) => {
        if (isChanged(change)) for (const pool of this.#poolsOf(change.object)) this.#forget(pool)
      })
    caches.nodeClaims.onChange((change) => {
      if (change.kind !== 'updated' || isConditionTrue(change.old, 'Initialized')) return
      if (isConditionTrue(change.object, 'Initialized')) this.#forget(poolOf(change.object))
    })
  }

  /** The claim's node did not take pods in time. Claims that were launched together fail together. */
  note(claim: NodeClaim): void {
    const pool = poolOf(claim)
    const createdMs = Date.parse(claim.metadata.creationTimestamp ?? '')
    const failedMs = this.#failedMs.get(pool)
    if (failedMs !== undefined && createdMs <= failedMs) return
    this.#failedMs.set(pool, this.#clock.now())
    this.#failures.note([pool])
  }

  /** For how many milliseconds nothing is launched for the pool. */
  leftMs(pool: string): number {
    const restoredMs = (this.#restoredUntilMs.get(pool) ?? 0) - this.#clock.now()
    return Math.max(this.#failures.leftMs(pool), restoredMs, 0)
  }

  /** Takes over a pause. */
  restore(pool: string, untilMs: number): void {
    this.#restoredUntilMs.set(pool, untilMs)
  }

  #forget(pool: string): void {
    this.#failedMs.delete(pool)
    this.#restoredUntilMs.delete(pool)
    this.#failures.forget([pool])
  }

  #poolsOf({ kind, metadata }: NodeClass): readonly string[] {
    return this.#caches.nodePools.list().flatMap(({ metadata: { name }, spec }) => {
      const ref = spec.template.spec.nodeClassRef
      return ref.kind === kind && ref.name === metadata.name ? [name] : []
    })
  }
}

const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

function isChanged(change: Change<NodePool | NodeClass>): boolean {
  if (change.kind === 'deleted') return true
  return change.kind === 'updated' && change.old.metadata.generation !== change.object.metadata.generation
}
