/** Deletes NodeGroups without a claim, and claims whose NodeGroup is gone (clever-cloud.md 10). */
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import {
  type Cache,
  type EventInput,
  type EventRecorder,
  isKubeError,
  type KubeClient,
  type ReconcileResult,
} from '@tenon/kube'
import { heldMessage, SweepGuard, type SweepRound } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import { groupOf, isAwaited } from './claims.ts'
import type { FollowUp } from './follow-up.ts'
import type { CleverMetrics } from './metrics.ts'
import type { CleverNodeClass } from './nodeclass/types.ts'
import { isManaged, labelledClaim, owningClaims } from './nodegroup/ownership.ts'
import { nodeCountOf } from './nodegroup/spec.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'

const periodMs = 2 * 60_000
/** Younger objects may belong to a launch in progress. */
const graceMs = 2 * 60_000
const hourMs = 60 * 60_000

export interface GarbageCollectionDependencies {
  readonly kube: Pick<KubeClient, 'delete' | 'get' | 'list'>
  readonly nodeClasses: Pick<Cache<CleverNodeClass>, 'list'>
  readonly followUp: Pick<FollowUp, 'endVanished'>
  readonly metrics: Pick<CleverMetrics, 'externalResizes' | 'reaped' | 'refused'>
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Sweeps NodeGroups and claims. Both are listed from the API server; before a deletion each object is read by name.
 */
export class GarbageCollection {
  /** For NodeGroups, and for claims. */
  readonly guards: readonly [nodeGroups: SweepGuard, nodeClaims: SweepGuard]
  readonly #deps: GarbageCollectionDependencies
  /** Groups that were logged already, by kind of message. */
  readonly #logged = new Set<string>()

  constructor(deps: GarbageCollectionDependencies) {
    const { clock } = deps
    this.#deps = deps
    this.guards = [
      new SweepGuard({ clock, name: 'clevercloud_nodegroups', graceMs }),
      new SweepGuard({ clock, name: 'clevercloud_nodeclaims', graceMs }),
    ]
  }

  /** @throws AggregateError of all failures, after everything else was done. */
  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { kube } = this.#deps
    const groups = await kube.list(nodeGroupKind, { signal })
    const claims = await kube.list(karpenterKinds.nodeClaim, { signal })
    const failures = [
      ...(await this.#releaseClaims(groups, claims, signal)),
      ...(await this.#collectGroups(groups, claims, signal)),
    ]
    if (failures.length > 0) throw new AggregateError(failures, `sweep of NodeGroups: ${failures.join('; ')}`)
    return { kind: 'after', delayMs: periodMs }
  }

  async #releaseClaims(
    groups: readonly NodeGroup[],
    claims: readonly NodeClaim[],
    signal: AbortSignal,
  ): Promise<readonly unknown[]> {
    const { clock, followUp } = this.#deps
    const present = new Set(groups.map(({ metadata }) => metadata.name))
    const lost = claims.filter(
      (claim) =>
        isAwaited(claim) &&
        isOld(claim.metadata.creationTimestamp, clock.now()) &&
        !present.has(groupOf(claim)),
    )
    const round = this.guards[1].admitOneByOne(
      lost.map(({ metadata }) => metadata.name),
      claims.length,
    )
    this.#tellHeld(
      'NodeClaims wait for a NodeGroup that does not exist',
      'NodeClaimSweepHeld',
      round,
      claims.length,
    )
    return await failuresOf(round.admitted, signal, (name) => followUp.endVanished(name, signal))
  }

