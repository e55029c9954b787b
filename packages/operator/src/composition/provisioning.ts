/** Builds the provisioner. */
import type { LimitReport } from '../provisioning/limit-report.ts'
import type { PlannedClaims } from '../provisioning/planned-claims.ts'
import { Provisioner } from '../provisioning/provisioner.ts'
import { SchedulingInputs } from '../provisioning/scheduling-input.ts'
import type { OperatorParts } from './parts.ts'

export function provisionerOf(
  parts: OperatorParts,
  plannedClaims: PlannedClaims,
  limits: LimitReport,
): Provisioner {
  return new Provisioner({ ...parts, plannedClaims, inputs: new SchedulingInputs(parts), limits })
}
