/** Replacement claims that the engine planned. */
import { parseResources, type Pod } from '@tenon/api'
import { exceededLimit, type NewClaim } from '@tenon/engine'
import type { ClaimCreations } from '../../nodeclaim/claim-creation.ts'
import type { CloudProvider } from '@tenon/provider'
import { type CapacityLearning, settingsNote } from '../../cloud/provider-layers.ts'
import { nodeClaimFor } from '../../nodeclaim/claim-objects.ts'
import type { PlannedClaims } from '../../provisioning/planned-claims.ts'
import { poolUsage } from '../../state/nodepools/pool-usage.ts'
import { exceededBy } from '../../provisioning/overtaken.ts'
import { largestNoted } from '../../state/quotas.ts'
import { shortened } from '../../text.ts'
import type { KeptPlans } from '../../placement/planned-pods.ts'
import type { CommandReason, Replacement } from './command.ts'
import { predecessorsAnnotation } from '../predecessors.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { isBufferPod } from '../../state/pods/buffer-pods.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'buffers' | 'limitReservations' | 'parsed' | 'quotas' | 'stateNodes'>
  readonly claims: PlannedClaims
  readonly provider: Pick<CloudProvider, 'defaultTerminationGracePeriodMs'>
  readonly learning?: CapacityLearning
  readonly creations: ClaimCreations
  readonly plans: KeptPlans
}

export class PlannedReplacements {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * @param kept pods whose plan is this claim, for decisions made meanwhile.
   * @returns a replacement, whose creation fails if its NodePool is gone or at a limit by then.
   */
  of(claim: NewClaim, reason: CommandReason, kept: readonly Pod[] = []): Replacement {
    const { requirements, instanceTypes, nodePool, minValuesRelaxed, pricePerHour } = claim
    return {
      nodePool,
      requirements,
      instanceTypes,
      pricePerHour,
      create: async (replaced, signal) => {
        const { caches, claims, creations, learning, plans, provider, state } = this.#deps
        const pool = caches.nodePools.get({ name: nodePool })
        if (pool === undefined) return { kind: 'poolGone', nodePool }
        // Nodes of the command still count here (disruption.md 14), but not for the reservation of its replacements.
        const present = poolUsage(nodePool, state.stateNodes(), state.parsed)
        const exceeded = exceededLimit(parseResources(pool.spec.limits), [present])
        if (exceeded !== undefined) return { kind: 'limitExceeded', nodePool, limit: exceeded }
        const names = new Set(replaced.map(({ metadata }) => metadata.name))
        const staying = state.stateNodes().filter(({ claim: each }) => !names.has(each?.metadata.name ?? ''))
        const usage = poolUsage(nodePool, staying, state.parsed)
        // Of quotas both count, the replaced nodes and their replacement (quotas.md 1).
        const quotas = state.quotas.countingDecided(claim)
        const reservation = state.limitReservations.take({ pool, usage, largest: claim.largest, quotas })
        if ('kind' in reservation) return exceededBy(nodePool, reservation)
        const object = nodeClaimFor(claim, provider.defaultTerminationGracePeriodMs, {
          ...predecessorsAnnotation(replaced),
          ...settingsNote(learning, pool),
          ...largestNoted(reservation),
        })
        const created = await claims.create(pool, object, reservation, signal)
        const { name } = created.metadata
        if (claim.roomPods?.some(isBufferPod) === true) state.buffers.launched(name)
        plans.keep(kept, { kind: 'claim', name })
        creations.note({
          name,
          nodePool,
          reason: reason.toLowerCase(),
          minValuesRelaxed,
          pods: claim.pods,
          pricePerHour,
          details: { 'instance-types': shortened(instanceTypes) },
        })
        return { kind: 'created', claim: created }
      },
    }
  }
}
