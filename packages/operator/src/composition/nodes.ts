/** Builds the lifecycle of NodeClaims from its stages, and what ends Nodes. */
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import { NodeClaimLifecycle } from '../nodeclaim/lifecycle/controller.ts'
import { LifecycleDeadlines } from '../nodeclaim/lifecycle/deadlines.ts'
import { finalizeClaim } from '../nodeclaim/lifecycle/finalize.ts'
import { initialization } from '../nodeclaim/lifecycle/initialization.ts'
import { InstanceLaunches } from '../nodeclaim/lifecycle/instance-launches.ts'
import { Launcher } from '../nodeclaim/lifecycle/launch.ts'
import { liveness } from '../nodeclaim/lifecycle/liveness.ts'
import { registration } from '../nodeclaim/lifecycle/registration.ts'
import { RegistrationReport } from '../nodeclaim/lifecycle/registration-report.ts'
import { TwinRemoval } from '../nodeclaim/lifecycle/twin-removal.ts'
import { SeenTaints } from '../nodeclaim/lifecycle/seen-taints.ts'
import { RegistrationHold } from '../placement/registration-hold.ts'
import { GroupHold } from '../extensions/podgroup/group-hold.ts'
import { PreferenceHold } from '../placement/preference-hold.ts'
import type { Assembly } from './parts.ts'
import { NodeHealth } from '../node/health/controller.ts'
import { NodeRepair } from '../node/health/repair.ts'
import { NodeTermination } from '../node/termination/controller.ts'
import { DrainEvents } from '../node/termination/drain-events.ts'
import type { EvictionQueue } from '../node/termination/eviction-queue.ts'
import { TerminationReport } from '../node/termination/report.ts'
import { terminationStages } from '../node/termination/stages.ts'

export function lifecycleOf(parts: Assembly, deleter: ClaimDeleter): NodeClaimLifecycle {
  const { learning, ...rest } = parts
  const deadlines = new LifecycleDeadlines(parts)
  const launches = new InstanceLaunches({ ...parts, deadlines })
  const { caches, clock, logger, settings, state } = parts
  const others = [new GroupHold(caches, state, clock, settings), new PreferenceHold(parts)]
  const hold = new RegistrationHold({ ...parts, others })
  const report = new RegistrationReport(parts)
  const twins = new TwinRemoval(parts.kubernetes, deleter, clock, logger, settings)
  const seenTaints = new SeenTaints(parts.caches.nodes)
  return new NodeClaimLifecycle({
    ...parts,
    stages: [
      new Launcher({ ...rest, launches, learning, deleter }),
      registration({ ...parts, deleter, hold, report, seenTaints, twins }),
      initialization(parts),
      liveness({ ...parts, deleter, deadlines }),
    ],
    finalize: (claim, signal) => finalizeClaim(parts, claim, signal),
  })
}

export function terminationOf(parts: Assembly, evictions: EvictionQueue): NodeTermination {
  const drainEvents = new DrainEvents(parts)
  return new NodeTermination({
    ...parts,
    stages: terminationStages({ ...parts, evictions, drainEvents }),
    report: new TerminationReport(parts),
  })
}

export function healthOf(parts: Assembly, deleter: ClaimDeleter): NodeHealth {
  return new NodeHealth({ ...parts, repair: new NodeRepair({ ...parts, deleter }) })
}
