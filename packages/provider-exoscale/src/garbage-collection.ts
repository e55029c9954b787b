/** Machines without a claim, and claims that wait for a machine that is gone. */
import { karpenterKinds, type NodeClaim, terminationFinalizer } from '@tenon/api'
import { isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { Fleet } from './fleet/fleet.ts'
import type { Machine } from './fleet/machine.ts'
import { parseProviderId, providerIdOf } from './identifiers.ts'

const periodMs = 5 * 60_000
/** A machine younger than this may belong to a claim whose launch is not written down yet. */
const graceMs = 5 * 60_000
const stuckAfterMs = 10 * 60_000

export interface GarbageCollectionDependencies {
  readonly kube: KubeClient
  readonly fleet: Fleet
  readonly clock: Clock
  readonly logger: Logger
}

/** One pass over the zone; claims are read from the server, not from a cache that may lag. */
export class GarbageCollection {
  readonly #deps: GarbageCollectionDependencies

  constructor(deps: GarbageCollectionDependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { kube, fleet } = this.#deps
    const machines = await fleet.owned(signal)
    const claims = await kube.list(karpenterKinds.nodeClaim, { signal })
    await this.#collectMachines(machines, claims, signal)
    await this.#releaseClaims(machines, claims, signal)
    return { kind: 'after', delayMs: periodMs }
  }

  async #collectMachines(
    machines: readonly Machine[],
    claims: readonly NodeClaim[],
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, fleet, logger } = this.#deps
    const owners = ownersOf(claims)
    for (const machine of machines) {
      if (machine.isDeleting || !isLeaked(machine, owners, clock.now())) continue
      logger.info('deleting an instance that no NodeClaim owns', { instance: machine.id })
      try {
        await fleet.requestDeletion(machine.id, signal)
      } catch (error) {
        signal.throwIfAborted()
        logger.warn('leaked instance could not be deleted', { instance: machine.id, error })
      }
    }
  }

  async #releaseClaims(
    machines: readonly Machine[],
    claims: readonly NodeClaim[],
    signal: AbortSignal,
  ): Promise<void> {
    const { kube, clock, logger } = this.#deps
    const present = new Set(machines.map((machine) => machine.id))
    for (const claim of claims.filter((candidate) => isStuck(candidate, present, clock.now()))) {
      const finalizers = (claim.metadata.finalizers ?? []).filter(
        (finalizer) => finalizer !== terminationFinalizer,
      )
      const { resourceVersion, name } = claim.metadata
      try {
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
}

/** Claims by what their machines can be found with. */
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

/** No claim owns it: neither by its provider ID nor, before that is known, by its label. */
function isLeaked(machine: Machine, { providerIDs, byName }: Owners, nowMs: number): boolean {
  if (machine.createdAtMs === undefined || nowMs - machine.createdAtMs < graceMs) return false
  if (providerIDs.has(providerIdOf(machine.id))) return false
  const labelled = byName.get(machine.nodeClaimName)
  return labelled === undefined || Boolean(labelled.status?.providerID)
}

function isStuck(claim: NodeClaim, present: ReadonlySet<string>, nowMs: number): boolean {
  const { deletionTimestamp, finalizers = [] } = claim.metadata
  if (deletionTimestamp === undefined || !finalizers.includes(terminationFinalizer)) return false
  const parsed = parseProviderId(claim.status?.providerID ?? '')
  if (parsed.kind !== 'instance' || present.has(parsed.instanceId)) return false
  return nowMs - Date.parse(deletionTimestamp) >= stuckAfterMs
}
