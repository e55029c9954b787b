/** Reserves the share of NodePool limits that the claims of a decision take. */
import { type NodePool, parseResources, type Resources } from '@tenon/api'
import { type DeferredClaim, exceededLimit, type NewClaim } from '@tenon/engine'
import type { Logger } from '@tenon/runtime'
import { pauseSentence } from '../../state/pause.ts'
import type { LimitReservation } from '../../state/nodepools/limit-reservations.ts'
import { poolUsage } from '../../state/nodepools/pool-usage.ts'
import type { Overtaken } from './overtaken.ts'
import type { PlannedClaims } from './planned-claims.ts'
import { podList } from '../../text.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly plannedClaims: Pick<PlannedClaims, 'pool'>
  readonly state: Pick<ClusterState, 'brake' | 'limitReservations' | 'parsed' | 'stateNodes'>
  readonly logger: Logger
}

export interface ReservedClaim {
  readonly claim: NewClaim
  /** The NodePool at that time. */
  readonly usage: Resources
  readonly reservation: LimitReservation
}

/** A claim that may not be created any more, and why. */
export interface OvertakenClaim {
  readonly claim: NewClaim
  readonly by: Overtaken
}

interface Reservations {
  readonly reserved: readonly ReservedClaim[]
  readonly overtaken: readonly OvertakenClaim[]
}

/** A NodePool that is within its limits. */
interface PoolWithin {
  readonly kind: 'within'
  readonly pool: NodePool
}

export class ClaimReservations {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Reserves for all claims at once, as others may be launched meanwhile. @returns those within the limits.
   */
  reserve(claims: readonly NewClaim[]): Reservations {
    const { plannedClaims, state } = this.#deps
    const nodes = state.stateNodes()
    const reserved: ReservedClaim[] = []
    const overtaken: OvertakenClaim[] = []
    for (const claim of claims) {
      const { largest, nodePool } = claim
      const pool = plannedClaims.pool(nodePool)
      if (pool === undefined) {
        overtaken.push({ claim, by: { kind: 'poolGone', nodePool } })
        continue
      }
      const usage = poolUsage(nodePool, nodes, state.parsed)
      const reservation = state.limitReservations.take({ pool, usage, largest })
      if (typeof reservation !== 'string') reserved.push({ claim, usage, reservation })
      else overtaken.push(...this.#waiting(claim, reservation))
    }
    return { reserved, overtaken }
  }

  /**
   * Lets the pods of deferred claims wait: other claims have reserved what is left of a limit.
   * @returns pods whose wait is over, as the other claims have ended.
   */
  wait(deferred: readonly DeferredClaim[]): readonly OvertakenClaim[] {
    return deferred.flatMap(({ claim, because }) =>
      because.kind === 'limitReserved' ? this.#waiting(claim, because.limit) : [],
    )
  }

  /** Decides about the pods again once the claims on their way are launched or gone. */
  #waiting(claim: NewClaim, limit: string): readonly OvertakenClaim[] {
    const { logger, state } = this.#deps
    const { nodePool, pods } = claim
    if (!state.limitReservations.want(nodePool))
      return [{ claim, by: { kind: 'limitReached', nodePool, limit } }]
    logger.info('nodes that are being launched use the limit of a nodepool; the pods wait', {
      NodePool: { name: nodePool },
      limit,
      Pods: podList(pods),
    })
    return []
  }

  /** The NodePool, whose limits may have been lowered meanwhile, or which may have been paused: then the reservation is given back. */
  poolWithin({ claim: { nodePool }, usage, reservation }: ReservedClaim): PoolWithin | Overtaken {
    const pool = this.#deps.plannedClaims.pool(nodePool)
    const exceeded = pool && exceededLimit(parseResources(pool.spec.limits), [usage])
    const pause = this.#deps.state.brake.holding(nodePool, 'launches')
    if (pool !== undefined && exceeded === undefined && pause === undefined) return { kind: 'within', pool }
    this.#deps.state.limitReservations.giveBack(reservation)
    if (pause !== undefined) return { kind: 'paused', nodePool, because: pauseSentence(pause) }
    return exceeded === undefined
      ? { kind: 'poolGone', nodePool }
      : { kind: 'limitExceeded', nodePool, limit: exceeded }
  }
}
