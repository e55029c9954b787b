/** Conditions of ProvisioningRequests that are written alike whoever serves them (gangs.md 2.1). */
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
 * @param why there is no room.
 * @param isLast whether it is not tried again.
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

/** Its time is over, and it never got room. */
export const expiredCondition = failedCondition('Expired', 'There was no room for all of its pods in time')

/** It is never tried again. */
export function failedCondition(reason: FailureReason, message: string): NewCondition {
  return { type: 'Failed', status: 'True', reason, message }
}

export type FailureReason = 'CapacityIsNotFound' | 'Expired' | 'FailedToBookCapacity' | 'FailedToCreatePods'

/** Its room is kept no longer. @param isConsumed whether all of it was taken. */
export function bookingEndedCondition(isConsumed: boolean): NewCondition {
  return {
    type: 'BookingExpired',
    status: 'True',
    reason: isConsumed ? 'CapacityBookingConsumed' : 'CapacityReservationTimeExpired',
    message: isConsumed ? 'All of its pods have a node' : 'The time for which room is kept is over',
  }
}
