/** Claims in place of nodes that go, as the engine planned them. */
import type { Clock, Logger, Random } from '@tenon/runtime'
import type { CloudProvider } from '@tenon/provider'
import type { KubeClient } from '@tenon/kube'
import type { DisruptionReason, Pod } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import { nodeClaimFor } from '../../provisioning/create-claim.ts'
import {
  createPlannedClaim,
  decidedPool,
  refuseAboveLimits,
  reserve,
} from '../../provisioning/planned-claims.ts'
import { type CapacityLearning, settingsNote } from '../../cloud/corrected-provider.ts'
import { poolUsage } from '../../provisioning/scheduling-input.ts'
import { shortened } from '../../provisioning/scheduling-report.ts'
import type { Replacement } from './command.ts'
import { predecessorsAnnotation } from '../predecessors.ts'
import type { Caches } from '../../cluster/caches.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { PlacementGate } from '../../placement/gate.ts'
import type { Metrics } from '../../metrics/metrics.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  readonly provider: CloudProvider
  readonly learning?: CapacityLearning
  readonly placementGate: PlacementGate
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/**
 * @param kept pods that are taken to go there by whatever is decided meanwhile.
 * @returns what creates the claim, unless its NodePool has exceeded a limit by then.
 */
export function plannedReplacement(
  deps: Dependencies,
  claim: NewClaim,
  reason: DisruptionReason,
  kept: readonly Pod[] = [],
): Replacement {
  const { requirements, instanceTypes, nodePool, minValuesRelaxed } = claim
  return {
    nodePool,
    requirements,
    instanceTypes,
    create: async (replaced, signal) => {
      const { state, provider, metrics, logger } = deps
      const pool = decidedPool(deps, nodePool)
      // Here the nodes that go still count (disruption.md 14); what is to come takes their share.
      refuseAboveLimits(pool, poolUsage(nodePool, state.stateNodes(), state.parsed))
      const names = new Set(replaced.map(({ metadata }) => metadata.name))
      const staying = state.stateNodes().filter(({ claim: each }) => !names.has(each?.metadata.name ?? ''))
      const reservation = reserve(deps, pool, poolUsage(nodePool, staying, state.parsed), claim)
      const object = nodeClaimFor(claim, provider.defaultTerminationGracePeriodMs, {
        ...predecessorsAnnotation(replaced),
        ...settingsNote(deps.learning, pool),
      })
      const created = await createPlannedClaim(deps, pool, object, reservation, signal)
      if (deps.placementGate.keepsPlans) {
        const target = { kind: 'claim', name: created.metadata.name } as const
        for (const { metadata, spec } of kept)
          state.plans.set(metadata.uid ?? '', { target, steering: 'free', spec })
      }
      metrics.nodeClaimsCreated.inc({
        reason: reason.toLowerCase(),
        nodepool: nodePool,
        min_values_relaxed: String(minValuesRelaxed),
      })
      logger.info('created nodeclaim', {
        NodePool: { name: nodePool },
        NodeClaim: { name: created.metadata.name },
        'instance-types': shortened(instanceTypes),
      })
      return created
    },
  }
}
