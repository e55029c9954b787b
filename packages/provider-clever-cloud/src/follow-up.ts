/** What becomes of accepted NodeGroups until their node has registered (clever-cloud.md 20). */
import { isConditionTrue, karpenterKinds, type NodeClaim } from '@tenon/api'
import {
  type Cache,
  done,
  type EventRecorder,
  isKubeError,
  type KubeClient,
  type ReconcileResult,
} from '@tenon/kube'
import type { OfferingNews } from '@tenon/provider'
import type { Clock, Listeners } from '@tenon/runtime'
import { transientFailure } from './launch/launcher.ts'
import type { Refusals } from './launch/refusals.ts'
import type { CleverMetrics } from './metrics.ts'
import { nodeGroupIn } from './names.ts'
import { isOwnedBy } from './nodegroup/ownership.ts'
import { flavorOf } from './nodegroup/spec.ts'
import { stateOf } from './nodegroup/state.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'

/** How long a node may take. */
const overdueAfterMs = 5 * 60_000
const conflictRetryMs = 1000

/** What a {@link FollowUp} works with. */
export interface FollowUpDependencies {
  readonly kube: Pick<KubeClient, 'delete' | 'get'>
  readonly caches: {
    readonly nodeGroups: () => Cache<NodeGroup>
    readonly nodeClaims: Pick<Cache<NodeClaim>, 'get'>
  }
  /** Record a refusal, and tell the core of it. */
  readonly outcomes: {
    readonly refusals: Refusals
    readonly news: Listeners<OfferingNews>
  }
  readonly metrics: Pick<CleverMetrics, 'syncOverdue'>
  readonly events: EventRecorder
  readonly clock: Clock
}

/** Follows one NodeGroup by name: a late refusal ends its claim, a late node is told. */
export class FollowUp {
  readonly #deps: FollowUpDependencies
  readonly #overdue = new Set<string>()

  constructor(deps: FollowUpDependencies) {
    this.#deps = deps
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { nodeGroups, nodeClaims } = this.#deps.caches
    const followed = followedPair(nodeGroups().get({ name }), nodeClaims.get({ name }))
    if (followed === undefined) return this.#end(name)
    const { group, claim } = followed
    const state = stateOf(group)
    switch (state.kind) {
      case 'ready':
        return this.#end(name)
      case 'overQuota':
      case 'refused':
        return await this.#giveUp(name, signal)
      case 'retrying':
        this.#event(claim, transientFailure(group, state.message))
        return this.#wait(group, claim)
      case 'accepted':
      case 'pending':
      case 'terminating':
        return this.#wait(group, claim)
    }
  }

  /** Both are read from the server first: a cache alone ends nothing. */
  async #giveUp(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { kube, outcomes } = this.#deps
    const followed = followedPair(
      await kube.get(nodeGroupKind, { name }, { signal }),
      await kube.get(karpenterKinds.nodeClaim, { name }, { signal }),
    )
    if (followed === undefined) return this.#end(name)
    const { group, claim } = followed
    const state = stateOf(group)
    if (state.kind !== 'overQuota' && state.kind !== 'refused')
      return { kind: 'after', delayMs: conflictRetryMs }
    const { uid = '', resourceVersion = '' } = claim.metadata
    try {
      await kube.delete(
        karpenterKinds.nodeClaim,
        { name },
        { signal, preconditionUid: uid, preconditionResourceVersion: resourceVersion },
      )
    } catch (error) {
      if (isKubeError(error, 'conflict')) return { kind: 'after', delayMs: conflictRetryMs }
      if (!isKubeError(error, 'notFound')) throw error
    }
    const { offerings, detail } = outcomes.refusals.note(claim, flavorOf(group), state)
    outcomes.news.notify({ kind: 'refused', offerings, because: detail })
    return this.#end(name)
  }

  #wait(group: NodeGroup, claim: NodeClaim): ReconcileResult {
    const { name, creationTimestamp = '' } = group.metadata
    const ageMs = this.#deps.clock.now() - Date.parse(creationTimestamp)
    if (!(ageMs >= overdueAfterMs)) {
      const leftMs = overdueAfterMs - ageMs
      return { kind: 'after', delayMs: leftMs > 0 ? leftMs : overdueAfterMs }
    }
    this.#show(() => this.#overdue.add(name))
    this.#event(claim, {
      reason: 'NodeGroupSyncOverdue',
      message: `NodeGroup ${name} was accepted more than 5 min ago and has no ready node; the NodeClaim is deleted if it does not register in time. See the status of the NodeGroup`,
      dedupe: [name],
      dedupeTtlMs: 60 * 60_000,
    })
    return done
  }

  #end(name: string): ReconcileResult {
    this.#show(() => this.#overdue.delete(name))
    return done
  }

  #show(change: () => unknown): void {
    change()
    this.#deps.metrics.syncOverdue.set(this.#overdue.size)
  }

  #event(object: NodeClaim, event: Omit<Parameters<EventRecorder['record']>[0], 'object' | 'type'>): void {
    this.#deps.events.record({ object, type: 'Warning', ...event })
  }
}

/** A group and its claim, if that is launched with it and has not registered. */
function followedPair(
  group: NodeGroup | undefined,
  claim: NodeClaim | undefined,
): { readonly group: NodeGroup; readonly claim: NodeClaim } | undefined {
  if (group === undefined || claim === undefined || !isOwnedBy(group, claim)) return undefined
  const isGoing = [group, claim].some(({ metadata }) => metadata.deletionTimestamp !== undefined)
  const isLaunched = isConditionTrue(claim, 'Launched') && !isConditionTrue(claim, 'Registered')
  const isItsNode = nodeGroupIn(claim.status?.providerID ?? '') === group.metadata.name
  return isLaunched && isItsNode && !isGoing ? { group, claim } : undefined
}
