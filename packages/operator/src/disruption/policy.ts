/** Why a node is not consolidated: its NodePool, its labels (disruption.md 8), or pods that were moved recently. */
import { type Clock, perObject } from '@tenon/runtime'
import { counted, isConditionTrue, labels, type NodeClaim, type NodePool } from '@tenon/api'
import { consolidateAfterMs } from '../state/nodepools/managed-pool.ts'
import type { KeptRoom } from '../state/pods/buffer-pods.ts'
import { keyOf } from '../state/pods/pods.ts'
import { labelsOf, transitionMs } from '../state/nodes/state-node.ts'
import { type Candidate, isEmpty } from './candidates.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { policyOf, type Settings } from '../settings.ts'

interface Dependencies {
  readonly state: Pick<
    ClusterState,
    'buffers' | 'movedPods' | 'predictions' | 'recentlyFilledNodes' | 'unnotedPodEvents'
  >
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'compatibility'>
}

/** A reason against consolidation. */
export interface Objection {
  /** A clause without a full stop. */
  readonly text: string
  /** When it ends by itself, in Unix milliseconds; undefined if it does not. */
  readonly untilMs?: number
}

/** Memoized by object: from pass to pass most candidates are the same objects. */
const firstShortcoming = perObject((candidate: Candidate): string | null => {
  const { value } = shortcomings(candidate).next()
  return value ?? null
})

/** Why a node is not consolidated, as its event says. Empty nodes are left to method emptiness. */
export function unconsolidatable(candidate: Candidate): string | undefined {
  return firstShortcoming(candidate) ?? undefined
}

function* shortcomings(candidate: Candidate): Generator<string, undefined, undefined> {
  const { pool, type } = candidate
  const tags = labelsOf(candidate)
  const { consolidationPolicy } = pool.spec.disruption ?? {}
  const nodePool = `NodePool=${pool.metadata.name}`
  if (type === undefined) yield `instance type not found (instance-type=${tags[labels.instanceType] ?? ''})`
  for (const label of [labels.capacityType, labels.zone])
    if ((tags[label] ?? '') === '') yield `the Node has no label ${label} (label=${label})`
  const disabled = disabledText(pool)
  if (disabled !== undefined) yield disabled
  if (!isEmpty(candidate) && consolidationPolicy === 'WhenEmpty')
    yield `only empty nodes are consolidated (${nodePool}, consolidationPolicy=WhenEmpty)`
}

function disabledText(pool: NodePool): string | undefined {
  return Number.isFinite(consolidateAfterMs(pool))
    ? undefined
    : `consolidation is disabled (NodePool=${pool.metadata.name})`
}

export function keptRoomText(room: readonly KeptRoom[]): string {
  const parts = room.map(({ buffer, pods }) => `${counted(pods.length, 'pod')} of CapacityBuffer ${buffer}`)
  return `room is kept on it for ${parts.toSorted().join(', ')}`
}

const isConsolidatable = perObject((claim: NodeClaim) => isConditionTrue(claim, 'Consolidatable'))

/** When a pod last came to the node or left it, in Unix milliseconds. */
function lastPodEventMs({ claim }: Pick<Candidate, 'claim'>): number | undefined {
  const { lastPodEventTime } = claim.status ?? {}
  return lastPodEventTime === undefined ? transitionMs(claim, 'Initialized') : Date.parse(lastPodEventTime)
}

export class ConsolidationPolicy {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Set while pods of the node are not moved, because moving their workload needed a new node recently. */
  restOf({ pods }: Candidate): Objection | undefined {
    const { clock, state } = this.#deps
    const backingOff = state.movedPods.backingOff(pods)
    if (backingOff === undefined) return undefined
    const minutes = Math.ceil(backingOff.forMs / 60_000)
    const text = `pods of the same workload needed a new node when they were moved last; it is tried again in ${minutes} min (Pod=${keyOf(backingOff.pod.metadata)})`
    return { text, untilMs: clock.now() + backingOff.forMs }
  }

  /** Set while pods that were placed on the node have just started, beyond `consolidateAfter`. */
  freshnessOf(candidate: Candidate): string | undefined {
    return this.#freshness(candidate)?.text
  }

  #freshness(candidate: Candidate): Objection | undefined {
    const { claim, pool } = candidate
    const { clock, settings, state } = this.#deps
    if (!policyOf(settings).sparesFreshPods) return undefined
    if (!state.recentlyFilledNodes.has(claim.metadata.name)) return undefined
    const nowMs = clock.now()
    const sinceMs = lastPodEventMs(candidate) ?? nowMs
    const leftMs = state.recentlyFilledNodes.leftMs(claim.metadata.name, sinceMs, consolidateAfterMs(pool))
    if (leftMs <= 0) return undefined
    const text = 'its pods were recently placed there by a decision, and none has left since'
    return { text, untilMs: nowMs + leftMs }
  }

  /** Whether the requests that pods will have after a move are known (VerticalPodAutoscalers). */
  get isInformed(): boolean {
    return !this.#deps.state.predictions.isAwaited
  }

  /**
   * Whether no pod came or went for `consolidateAfter`. An event counts from when it is seen, as the condition of the
   * claim may follow late.
   */
  isAtRest({ node, claim }: Pick<Candidate, 'node' | 'claim'>): boolean {
    const { unnotedPodEvents } = this.#deps.state
    return isConsolidatable(claim) && !unnotedPodEvents.has(node.metadata.name)
  }

  /** All reasons against consolidation of the node that NodePool, buffers and pods give. */
  *against(candidate: Candidate): Generator<Objection, undefined, undefined> {
    const { pool } = candidate
    const { name } = pool.metadata
    if (pool.spec.replicas !== undefined)
      yield {
        text: `the NodePool has a fixed number of replicas (NodePool=${name}, replicas=${pool.spec.replicas})`,
      }
    const disabled = disabledText(pool)
    if (disabled !== undefined) yield { text: disabled }
    const room = this.#deps.state.buffers.keptOn(candidate.providerID)
    if (isEmpty(candidate) && room.length > 0) yield { text: keptRoomText(room) }
    if (!isEmpty(candidate)) {
      for (const text of shortcomings(candidate)) if (text !== disabled) yield { text }
      const fresh = this.#freshness(candidate)
      if (fresh !== undefined) yield fresh
    }
    // Without consolidation, or with fixed replicas, condition Consolidatable is never True.
    if (disabled === undefined && pool.spec.replicas === undefined && !this.isAtRest(candidate))
      yield this.#unrest(candidate)
  }

  #unrest(candidate: Candidate): Objection {
    const { pool } = candidate
    const { consolidateAfter = '0s' } = pool.spec.disruption ?? {}
    const sinceMs = lastPodEventMs(candidate)
    const untilMs = (sinceMs ?? 0) + consolidateAfterMs(pool)
    return {
      text: `the node has not been at rest for long enough (NodePool=${pool.metadata.name}, consolidateAfter=${consolidateAfter})`,
      ...(sinceMs !== undefined && untilMs > this.#deps.clock.now() && { untilMs }),
    }
  }
}
