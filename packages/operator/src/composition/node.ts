/** Builds what ends Nodes. */
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import { NodeHealth } from '../node/health/controller.ts'
import { NodeRepair } from '../node/health/repair.ts'
import { NodeTermination } from '../node/termination/controller.ts'
import { DrainEvents } from '../node/termination/drain-events.ts'
import type { EvictionQueue } from '../node/termination/eviction-queue.ts'
import { TerminationReport } from '../node/termination/report.ts'
import { terminationStages } from '../node/termination/stages.ts'
import type { Assembly } from './parts.ts'

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
