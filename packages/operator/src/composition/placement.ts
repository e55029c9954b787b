/** Builds what makes the Kubernetes scheduler follow plans. */
import { NominationOutcomes } from '../placement/nomination-outcomes.ts'
import { NominationWriter } from '../placement/nomination-writer.ts'
import { Nominator } from '../placement/nominator.ts'
import { ResumedPlans } from '../placement/planned-pods.ts'
import type { Assembly } from './parts.ts'

export function nominatorOf(parts: Assembly): Nominator {
  return new Nominator({
    ...parts,
    writer: new NominationWriter(parts),
    outcomes: new NominationOutcomes(parts),
    plans: new ResumedPlans(parts),
  })
}
