/** Until when room is sought for a ProvisioningRequest (gangs.md 2.1, 7.6). */
import { ownValue, type ProvisioningRequest, requestLifeMs } from '@tenon/api'

const parameter = 'ValidUntilSeconds'

/** `problem`: what is wrong with the parameter that says so, which then counts as missing. */
export function deadlineOf(request: ProvisioningRequest): {
  readonly atMs: number
  readonly problem?: string
} {
  const createdMs = Date.parse(request.metadata.creationTimestamp ?? '')
  const given = ownValue(request.spec.parameters, parameter)
  const lifeMs = createdMs + requestLifeMs
  if (given === undefined) return { atMs: lifeMs }
  if (!/^\d{1,9}$/.test(given) || Number(given) === 0)
    return {
      atMs: lifeMs,
      problem: `spec.parameters.${parameter} "${given}" is ignored: give a number of seconds, such as "600"`,
    }
  return { atMs: Math.min(lifeMs, createdMs + Number(given) * 1000) }
}
