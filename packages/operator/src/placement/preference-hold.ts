/** Opens nodes together that were launched for preferred spread or anti-affinity (planned-placement.md). */
import { type Clock, Listeners } from '@tenon/runtime'
import type { NodeClaim, PodSpec } from '@tenon/api'
import { canOpen } from './standing-nominations.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { OpeningHold } from '../nodeclaim/lifecycle/registration.ts'
import type { PlacementGate } from './gate.ts'

/** How long a node waits for the others of its decision: one of them may never join. */
const longestHoldMs = 60_000
/** From the moment the last node is ready until all open. */
const wakingMs = 10
const pollMs = 1000

/**
 * The scheduler satisfies preferences only with nodes that exist: the first node to join would get all the pods, and the
 * others, launched for the sake of the preference, would stay empty.
 */
export class PreferenceHold implements OpeningHold {
  readonly #caches: Pick<Caches, 'nodeClaims'>
  readonly #state: Pick<ClusterState, 'nodeOf' | 'plans'>
  readonly #placementGate: Pick<PlacementGate, 'keepsPlans'>
  readonly #clock: Pick<Clock, 'now'>
  /** When the claim's Node was first held, by claim UID. */
  readonly #since = new Map<string, number>()
  /** When the claims of a decision open. */
  readonly #opensAt = new WeakMap<ReadonlySet<string>, number>()
  readonly due: OpeningHold['due'] = new Listeners()

  constructor(
    caches: Pick<Caches, 'nodeClaims'>,
    state: Pick<ClusterState, 'nodeOf' | 'plans'>,
    placementGate: Pick<PlacementGate, 'keepsPlans'>,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#caches = caches
    this.#state = state
    this.#placementGate = placementGate
    this.#clock = clock
    caches.nodeClaims.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#since.delete(object.metadata.uid ?? '')
    })
  }

  waitMs({ metadata: { name, uid = '' } }: NodeClaim): number {
    if (!this.#placementGate.keepsPlans) return 0
    const batch = this.#state.plans.siblingsOf(name)
    if (batch.size < 2 || !this.#hasPreferences(name)) return 0
    const now = this.#clock.now()
    const since = this.#since.get(uid) ?? now
    this.#since.set(uid, since)
    const leftMs = since + longestHoldMs - now
    if (leftMs <= 0) return 0
    const opensAt = this.#opensAt.get(batch)
    if (opensAt !== undefined) return Math.max(0, opensAt - now)
    const isComplete = [...batch].every((each) => !this.#hasPreferences(each) || this.#canOpen(each))
    if (!isComplete) return Math.min(leftMs, pollMs)
    this.#opensAt.set(batch, now + wakingMs)
    for (const each of batch) this.due.notify({ name: each, afterMs: wakingMs })
    return wakingMs
  }

  /** Whether a pending pod that is planned for the claim prefers to be apart from others. */
  #hasPreferences(name: string): boolean {
    const { plans } = this.#state
    return plans.podsOf({ kind: 'claim', name }).some((uid) => prefersSpread(plans.get(uid)?.spec))
  }

  #canOpen(name: string): boolean {
    const claim = this.#caches.nodeClaims.get({ name })
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return true
    const node = this.#state.nodeOf(claim)
    return node !== undefined && canOpen(node)
  }
}

function prefersSpread(spec: PodSpec | undefined): boolean {
  const preferred = spec?.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const spreads = spec?.topologySpreadConstraints ?? []
  return (
    preferred.length > 0 || spreads.some(({ whenUnsatisfiable }) => whenUnsatisfiable === 'ScheduleAnyway')
  )
}
