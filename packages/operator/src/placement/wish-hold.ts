/** Opens the nodes at one moment that were bought so that pods can keep away from each other where they wish to. */
import { type Clock, Listeners } from '@tenon/runtime'
import type { NodeClaim, PodSpec } from '@tenon/api'
import { canOpen } from './standing-nominations.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { PlacementGate } from './gate.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'nodeOf' | 'plans'>
  readonly placementGate: Pick<PlacementGate, 'keepsPlans'>
  readonly clock: Pick<Clock, 'now'>
}

/** A node waits so long for the others of its decision at most: one of them may never join. */
const longestHoldMs = 60_000
/** From the moment the last of them is ready until they open. */
const wakingMs = 10
const pollMs = 1000

/**
 * The scheduler fulfils a wish to spread only with the nodes that are there. The first node to join would take all
 * the pods, and the others, bought for the sake of the wish, would stay empty.
 */
export class WishHold {
  readonly #deps: Dependencies
  /** When the claim's Node was first held, by claim UID. */
  readonly #since = new Map<string, number>()
  /** When the claims of a decision open. */
  readonly #opensAt = new WeakMap<ReadonlySet<string>, number>()
  /** Claims to ask for again after so long, or earlier. */
  readonly due = new Listeners<{ readonly name: string; readonly afterMs: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    deps.caches.nodeClaims.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#since.delete(object.metadata.uid ?? '')
    })
  }

  /** Milliseconds after which to ask again; 0 once the claim's Node may open. */
  waitMs({ metadata: { name, uid = '' } }: NodeClaim): number {
    const { clock, placementGate, state } = this.#deps
    if (!placementGate.keepsPlans) return 0
    const batch = state.plans.siblingsOf(name)
    if (batch.size < 2 || !this.#hasWishes(name)) return 0
    const now = clock.now()
    const since = this.#since.get(uid) ?? now
    this.#since.set(uid, since)
    const leftMs = since + longestHoldMs - now
    if (leftMs <= 0) return 0
    const opensAt = this.#opensAt.get(batch)
    if (opensAt !== undefined) return Math.max(0, opensAt - now)
    const isComplete = [...batch].every((each) => !this.#hasWishes(each) || this.#canOpen(each))
    if (!isComplete) return Math.min(leftMs, pollMs)
    this.#opensAt.set(batch, now + wakingMs)
    for (const each of batch) this.due.notify({ name: each, afterMs: wakingMs })
    return wakingMs
  }

  /** Whether a pod that the claim was launched for, and that still waits, would rather be apart from others. */
  #hasWishes(name: string): boolean {
    const { plans } = this.#deps.state
    return plans.podsOf({ kind: 'claim', name }).some((uid) => wishesToSpread(plans.get(uid)?.spec))
  }

  #canOpen(name: string): boolean {
    const { caches, state } = this.#deps
    const claim = caches.nodeClaims.get({ name })
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return true
    const node = state.nodeOf(claim)
    return node !== undefined && canOpen(node)
  }
}

function wishesToSpread(spec: PodSpec | undefined): boolean {
  const preferred = spec?.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const spreads = spec?.topologySpreadConstraints ?? []
  return (
    preferred.length > 0 || spreads.some(({ whenUnsatisfiable }) => whenUnsatisfiable === 'ScheduleAnyway')
  )
}
