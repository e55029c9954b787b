/**
 * Conditions of ProvisioningRequests that the controller and the Cluster Autoscaler mode write alike (gangs.md
 * 2.1).
 */
import type { NewCondition } from '../conditions.ts'

export const acceptedCondition: NewCondition = {
  type: 'Accepted',
  status: 'True',
  reason: 'Accepted',
  message: 'Room for its pods is sought',
}

/** @param isLaunched whether nodes were launched for it. */
export function foundCondition(
  isLaunched: boolean,
  message = 'There is room for all of its pods',
): NewCondition {
  const reason = isLaunched ? 'CapacityIsProvisioned' : 'CapacityIsFound'
  return { type: 'Provisioned', status: 'True', reason, message }
}

/**
 * @param why no capacity was found.
 * @param isLast whether there will be no retry.
 */
export function notFoundCondition(why: string, isLast: boolean): NewCondition {
  const reason = 'CapacityIsNotFound'
  return isLast
    ? failedCondition(reason, `There is no room for all of its pods: ${why}`)
    : {
        type: 'Provisioned',
        status: 'False',
        reason,
        message: `There is no room for all of its pods; tried again later: ${why}`,
      }
}

/** The request timed out before capacity was found. */
export const expiredCondition = failedCondition('Expired', 'There was no room for all of its pods in time')

/** There will be no retry. */
export function failedCondition(reason: FailureReason, message: string): NewCondition {
  return { type: 'Failed', status: 'True', reason, message }
}

export type FailureReason = 'CapacityIsNotFound' | 'Expired' | 'FailedToBookCapacity' | 'FailedToCreatePods'

/**
 * The capacity is no longer kept.
 * @param isConsumed whether pods have consumed all of it.
 */
export function bookingEndedCondition(isConsumed: boolean): NewCondition {
  return {
    type: 'BookingExpired',
    status: 'True',
    reason: isConsumed ? 'CapacityBookingConsumed' : 'CapacityReservationTimeExpired',
    message: isConsumed ? 'All of its pods have a node' : 'The time for which room is kept is over',
  }
}
