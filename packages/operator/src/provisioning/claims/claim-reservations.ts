/** Reserves the room that claims of a decision take below the limits of their NodePools. */
import type { NodePool, Resources } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import type { Logger } from '@tenon/runtime'
import type { LimitReservation } from '../../cluster/nodepools/limit-reservations.ts'
import { poolUsage } from '../../cluster/nodepools/pool-usage.ts'
import { limitError, type PlannedClaims, refuseAboveLimits } from './planned-claims.ts'
import { podList } from '../reports/scheduling-report.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly plannedClaims: PlannedClaims
  readonly state: ClusterState
  readonly logger: Logger
}

export interface ReservedClaim {
  readonly claim: NewClaim
  /** What its NodePool had when the reservation was made. */
  readonly usage: Resources
  readonly reservation: LimitReservation
}

export class ClaimReservations {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * The claims there is room for below the limits of their NodePools, for all at once: meanwhile others may be
   * launched.
   */
  reserve(claims: readonly NewClaim[], failures: unknown[]): ReservedClaim[] {
    const { logger, state } = this.#deps
    const nodes = state.stateNodes()
    return claims.flatMap((claim): readonly ReservedClaim[] => {
      try {
        const pool = this.#deps.plannedClaims.pool(claim.nodePool)
        const usage = poolUsage(claim.nodePool, nodes, state.parsed)
        const reservation = state.limitReservations.take({ pool, usage, largest: claim.largest })
        if (typeof reservation !== 'string') return [{ claim, usage, reservation }]
        if (!state.limitReservations.want(claim.nodePool)) throw limitError(claim.nodePool, reservation)
        // An expected outcome: the pods are decided about again once it is known what became of it.
        logger.info('room below the limit of a nodepool is taken by nodes on their way; the pods wait', {
          NodePool: { name: claim.nodePool },
          limit: reservation,
          Pods: podList(claim.pods),
        })
        return []
      } catch (error) {
        failures.push(error)
        return []
      }
    })
  }

  /** The NodePool, whose limits may have been lowered meanwhile. */
  poolWithin({ claim, usage, reservation }: ReservedClaim): NodePool {
    try {
      const pool = this.#deps.plannedClaims.pool(claim.nodePool)
      refuseAboveLimits(pool, usage)
      return pool
    } catch (error) {
      this.#deps.state.limitReservations.giveBack(reservation)
      throw error
    }
  }
}
