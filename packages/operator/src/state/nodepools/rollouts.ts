/** NodePools whose replacements for drifted nodes are drifted themselves. */
import { isConditionTrue, labels, type NodeClaim, type NodeClass, type NodePool, type Pod } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { type Clock, Listeners } from '@tenon/runtime'
import { CanaryRollouts } from './canary-rollouts.ts'
import type { Caches } from '../caches.ts'
import { FailureBackoff } from '../failure-backoff.ts'

const minute = 60_000
/** Drift that is found later than this has a cause of its own. */
const bornMs = 30 * minute
/** After a failure one node is replaced at a time, and the next one once this has shown what became of it. */
const probeMs = 15 * minute
/** The disruption loop looks at drifted nodes several times in so long. */
const limitMs = minute
const backoff = { freeFailures: 0, baseMs: 30 * minute, capMs: 60 * minute, memoryMs: 360 * minute } as const

/**
 * To replace a node by one that is drifted from the start changes nothing, whatever the reason, and would go on
 * without end: the rollout of such a pool pauses, for longer each time. A change of the NodePool or of its node
 * class may be the remedy, and ends the pause.
 */
export class Rollouts {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #caches: Pick<Caches, 'nodePools'>
  readonly #failures: FailureBackoff
  /** When claims were launched in place of drifted ones, by name. */
  readonly #replacements = new Map<string, number>()
  /** Until when it is waited for what becomes of a replacement, by NodePool. */
  readonly #probes = new Map<string, number>()
  /** Since when nodes of a NodePool are replaced, by its name; Unix milliseconds. */
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
    this.#caches = caches
    this.#failures = new FailureBackoff(clock, backoff)
    this.canaries = new CanaryRollouts({ caches, clock })
    caches.nodePools.onChange((change) => {
      if (isChanged(change)) this.#restart([change.object])
    })
    for (const nodeClasses of caches.nodeClasses)
      nodeClasses.onChange((change) => {
        if (isChanged(change)) this.#restart(this.#poolsOf(change.object))
      })
    caches.nodeClaims.onChange((change) => {
      this.#note(change)
    })
  }

  /** Nodes of the pool are replaced by these claims because they have drifted. @param pods of the nodes that go. */
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

  /** Takes up a pause that an earlier process began. @param sinceMs Unix milliseconds. */
  restore(pool: string, sinceMs: number): void {
    const leftMs = sinceMs + backoff.baseMs - this.#clock.now()
    if (!this.#failures.hasFailed(pool) && leftMs > 0) this.#failures.restore(pool, 1, leftMs)
  }

  /** For how many milliseconds no drifted node of the pool is replaced. */
  leftMs(pool: string): number {
    const probeLeftMs = (this.#probes.get(pool) ?? 0) - this.#clock.monotonic()
    return Math.max(this.#failures.leftMs(pool), probeLeftMs, 0)
  }

  /** The pool's limits keep its drifted nodes: holds for a minute, unless it is found again. */
  limit(pool: string, because: string): void {
    const isNew = this.limitOf(pool)?.because !== because
    this.#limits.set(pool, { because, untilMs: this.#clock.monotonic() + limitMs })
    if (isNew) this.changes.notify(pool)
  }

  /** Which limit keeps drifted nodes of the pool, and for how long that holds. */
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
    const pool = metadata.labels?.[labels.nodePool] ?? ''
    const isBornDrifted =
      launchedMs === undefined
        ? this.#cameInPlace(pool, change.object)
        : this.#clock.monotonic() - launchedMs < bornMs
    if (!isBornDrifted) return
    this.#failures.note([pool])
    this.changes.notify(pool)
  }

  /** Whether the claim was launched while nodes of its pool are replaced, for pods that had to leave theirs. */
  #cameInPlace(pool: string, { metadata }: NodeClaim): boolean {
    const createdMs = Date.parse(metadata.creationTimestamp ?? '')
    return createdMs >= (this.#beganMs.get(pool) ?? Infinity) && this.#clock.now() - createdMs < bornMs
  }

  #poolsOf({ kind, metadata }: NodeClass): readonly NodePool[] {
    return this.#caches.nodePools.list().filter(({ spec }) => {
      const ref = spec.template.spec.nodeClassRef
      return ref.kind === kind && ref.name === metadata.name
    })
  }

  /** What was launched before is drifted because of the change, and says nothing about what comes. */
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

function isChanged(change: Change<NodePool | NodeClass>): boolean {
  return (
    change.kind === 'deleted' || (change.kind === 'updated' && isNewGeneration(change.old, change.object))
  )
}

const isNewGeneration = (before: NodePool | NodeClass, after: NodePool | NodeClass): boolean =>
  before.metadata.generation !== after.metadata.generation
