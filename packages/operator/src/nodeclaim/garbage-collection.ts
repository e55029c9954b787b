import { conditionOf, isConditionTrue, labels, type NodeClaim } from '@tenon/api'
import type { ReconcileResult } from '@tenon/kube'
import {
  type CloudProvider,
  heldMessage,
  isProviderError,
  type ProviderInstance,
  SweepGuard,
  type SweepRound,
} from '@tenon/provider'
import { type Clock, type Logger, perObject } from '@tenon/runtime'
import { isNodeReady } from '../state/nodes/state-node.ts'
import type { ClaimDeleter } from './lifecycle/delete-claim.ts'
import { wasRegistered } from './lifecycle/standing.ts'
import type { SingletonSpec } from '../controller.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import type { Kubernetes } from '../kubernetes.ts'
import type { Settings } from '../settings.ts'

interface Dependencies {
  readonly kubernetes: Kubernetes
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly deleter: ClaimDeleter
  readonly sweep: SweepGuard
  readonly clock: Clock
  readonly settings: Settings
  readonly logger: Logger
}

const periodMs = 2 * 60_000
/** While a claim waits for its Node, and an absent instance certainly does not exist. */
const awaitingMs = 15_000
const reason = 'NodeClaimSweepHeld'

const hasRegistered = perObject(
  (claim: NodeClaim) => isConditionTrue(claim, 'Registered') || wasRegistered(claim),
)

/** Whether the API server had no Node any more when registration asked for it. */
function hasLostNode(claim: NodeClaim): boolean {
  return wasRegistered(claim) && !isConditionTrue(claim, 'Registered')
}

/** Holds deletions back if too many claims would be deleted at once. */
export function claimSweepGuard(clock: Clock): SweepGuard {
  return new SweepGuard({ clock, name: 'nodeclaims', graceMs: 5 * 60_000 })
}

/**
 * `nodeclaim.garbagecollection`: deletes claims whose instance is gone (lifecycle.md 6). An instance that is missing in
 * the list of the cloud is asked for by its ID before its claim is deleted.
 */
export class NodeClaimGarbageCollection implements SingletonSpec {
  readonly name = 'nodeclaim.garbagecollection'
  readonly #deps: Dependencies
  /** Provider IDs that a list has shown. A new instance may be missing in lists at first; one of these is not new. */
  #seen = new Set<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { deleter, kubernetes, state, sweep, provider, logger } = this.#deps
    // Claims before instances: a claim launched between the two lists would seem to have no instance.
    const claims = kubernetes.caches.nodeClaims
      .list()
      .filter((claim) => state.isManaged(claim) && (hasRegistered(claim) || this.#isAwaited(claim)))
    const instances = await provider.list(signal)
    const lost = new Map(this.#lost(claims, instances).map((claim) => [claim.metadata.name, claim]))
    // If the Node is not Ready or was deleted, two sources agree. Otherwise the cloud is the only source, so a cloud
    // that shows too little must not cost all claims: the sweep guard decides.
    const silent = new Set(
      [...lost]
        .filter(([, claim]) => state.nodeOf(claim) !== undefined || hasLostNode(claim))
        .map(([name]) => name),
    )
    const round = sweep.admit(
      [...lost.keys()].filter((name) => !silent.has(name)),
      claims.length,
    )
    this.#reportHeld(round, lost, claims.length)
    for (const name of [...silent, ...round.admitted]) {
      const claim = lost.get(name)
      if (claim === undefined || !(await this.#isGone(claim, signal))) continue
      if (!(await deleter.delete(claim, 'garbage_collected'))) continue
      logger.info('deleting nodeclaim whose instance is gone', {
        NodeClaim: { name },
        'provider-id': claim.status?.providerID,
      })
    }
    return { kind: 'after', delayMs: claims.some((claim) => this.#isAwaited(claim)) ? awaitingMs : periodMs }
  }

  /** Whether the claim waits for its Node, and lists of the cloud show its instance as long as it exists. */
  #isAwaited(claim: NodeClaim): boolean {
    return (
      this.#deps.provider.readsOwnWrites === true &&
      isConditionTrue(claim, 'Launched') &&
      !hasRegistered(claim)
    )
  }

  #lost(claims: readonly NodeClaim[], instances: readonly ProviderInstance[]): readonly NodeClaim[] {
    const { state, provider } = this.#deps
    const living = instances.filter(({ deleting }) => !deleting)
    const alive = new Set(living.map(({ providerID }) => providerID))
    const seen = new Set(
      claims.map(({ status }) => status?.providerID ?? '').filter((id) => this.#seen.has(id)),
    )
    this.#seen = new Set([...seen, ...alive])
    const owners = new Set(living.map(({ nodeClaimName }) => nodeClaimName))
    return claims.filter((claim) => {
      const providerID = claim.status?.providerID ?? ''
      if (claim.metadata.deletionTimestamp !== undefined || alive.has(providerID)) return false
      if (!seen.has(providerID) && this.#isStarting(claim)) return false
      // An ID that is none of the provider's cannot be asked for; the labels of instances name their claim.
      if (!provider.ownsProviderID(providerID) && owners.has(claim.metadata.name)) return false
      const node = state.nodeOf(claim)
      return node === undefined || !isNodeReady(node)
    })
  }

  /** Whether lists may not show the instance yet: reads lag behind launches. */
  #isStarting(claim: NodeClaim): boolean {
    const { clock, settings } = this.#deps
    if (isConditionTrue(claim, 'Initialized') || hasLostNode(claim)) return false
    const launchedMs = Date.parse(conditionOf(claim, 'Launched')?.lastTransitionTime ?? '')
    return clock.now() - launchedMs < settings.registrationTimeoutMs
  }

  /** Asks for the one instance. An instance that is being deleted counts as gone. */
  async #isGone(claim: NodeClaim, signal: AbortSignal): Promise<boolean> {
    const { provider, logger } = this.#deps
    const providerID = claim.status?.providerID ?? ''
    if (!provider.ownsProviderID(providerID)) return true
    try {
      if ((await provider.get(providerID, signal)).deleting) return true
    } catch (error) {
      if (isProviderError(error, 'nodeClaimNotFound')) return true
      throw error
    }
    logger.info('the instance of a nodeclaim exists, though a list did not show it', {
      NodeClaim: { name: claim.metadata.name },
      'provider-id': providerID,
    })
    return false
  }

  #reportHeld(round: SweepRound, lost: ReadonlyMap<string, NodeClaim>, present: number): void {
    if (round.held.length === 0) return
    const { kubernetes, logger } = this.#deps
    const { caches, events } = kubernetes
    const message = heldMessage('NodeClaims have no instance', round, present)
    logger.info(message, { held: round.held.slice(0, 20) })
    const pools = new Set(round.held.map((name) => lost.get(name)?.metadata.labels?.[labels.nodePool] ?? ''))
    for (const pool of pools) {
      const object = caches.nodePools.get({ name: pool })
      if (object !== undefined)
        events.record({ object, type: 'Warning', reason, message, dedupe: [reason, pool] })
    }
  }
}
