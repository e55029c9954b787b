/** NodePools whose replacements for drifted nodes are drifted themselves. */
import { isConditionTrue, type NodeClaim, type NodePool, type Pod } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { type Clock, Listeners } from '@tenon/runtime'
import { CanaryRollouts } from './canary-rollouts.ts'
import type { Caches } from '../caches.ts'
import { FailureBackoff } from '../failure-backoff.ts'
import { isSpecChange, poolOf, poolsOfClass } from './managed-pool.ts'

const minute = 60_000
/** A replacement found drifted later than this has drifted for a cause of its own. */
const bornMs = 30 * minute
/** After a failure, how long one replacement is watched before the next node is replaced. */
const probeMs = 15 * minute
/** How long a limit found by the disruption loop is remembered; the loop checks several times within it. */
const limitMs = minute
const backoff = { freeFailures: 0, baseMs: 30 * minute, capMs: 60 * minute, memoryMs: 360 * minute } as const

/**
 * Replacing a drifted node by one that is drifted from the start changes nothing and would never end, so the rollout of
 * such a NodePool pauses, longer each time. A change of the NodePool or of its node class ends the pause.
 */
export class Rollouts {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #failures: FailureBackoff
  /** When claims were launched in place of drifted ones, by name. */
  readonly #replacements = new Map<string, number>()
  /** End of the time in which a replacement is watched, by NodePool; monotonic milliseconds. */
  readonly #probes = new Map<string, number>()
  /** When the first node of the rollout was replaced, by NodePool; Unix milliseconds. */
  readonly #beganMs = new Map<string, number>()
  /** NodePools whose limits keep their drifted nodes. */
  readonly #limits = new Map<string, { readonly because: string; readonly untilMs: number }>()
  /** Names of NodePools whose pause begins, changes or ends. */
  readonly changes: Listeners<string> = new Listeners()
  /** Rollouts that make a few replacements first. */
  readonly canaries: CanaryRollouts

  constructor(
    caches: Pick<Caches, 'nodePools' | 'nodeClasses' | 'nodeClaims'>,
    clock: Pick<Clock, 'now' | 'monotonic'>,
  ) {
    this.#clock = clock
    this.#failures = new FailureBackoff(clock, backoff)
    this.canaries = new CanaryRollouts(caches, clock)
    caches.nodePools.onChange((change) => {
      if (isSpecChange(change)) this.#restart([change.object])
    })
    for (const nodeClasses of caches.nodeClasses)
      nodeClasses.onChange((change) => {
        if (isSpecChange(change)) this.#restart(poolsOfClass(caches, change.object))
      })
    caches.nodeClaims.onChange((change) => {
      this.#note(change)
    })
  }

  /** Notes that drifted nodes are replaced by these claims. @param pods of the drifted nodes. */
  replace(pool: string, claims: readonly NodeClaim[], pods: readonly Pod[]): void {
    this.canaries.begun(pool, claims, pods)
    const now = this.#clock.monotonic()
    for (const [name, atMs] of this.#replacements) if (now - atMs >= bornMs) this.#replacements.delete(name)
    for (const { metadata } of claims) this.#replacements.set(metadata.name, now)
    // Times of objects are whole seconds.
    if (!this.#beganMs.has(pool)) this.#beganMs.set(pool, Math.floor(this.#clock.now() / 1000) * 1000)
    if (!this.#failures.hasFailed(pool)) return
    this.#probes.set(pool, now + probeMs)
    this.changes.notify(pool)
  }

  /** Restores a pause of an earlier process. @param sinceMs Unix milliseconds. */
  restore(pool: string, sinceMs: number): void {
    const leftMs = sinceMs + backoff.baseMs - this.#clock.now()
    if (!this.#failures.hasFailed(pool) && leftMs > 0) this.#failures.restore(pool, 1, leftMs)
  }

  /** Milliseconds until the next drifted node of the NodePool may be replaced. */
  leftMs(pool: string): number {
    const probeLeftMs = (this.#probes.get(pool) ?? 0) - this.#clock.monotonic()
    return Math.max(this.#failures.leftMs(pool), probeLeftMs, 0)
  }

  /** Notes that limits of the NodePool keep its drifted nodes; forgotten after a minute unless repeated. */
  limit(pool: string, because: string): void {
    const isNew = this.limitOf(pool)?.because !== because
    this.#limits.set(pool, { because, untilMs: this.#clock.monotonic() + limitMs })
    if (isNew) this.changes.notify(pool)
  }

  /** The limit that keeps drifted nodes of the NodePool, and for how long it is remembered. */
  limitOf(pool: string): { readonly because: string; readonly leftMs: number } | undefined {
    const known = this.#limits.get(pool)
    const leftMs = (known?.untilMs ?? 0) - this.#clock.monotonic()
    return known === undefined || leftMs <= 0 ? undefined : { because: known.because, leftMs }
  }

  #note(change: Change<NodeClaim>): void {
    const { metadata } = change.object
    const launchedMs = this.#replacements.get(metadata.name)
    if (change.kind === 'deleted') this.#replacements.delete(metadata.name)
    if (change.kind !== 'updated' || !isConditionTrue(change.object, 'Drifted')) return
    this.#replacements.delete(metadata.name)
    if (isConditionTrue(change.old, 'Drifted')) return
    const pool = poolOf(change.object)
    const isBornDrifted =
      launchedMs === undefined
        ? this.#cameInPlace(pool, change.object)
        : this.#clock.monotonic() - launchedMs < bornMs
    if (!isBornDrifted) return
    this.#failures.note([pool])
    this.changes.notify(pool)
  }

  /** Whether the claim was created during the rollout, for pods of drained nodes. */
  #cameInPlace(pool: string, { metadata }: NodeClaim): boolean {
    const createdMs = Date.parse(metadata.creationTimestamp ?? '')
    return createdMs >= (this.#beganMs.get(pool) ?? Infinity) && this.#clock.now() - createdMs < bornMs
  }

  /** Claims launched before the change are drifted because of it, which says nothing about later ones. */
  #restart(pools: readonly NodePool[]): void {
    this.#replacements.clear()
    this.#beganMs.clear()
    for (const { metadata } of pools) {
      this.#probes.delete(metadata.name)
      this.#limits.delete(metadata.name)
    }
    this.#failures.forget(pools.map(({ metadata }) => metadata.name))
    for (const { metadata } of pools) this.changes.notify(metadata.name)
  }
}
