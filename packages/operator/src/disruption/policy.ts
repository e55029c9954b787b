/** What speaks against consolidation of a node: its NodePool, its labels (disruption.md 8), or a move in vain. */
import type { Clock } from '@tenon/runtime'
import { isConditionTrue, labels } from '@tenon/api'
import { consolidateAfterMs } from '../cluster/nodes/consolidate-after.ts'
import { keyOf } from '../cluster/pods/pods.ts'
import { labelsOf, transitionMs } from '../cluster/nodes/state-node.ts'
import { type Candidate, isEmpty } from './candidates.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { Settings } from '../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'movedPods' | 'recentlyFilledNodes' | 'unnotedPodEvents'>
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Pick<Settings, 'compatibility'>
}

/** Why a node is not consolidated that users are told of; empty ones are left to emptiness. */
export function unconsolidatable(candidate: Candidate): string | undefined {
  const { pool, type } = candidate
  const tags = labelsOf(candidate)
  const { consolidationPolicy } = pool.spec.disruption ?? {}
  const nodePool = `NodePool=${pool.metadata.name}`
  if (type === undefined) return `instance type not found (instance-type=${tags[labels.instanceType] ?? ''})`
  for (const label of [labels.capacityType, labels.zone])
    if ((tags[label] ?? '') === '') return `the Node has no label ${label} (label=${label})`
  if (!Number.isFinite(consolidateAfterMs(pool))) return `consolidation is disabled (${nodePool})`
  return !isEmpty(candidate) && consolidationPolicy === 'WhenEmpty'
    ? `only empty nodes are consolidated (${nodePool}, consolidationPolicy=WhenEmpty)`
    : undefined
}

/** What NodePools and settings say of a node. */
export class ConsolidationPolicy {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Why the node's pods are let alone for a while. */
  restOf({ pods }: Candidate): string | undefined {
    const backingOff = this.#deps.state.movedPods.backingOff(pods)
    if (backingOff === undefined) return undefined
    const minutes = Math.ceil(backingOff.forMs / 60_000)
    return `pods of the same workload needed a new node when they were moved last; it is tried again in ${minutes} min (Pod=${keyOf(backingOff.pod.metadata)})`
  }

  /** Why the node is not consolidated yet though its NodePool would have it: its pods have just started. */
  freshnessOf({ claim, pool }: Candidate): string | undefined {
    const { clock, settings, state } = this.#deps
    if (settings.compatibility === 'karpenter') return undefined
    const { lastPodEventTime } = claim.status ?? {}
    const sinceMs =
      lastPodEventTime === undefined ? transitionMs(claim, 'Initialized') : Date.parse(lastPodEventTime)
    const leftMs = state.recentlyFilledNodes.leftMs(
      claim.metadata.name,
      sinceMs ?? clock.now(),
      consolidateAfterMs(pool),
    )
    return leftMs > 0
      ? 'its pods were recently placed there by a decision, and none has left since'
      : undefined
  }

  /**
   * Whether the node has been left alone for as long as its NodePool asks. A pod that has just come or gone counts
   * from when it is seen, as it may take long until the claim tells of it: while writes of other claims hang.
   */
  isAtRest({ node, claim }: Pick<Candidate, 'node' | 'claim'>): boolean {
    const { unnotedPodEvents } = this.#deps.state
    return isConditionTrue(claim, 'Consolidatable') && !unnotedPodEvents.has(node.metadata.name)
  }

  /** Why the NodePool wants the node as it is, or wants it so for now; drift is another matter. */
  against(candidate: Candidate): string | undefined {
    const { pool } = candidate
    const { name } = pool.metadata
    if (pool.spec.replicas !== undefined)
      return `the NodePool has a fixed number of replicas (NodePool=${name}, replicas=${pool.spec.replicas})`
    const { consolidateAfter = '0s' } = pool.spec.disruption ?? {}
    if (!Number.isFinite(consolidateAfterMs(pool))) return `consolidation is disabled (NodePool=${name})`
    const against = isEmpty(candidate)
      ? undefined
      : (unconsolidatable(candidate) ?? this.freshnessOf(candidate))
    if (against !== undefined) return against
    return this.isAtRest(candidate)
      ? undefined
      : `the node has not been at rest for long enough (NodePool=${name}, consolidateAfter=${consolidateAfter})`
  }
}
