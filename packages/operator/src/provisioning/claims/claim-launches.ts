/** Creates the claims of one decision. */
import type { SchedulingResult } from '@tenon/engine'
import { isKubeError } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { DecisionPlan } from '../planner.ts'
import type { ClaimReservations, OvertakenClaim, ReservedClaim } from './claim-reservations.ts'
import type { LaunchReport } from './launch-report.ts'
import { type Overtaken, overtakenText } from './overtaken.ts'
import type { PendingClaimObjects } from './pending-claim-objects.ts'
import type { PlannedClaims } from './planned-claims.ts'
import type { RefusedClaims } from './refused-claims.ts'
import { podList } from '../../text.ts'

interface Dependencies {
  readonly reservations: ClaimReservations
  readonly plannedClaims: PlannedClaims
  readonly objects: PendingClaimObjects
  readonly refused: RefusedClaims
  readonly report: LaunchReport
  readonly logger: Logger
}

const parallelCreates = 20

/** Whether the decision was carried out, or the cluster changed after it. */
export type LaunchOutcome = 'done' | 'overtaken'

export class ClaimLaunches {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * @returns `overtaken` if some may not be created any more: a new decision is due.
   * @throws AggregateError of the creations that failed, after all were tried.
   */
  async create(
    { claims, deferred }: Pick<SchedulingResult, 'claims' | 'deferred'>,
    { plan, placement }: { readonly plan: DecisionPlan; readonly placement: 'planned' | 'free' },
    signal: AbortSignal,
  ): Promise<LaunchOutcome> {
    const { logger, refused, report, reservations } = this.#deps
    const decision = claims.length > 0 ? report.decided(claims) : ''
    if (claims.length > 0)
      logger.info('computed new nodeclaim(s) to fit pod(s)', {
        nodeclaims: claims.length,
        pods: claims.reduce((count, claim) => count + claim.pods.length, 0),
        // Without steering the plan has to hold wherever pods land, which may cost more.
        placement,
      })
    const failures: unknown[] = []
    const { reserved, overtaken } = reservations.reserve(claims)
    const late: OvertakenClaim[] = [...overtaken, ...reservations.wait(deferred)]
    const queue = [...reserved]
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        try {
          const by = await this.#createOne(next, { plan, decision }, signal)
          if (by !== undefined) late.push({ claim: next.claim, by })
        } catch (error) {
          if (isKubeError(error, 'invalid', 'forbidden')) refused.note(next.claim, error.message)
          else failures.push(error)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(parallelCreates, claims.length) }, worker))
    for (const each of late) this.#tellOvertaken(each)
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `creating ${failures.length} NodeClaim(s): ${(failures[0] as Error).message}`,
      )
    return late.length === 0 ? 'done' : 'overtaken'
  }

  #tellOvertaken({ claim: { nodePool, pods }, by }: OvertakenClaim): void {
    this.#deps.logger.info('did not create a nodeclaim; its pods are scheduled again', {
      NodePool: { name: nodePool },
      because: overtakenText(by),
      Pods: podList(pods),
    })
  }

  async #createOne(
    reserved: ReservedClaim,
    { plan, decision }: { readonly plan: DecisionPlan; readonly decision: string },
    signal: AbortSignal,
  ): Promise<Overtaken | undefined> {
    const { objects, plannedClaims, refused, report, reservations } = this.#deps
    const { claim, reservation } = reserved
    const within = reservations.poolWithin(reserved)
    if (within.kind !== 'within') return within
    const { pool } = within
    const object = plan.noted(objects.of(claim, pool), claim)
    const created = await plannedClaims.create(pool, object, reservation, signal)
    plan.launched(created, claim)
    refused.forget([...claim.pods, ...(claim.roomPods ?? [])])
    report.created(claim, created, pool, decision)
    return undefined
  }
}
