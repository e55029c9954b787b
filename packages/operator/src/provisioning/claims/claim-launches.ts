/** Creates the claims of one decision. */
import type { NewClaim } from '@tenon/engine'
import { isKubeError } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { DecisionPlan } from '../../placement/planner.ts'
import type { ClaimReservations, ReservedClaim } from './claim-reservations.ts'
import type { LaunchReport } from './launch-report.ts'
import type { PendingClaimObjects } from './pending-claim-objects.ts'
import type { PlannedClaims } from './planned-claims.ts'
import type { RefusedClaims } from './refused-claims.ts'

/** What this file works with. */
interface Dependencies {
  readonly reservations: ClaimReservations
  readonly plannedClaims: PlannedClaims
  readonly objects: PendingClaimObjects
  readonly refused: RefusedClaims
  readonly report: LaunchReport
  readonly logger: Logger
}

const parallelCreates = 20

export class ClaimLaunches {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async create(
    claims: readonly NewClaim[],
    { plan, placement }: { readonly plan: DecisionPlan; readonly placement: 'planned' | 'free' },
    signal: AbortSignal,
  ): Promise<void> {
    const { logger, refused, reservations } = this.#deps
    logger.info('computed new nodeclaim(s) to fit pod(s)', {
      nodeclaims: claims.length,
      pods: claims.reduce((count, claim) => count + claim.pods.length, 0),
      // Without steering the plan has to hold wherever pods land, which may cost more.
      placement,
    })
    const failures: unknown[] = []
    const queue = reservations.reserve(claims, failures)
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        try {
          await this.#createOne(next, plan, signal)
        } catch (error) {
          if (isKubeError(error, 'invalid', 'forbidden')) refused.note(next.claim, error.message)
          else failures.push(error)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(parallelCreates, claims.length) }, worker))
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `creating ${failures.length} NodeClaim(s): ${(failures[0] as Error).message}`,
      )
  }

  async #createOne(reserved: ReservedClaim, plan: DecisionPlan, signal: AbortSignal): Promise<void> {
    const { objects, plannedClaims, refused, report, reservations } = this.#deps
    const { claim, reservation } = reserved
    const pool = reservations.poolWithin(reserved)
    const object = plan.noted(objects.of(claim, pool), claim.pods)
    const created = await plannedClaims.create(pool, object, reservation, signal)
    plan.launched(created, claim.pods)
    refused.forget(claim.pods)
    report.created(claim, created, pool)
  }
}
