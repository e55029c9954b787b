/** Builds the controllers of NodeClaims and Nodes that have stages, and what holds Nodes closed. */
import { NodeClaimLifecycle } from '../nodeclaim/lifecycle/controller.ts'
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import { finalizeClaim } from '../nodeclaim/lifecycle/finalize.ts'
import { initialize } from '../nodeclaim/lifecycle/initialization.ts'
import { InstanceLauncher } from '../nodeclaim/lifecycle/launch.ts'
import { checkLiveness } from '../nodeclaim/lifecycle/liveness.ts'
import { Registration } from '../nodeclaim/lifecycle/registration.ts'
import { RegistrationHold } from '../placement/registration-hold.ts'
import { GroupHold } from '../extensions/podgroup/group-hold.ts'
import { PreferenceHold } from '../placement/preference-hold.ts'
import type { Assembly } from './parts.ts'

export function lifecycleOf(parts: Assembly, deleter: ClaimDeleter): NodeClaimLifecycle {
  const { caches, clock, placementGate, settings, state } = parts
  const others = [
    new GroupHold(caches, state, clock, settings),
    new PreferenceHold(caches, state, placementGate, clock),
  ]
  const hold = new RegistrationHold({ ...parts, others })
  const launcher = new InstanceLauncher({ ...parts, deleter })
  const registration = new Registration({ ...parts, deleter, hold })
  return new NodeClaimLifecycle({
    ...parts,
    stages: [
      (draft, signal) => launcher.run(draft, signal),
      (draft, signal) => registration.run(draft, signal),
      (draft) => initialize(parts, draft),
      (draft) => checkLiveness({ ...parts, deleter }, draft),
    ],
    due: hold.due,
    finalize: (claim, signal) => finalizeClaim(parts, claim, signal),
  })
}
