/** Follows accepted NodeGroups until their node has registered (clever-cloud.md 20). */
import { karpenterKinds, labels, type NodeClaim, ownValue } from '@tenon/api'
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
import { groupOf, isAwaited } from './claims.ts'
import { transientFailure } from './launch/launcher.ts'
import type { Refusal, Refusals } from './launch/refusals.ts'
import type { CleverMetrics } from './metrics.ts'
import { isOwnedBy } from './nodegroup/ownership.ts'
import { flavorOf } from './nodegroup/spec.ts'
import { stateOf } from './nodegroup/state.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'

/** How long a node may take before that is reported. */
const overdueAfterMs = 5 * 60_000
const conflictRetryMs = 1000

export interface FollowUpDependencies {
  readonly kube: Pick<KubeClient, 'delete' | 'get'>
  readonly caches: {
    readonly nodeGroups: () => Cache<NodeGroup>
    readonly nodeClaims: Pick<Cache<NodeClaim>, 'get'>
  }
  /** Records refusals, and reports them to the core. */
  readonly outcomes: {
    readonly refusals: Refusals
    readonly news: Listeners<OfferingNews>
  }
  readonly metrics: Pick<CleverMetrics, 'syncOverdue'>
  readonly events: EventRecorder
  readonly clock: Clock
}

/**
 * Reconciles one NodeGroup by name: a late refusal or its deletion ends its claim; a late node is reported.
 */
export class FollowUp {
  readonly #deps: FollowUpDependencies
  readonly #overdue = new Set<string>()

  constructor(deps: FollowUpDependencies) {
    this.#deps = deps
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { nodeGroups, nodeClaims } = this.#deps.caches
    const cached = { group: nodeGroups().get({ name }), claim: nodeClaims.get({ name }) }
    if (cached.group === undefined && cached.claim !== undefined && isAwaited(cached.claim))
      await this.endVanished(name, signal)
    const followed = followedPair(cached.group, cached.claim)
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

  /** Reads both from the API server first, as a cache alone must not end a claim. */
  async #giveUp(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { kube } = this.#deps
    const followed = followedPair(
      await kube.get(nodeGroupKind, { name }, { signal }),
      await kube.get(karpenterKinds.nodeClaim, { name }, { signal }),
    )
    if (followed === undefined) return this.#end(name)
    const { group, claim } = followed
    const state = stateOf(group)
    if (state.kind !== 'overQuota' && state.kind !== 'refused')
      return { kind: 'after', delayMs: conflictRetryMs }
    return (await this.#giveUpClaim(claim, flavorOf(group), state, signal))
      ? this.#end(name)
      : { kind: 'after', delayMs: conflictRetryMs }
  }

  /**
   * Ends a claim whose NodeGroup disappeared before its node has registered. Both are read by name, so their number
   * needs no limit.
   */
  async endVanished(claimName: string, signal: AbortSignal): Promise<void> {
    const { kube } = this.#deps
    const claim = await kube.get(karpenterKinds.nodeClaim, { name: claimName }, { signal })
    if (claim === undefined || !isAwaited(claim)) return
    if ((await kube.get(nodeGroupKind, { name: groupOf(claim) }, { signal })) !== undefined) return
    const flavor = ownValue(claim.metadata.labels, labels.instanceType) ?? ''
    await this.#giveUpClaim(claim, flavor, { kind: 'vanished' }, signal)
  }

  /** @returns false if the claim has changed meanwhile. */
  async #giveUpClaim(
    claim: NodeClaim,
    flavor: string,
    refusal: Refusal,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { kube, outcomes } = this.#deps
    const { name, uid = '', resourceVersion = '' } = claim.metadata
    try {
      await kube.delete(
        karpenterKinds.nodeClaim,
        { name },
        { signal, preconditionUid: uid, preconditionResourceVersion: resourceVersion },
      )
    } catch (error) {
      if (isKubeError(error, 'conflict')) return false
      if (!isKubeError(error, 'notFound')) throw error
    }
    const { offerings, detail } = outcomes.refusals.note(claim, flavor, refusal)
    outcomes.news.notify({ kind: 'refused', offerings, because: detail })
    return true
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

/** A group and its claim, if the claim was launched with it and its node has not registered. */
function followedPair(
  group: NodeGroup | undefined,
  claim: NodeClaim | undefined,
): { readonly group: NodeGroup; readonly claim: NodeClaim } | undefined {
  if (group === undefined || claim === undefined || !isOwnedBy(group, claim)) return undefined
  const isFollowed =
    isAwaited(claim) &&
    groupOf(claim) === group.metadata.name &&
    group.metadata.deletionTimestamp === undefined
  return isFollowed ? { group, claim } : undefined
}