  async #collectGroups(
    groups: readonly NodeGroup[],
    claims: readonly NodeClaim[],
    signal: AbortSignal,
  ): Promise<readonly unknown[]> {
    const { clock, metrics } = this.#deps
    const known = new Set(claims.map(({ metadata }) => metadata.name))
    const managed = groups.filter(
      (group) => isManaged(group) && group.metadata.deletionTimestamp === undefined,
    )
    const resized = managed.filter((group) => nodeCountOf(group) !== 1)
    for (const group of resized) this.#tellResized(group)
    const unclaimed = managed.filter(
      (group) => isOld(group.metadata.creationTimestamp, clock.now()) && !known.has(labelledClaim(group)),
    )
    const unclear = unclaimed.filter((group) => !isOrphan(group, known))
    for (const group of unclear) this.#tellRefused(group)
    const orphans = new Map(
      unclaimed.filter((group) => isOrphan(group, known)).map((group) => [group.metadata.name, group]),
    )
    const round = this.guards[0].admit([...orphans.keys()], managed.length)
    this.#tellHeld('NodeGroups have no NodeClaim', 'NodeGroupSweepHeld', round, managed.length)
    const failures = await failuresOf(round.admitted, signal, async (name) => {
      const group = orphans.get(name)
      if (group !== undefined) await this.#collect(group, signal)
    })
    metrics.externalResizes.set(resized.length)
    metrics.refused.set(unclear.length)
    return failures
  }

  async #collect(group: NodeGroup, signal: AbortSignal): Promise<void> {
    const { kube, metrics, events, logger } = this.#deps
    const { name, uid = '' } = group.metadata
    for (const owner of new Set([labelledClaim(group), ...owningClaims(group).map((each) => each.name)]))
      if ((await kube.get(karpenterKinds.nodeClaim, { name: owner }, { signal })) !== undefined) return
    try {
      await kube.delete(nodeGroupKind, { name }, { signal, preconditionUid: uid })
    } catch (error) {
      if (isKubeError(error, 'notFound')) return
      throw error
    }
    metrics.reaped.count()
    logger.info('deleted a NodeGroup whose NodeClaim is gone', { nodeGroup: name })
    events.record({
      object: group,
      type: 'Normal',
      reason: 'GarbageCollected',
      message: `Deleted: NodeClaim ${labelledClaim(group)} does not exist`,
      dedupe: [name],
    })
  }

  #tellResized(group: NodeGroup): void {
    const { name } = group.metadata
    this.#warn(group, {
      reason: 'NodeGroupExternallyResized',
      message: `nodeCount is ${nodeCountOf(group) ?? 'not set'}, and Tenon counts on 1: further nodes are not managed. Set it to 1 (kubectl scale nodegroup ${name} --replicas=1), and turn off autoscalingEnabled of the cluster`,
    })
  }

  #tellRefused(group: NodeGroup): void {
    this.#warn(group, {
      reason: 'GarbageCollectionRefused',
      message: `It is labelled as Tenon's, has no NodeClaim ${labelledClaim(group)}, and its owner references do not say that it may go. Delete it if it is not needed, else remove its karpenter.clever-cloud.com labels`,
    })
  }

  #warn(group: NodeGroup, event: Pick<EventInput, 'reason' | 'message'>): void {
    const { events, logger } = this.#deps
    const { name } = group.metadata
    events.record({ object: group, type: 'Warning', ...event, dedupe: [name], dedupeTtlMs: hourMs })
    const once = `${event.reason}/${name}`
    if (this.#logged.has(once)) return
    this.#logged.add(once)
    logger.warn(event.message, { nodeGroup: name })
  }

  /** On the node classes, where administrators of this provider look. */
  #tellHeld(what: string, reason: string, round: SweepRound, present: number): void {
    if (round.held.length === 0) return
    const { nodeClasses, events, logger } = this.#deps
    const message = heldMessage(what, round, present)
    logger.warn(message, { held: round.held.slice(0, 20) })
    for (const object of nodeClasses.list())
      events.record({ object, type: 'Warning', reason, message, dedupe: [reason] })
  }
}

/** Runs `work` for each name; returns the failures. */
async function failuresOf(
  names: readonly string[],
  signal: AbortSignal,
  work: (name: string) => Promise<void>,
): Promise<readonly unknown[]> {
  const failures: unknown[] = []
  for (const name of names) {
    try {
      await work(name)
    } catch (error) {
      signal.throwIfAborted()
      failures.push(error)
    }
  }
  return failures
}

function isOld(creationTimestamp: string | undefined, nowMs: number): boolean {
  return creationTimestamp !== undefined && nowMs - Date.parse(creationTimestamp) >= graceMs
}

/** Whether it was created for a claim, by its owner references, and none of these claims exists. */
function isOrphan(group: NodeGroup, known: ReadonlySet<string>): boolean {
  const owners = owningClaims(group)
  return owners.length > 0 && owners.every(({ name }) => !known.has(name))
}
