/** Deletes instances without a claim, and claims whose instance does not exist. */
import { karpenterKinds, kinds, type NodeClaim, terminationFinalizer } from '@tenon/api'
import { isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { SweepGuard } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { ExoscaleClient } from './api/client.ts'
import { isApiError } from './api/errors.ts'
import type { Fleet } from './fleet/fleet.ts'
import type { OwnedInstance } from './fleet/owned-instance.ts'
import { parseProviderId, providerIdOf } from './identifiers.ts'
import type { SweepReport } from './sweep-report.ts'

const periodMs = 5 * 60_000
/** A large sweep that is held back is checked more often than it may delete. */
const heldPeriodMs = 60_000
/** A younger instance may belong to a claim whose launch is not stored yet. */
const graceMs = 5 * 60_000
const stuckAfterMs = 10 * 60_000
/**
 * For so long events and the metric of held sweeps announce an instance whose claim does not exist, before it is deleted: after a
 * restore of etcd the claims of the last hour are missing, and their nodes run pods (adoption.md ADO-15).
 */
const noticeMs = 10 * 60_000

export interface GarbageCollectionDependencies {
  readonly api: Pick<ExoscaleClient, 'getInstance'>
  readonly kube: Pick<KubeClient, 'get' | 'list' | 'patch'>
  readonly fleet: Fleet
  readonly report: SweepReport
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Passes over the zone. Claims are read from the API server, as a cache may lag. Nothing is deleted because of a list
 * alone: the claim of each instance, and the instance of each claim, is read by name first.
 */
export class GarbageCollection {
  /** For instances, and for claims. */
  readonly guards: readonly [instances: SweepGuard, claims: SweepGuard]
  readonly #deps: GarbageCollectionDependencies

  constructor(deps: GarbageCollectionDependencies) {
    const { clock } = deps
    this.#deps = deps
    this.guards = [
      new SweepGuard({ clock, name: 'exoscale_instances', graceMs, noticeMs }),
      new SweepGuard({ clock, name: 'exoscale_nodeclaims', graceMs }),
    ]
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { kube, fleet } = this.#deps
    const instances = await fleet.owned(signal)
    const claims = await kube.list(karpenterKinds.nodeClaim, { signal })
    await this.#collectInstances(instances, claims, signal)
    await this.#releaseClaims(instances, claims, signal)
    const isHolding = this.guards.some(({ held }) => held > 0)
    return { kind: 'after', delayMs: isHolding ? heldPeriodMs : periodMs }
  }

  /**
   * Deletes instances without a claim, also young ones and without notice: a person has asked for it.
   * @returns ids of instances that are being deleted.
   */
  async collectOrphans(signal: AbortSignal): Promise<readonly string[]> {
    const { kube, fleet } = this.#deps
    const instances = await fleet.owned(signal)
    const claims = await kube.list(karpenterKinds.nodeClaim, { signal })
    return await this.#collectInstances(instances, claims, signal, { isAsked: true })
  }

  async #collectInstances(
    instances: readonly OwnedInstance[],
    claims: readonly NodeClaim[],
    signal: AbortSignal,
    { isAsked } = { isAsked: false },
  ): Promise<readonly string[]> {
    const { fleet, logger } = this.#deps
    const owners = ownersOf(claims)
    const alive = instances.filter(({ isDeleting }) => !isDeleting)
    const orphans = new Map(
      alive
        .filter((owned) => (isAsked || this.#isOld(owned)) && isLeaked(owned, owners))
        .map((owned) => [owned.id, owned]),
    )
    const isLost = (id: string) => !isAsked && !owners.byName.has(orphans.get(id)?.nodeClaimName)
    const round = this.guards[0].admit([...orphans.keys()], alive.length, isLost)
    this.#deps.report.instancesHeld(round, alive.length)
    const deleted: string[] = []
    for (const id of round.admitted) {
      const owned = orphans.get(id)
      if (owned === undefined) continue
      try {
        if (await this.#isOwned(owned, signal)) {
          logger.warn('the NodeClaim of an instance exists, though a list did not show it', { instance: id })
          continue
        }
        logger.info('deleting an instance that no NodeClaim owns', { instance: id })
        await fleet.requestDeletion(id, signal)
        deleted.push(id)
      } catch (error) {
        signal.throwIfAborted()
        logger.warn('leaked instance could not be deleted', { instance: id, error })
      }
    }
    return deleted
  }

  #isOld({ createdAtMs }: OwnedInstance): boolean {
    return createdAtMs !== undefined && this.#deps.clock.now() - createdAtMs >= graceMs
  }

  /** The second check: the claim that the instance or its Node names. */
  async #isOwned(owned: OwnedInstance, signal: AbortSignal): Promise<boolean> {
    const { kube } = this.#deps
    const providerID = providerIdOf(owned.id)
    for (const name of await this.#ownersNamed(owned, providerID, signal)) {
      const claim = await kube.get(karpenterKinds.nodeClaim, { name }, { signal })
      if (claim !== undefined && owns(claim, providerID)) return true
    }
    return false
  }

  async #ownersNamed(
    owned: OwnedInstance,
    providerID: string,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const labelled = owned.nodeClaimName
    const { name: nodeName } = owned.instance
    if (labelled !== undefined || nodeName === undefined) return labelled === undefined ? [] : [labelled]
    // If somebody removed the label, the Node still names its claim.
    const node = await this.#deps.kube.get(kinds.node, { name: nodeName }, { signal })
    if (node?.spec?.providerID !== providerID) return []
    return (node.metadata.ownerReferences ?? [])
      .filter(({ kind }) => kind === karpenterKinds.nodeClaim.kind)
      .map(({ name }) => name)
  }

  async #releaseClaims(
    instances: readonly OwnedInstance[],
    claims: readonly NodeClaim[],
    signal: AbortSignal,
  ): Promise<void> {
    const { kube, clock, logger } = this.#deps
    const present = new Set(instances.map((owned) => owned.id))
    const stuck = new Map(
      claims
        .filter((claim) => isStuck(claim, present, clock.now()))
        .map((claim) => [claim.metadata.name, claim]),
    )
    const round = this.guards[1].admit([...stuck.keys()], claims.length)
    this.#deps.report.held(
      'NodeClaims wait for an instance that does not exist',
      'NodeClaimSweepHeld',
      round,
      claims.length,
    )
    for (const name of round.admitted) {
      const claim = stuck.get(name)
      if (claim === undefined) continue
      const finalizers = (claim.metadata.finalizers ?? []).filter(
        (finalizer) => finalizer !== terminationFinalizer,
      )
      const { resourceVersion } = claim.metadata
      try {
        if (!(await this.#isGone(claim, signal))) {
          logger.warn('the instance of a NodeClaim exists, though a list did not show it', { claim: name })
          continue
        }
        await kube.patch(
          karpenterKinds.nodeClaim,
          { name },
          { metadata: { finalizers } },
          { signal, ...(resourceVersion !== undefined && { resourceVersion }) },
        )
      } catch (error) {
        signal.throwIfAborted()
        if (!isKubeError(error, 'notFound'))
          logger.warn('stuck NodeClaim could not be released', { claim: name, error })
      }
    }
  }

  /** The second check: reads the instance from the cloud. */
  async #isGone(claim: NodeClaim, signal: AbortSignal): Promise<boolean> {
    const parsed = parseProviderId(claim.status?.providerID ?? '')
    if (parsed.kind !== 'instance') return false
    try {
      await this.#deps.api.getInstance(parsed.instanceId, signal)
      return false
    } catch (error) {
      if (isApiError(error, 'not-found')) return true
      throw error
    }
  }
}

