/** Builds what decides about pods that wait, and launches nodes for them. */
import { policyOf } from '../settings.ts'
import { NodeEvidenceJudge } from '../node/evidence/judge.ts'
import { ObservedScheduling } from '../extensions/observe/observed-scheduling.ts'
import type { SeenPods } from '../extensions/observe/seen-pods.ts'
import { Batcher } from '../provisioning/batcher.ts'
import type { ClaimCreations } from '../nodeclaim/claim-creation.ts'
import { DecisionMemory } from '../provisioning/decision-memory.ts'
import { KnownClaims, Provisioner } from '../provisioning/provisioner.ts'
import type { LimitReport } from '../nodepool/limit-report.ts'
import type { PlannedClaims } from '../provisioning/planned-claims.ts'
import { Launcher } from '../provisioning/launcher.ts'
import { RefusedClaims } from '../provisioning/refused-claims.ts'
import { SchedulingPass } from '../provisioning/scheduling-pass.ts'
import { SchedulingReport } from '../provisioning/scheduling-report.ts'
import { PassDecider } from '../decide/decider.ts'
import { Triggers } from '../provisioning/triggers.ts'
import { GroupReport } from '../extensions/podgroup/report.ts'
import type { BufferHydration } from '../extensions/capacitybuffer/hydration.ts'
import { BufferReport } from '../extensions/capacitybuffer/report.ts'
import { KnownRequests, RequestReport } from '../extensions/provisioningrequest/report.ts'
import { KeptPlans } from '../placement/planned-pods.ts'
import { inputsOf } from './inputs.ts'
import type { Assembly } from './parts.ts'

/** What the provisioner shares with other controllers. */
interface Shared {
  readonly plannedClaims: PlannedClaims
  readonly creations: ClaimCreations
  readonly limits: LimitReport
  readonly hydration: BufferHydration
}

function passDeciderOf(parts: Assembly): PassDecider {
  return new PassDecider(parts.decider, parts.settings.solveTimeoutMs, parts)
}

/** Decides about observed NodePools. */
function observedSchedulingOf(parts: Assembly, seen?: SeenPods): ObservedScheduling {
  return new ObservedScheduling({
    ...parts,
    inputs: inputsOf(parts, 'observed'),
    decider: passDeciderOf(parts),
    memory: new DecisionMemory(parts),
    ...(seen && { seen }),
  })
}

/** The provisioner of a process that only observes. */
export function observingProvisionerOf(
  parts: Assembly,
  hydration: BufferHydration,
  seen: SeenPods,
): Provisioner {
  const { clock, settings } = parts
  const batcher = new Batcher(clock, settings.batchMaxMs, settings.batchIdleMs)
  return new Provisioner({
    ...parts,
    batcher,
    followers: [new Triggers({ ...parts, batcher })],
    preparations: [new KnownClaims(parts), hydration, new KnownRequests(parts.state.requests, clock)],
    passes: [observedSchedulingOf(parts, seen)],
  })
}

export function provisionerOf(parts: Assembly, shared: Shared): Provisioner {
  const { clock, logger, settings, state } = parts
  const { plannedClaims, creations, hydration, limits } = shared
  const batcher = new Batcher(clock, settings.batchMaxMs, settings.batchIdleMs)
  const judge = policyOf(settings).learns ? new NodeEvidenceJudge(parts) : undefined
  const refused = new RefusedClaims({ refusals: state.claimRefusals, batcher, logger })
  const report = new SchedulingReport({
    ...parts,
    limits,
    memory: new DecisionMemory(parts),
    waitingPods: policyOf(settings).remembersPods ? parts.metrics.waitingPods : undefined,
    groups: new GroupReport(state, parts.events, parts.metrics, clock),
  })
  const { buffers, groupKinds } = parts.caches
  const pass = new SchedulingPass({
    ...parts,
    judge,
    inputs: inputsOf(parts),
    refused,
    decider: passDeciderOf(parts),
    report,
    roomReports: [
      ...(buffers === undefined ? [] : [new BufferReport({ ...parts, buffers })]),
      ...(groupKinds === undefined
        ? []
        : [new RequestReport(state, new KeptPlans(state.plans, parts.placementGate), parts.events)]),
    ],
    launcher: new Launcher({
      ...parts,
      plannedClaims,
      refused,
      creations,
      report,
    }),
  })
  return new Provisioner({
    ...parts,
    batcher,
    followers: [new Triggers({ ...parts, batcher }), ...(judge === undefined ? [] : [judge])],
    preparations: [
      new KnownClaims(parts),
      plannedClaims,
      hydration,
      new KnownRequests(state.requests, clock),
    ],
    passes: [pass, observedSchedulingOf(parts)],
  })
}