/** A claim without a valid provider ID owns the instances with its name. */
function owns({ status }: NodeClaim, providerID: string): boolean {
  const own = status?.providerID ?? ''
  return own === providerID || parseProviderId(own).kind !== 'instance'
}

/** The claims, by what identifies their instances. */
interface Owners {
  readonly providerIDs: ReadonlySet<string | undefined>
  readonly byName: ReadonlyMap<string | undefined, NodeClaim>
}

function ownersOf(claims: readonly NodeClaim[]): Owners {
  return {
    providerIDs: new Set(claims.map(({ status }) => status?.providerID)),
    byName: new Map(claims.map((claim) => [claim.metadata.name, claim])),
  }
}

/** Whether no claim owns it by provider ID or, if the claim has no valid one, by label. */
function isLeaked(owned: OwnedInstance, { providerIDs, byName }: Owners): boolean {
  if (providerIDs.has(providerIdOf(owned.id))) return false
  const labelled = byName.get(owned.nodeClaimName)
  return labelled === undefined || parseProviderId(labelled.status?.providerID ?? '').kind === 'instance'
}

function isStuck(claim: NodeClaim, present: ReadonlySet<string>, nowMs: number): boolean {
  const { deletionTimestamp, finalizers = [] } = claim.metadata
  if (deletionTimestamp === undefined || !Array.isArray(finalizers)) return false
  if (!finalizers.includes(terminationFinalizer)) return false
  const parsed = parseProviderId(claim.status?.providerID ?? '')
  if (parsed.kind !== 'instance' || present.has(parsed.instanceId)) return false
  return nowMs - Date.parse(deletionTimestamp) >= stuckAfterMs
}
