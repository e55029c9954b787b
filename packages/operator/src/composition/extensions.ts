/** Builds what Karpenter has not: room for CapacityBuffers, groups of pods, ProvisioningRequests, nominations, learning. */
import type { KubeClient } from '@tenon/kube'
import { BufferTemplates } from '../extensions/capacitybuffer/buffer-templates.ts'
import { CapacityBuffers } from '../extensions/capacitybuffer/controller.ts'
import { BufferHydration } from '../extensions/capacitybuffer/hydration.ts'
import type { RunnableSpec } from '../controller.ts'
import type { Assembly } from './parts.ts'
import { DisruptionMarks } from '../disruption/commands/marks.ts'
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import { GroupClaimNotes } from '../extensions/podgroup/claim-notes.ts'
import { GroupController } from '../extensions/podgroup/controller.ts'
import { GroupDiscovery } from '../extensions/podgroup/discovery.ts'
import { GroupReleases } from '../extensions/podgroup/releases.ts'
import { GroupReport } from '../extensions/podgroup/report.ts'
import { SilentMembers } from '../extensions/podgroup/silent-members.ts'
import { GroupStanding } from '../extensions/podgroup/standing.ts'
import { KeptPlans } from '../placement/kept-plans.ts'
import { RequestBooking } from '../extensions/provisioningrequest/booking.ts'
import { ConsumerReport } from '../extensions/provisioningrequest/consumer-report.ts'
import { ProvisioningRequests } from '../extensions/provisioningrequest/controller.ts'
import { RequestProgress } from '../extensions/provisioningrequest/progress.ts'
import { RequestStatus } from '../extensions/provisioningrequest/request-status.ts'
import { RequestTemplates } from '../extensions/provisioningrequest/request-templates.ts'
import { RequestSearch } from '../extensions/provisioningrequest/search.ts'
import { NominationOutcomes } from '../placement/nomination-outcomes.ts'
import { NominationWriter } from '../placement/nomination-writer.ts'
import { Nominator } from '../placement/nominator.ts'
import { resumePlans } from '../placement/planned-pods.ts'
import type { CapacityLearning } from '../cloud/corrected-provider.ts'
import { NodePoolLearning } from '../nodepool/learning.ts'
import { LearningReport } from '../nodepool/learning-report.ts'
import { PoolMemory } from '../nodepool/pool-memory.ts'

interface Buffering {
  readonly specs: readonly RunnableSpec[]
  readonly hydration: BufferHydration
}

/** @param written by whom conditions are written. */
export function bufferingOf(parts: Assembly, written: Pick<KubeClient, 'patch'>): Buffering {
  const { client, clock, logger, state } = parts
  const { buffers } = parts.caches
  const templates = buffers && new BufferTemplates({ client, buffers })
  const hydration = new BufferHydration({ buffers, state, templates, clock, logger })
  if (buffers === undefined || templates === undefined) return { specs: [], hydration }
  return {
    specs: [new CapacityBuffers({ client: written, buffers, state, templates, clock }), hydration],
    hydration,
  }
}

/** Finds out which groups there are, for a process that only observes; nothing without the feature gate. */
export function observedPodGroupsOf(parts: Assembly): readonly RunnableSpec[] {
  const { groupKinds } = parts.caches
  return groupKinds === undefined ? [] : [new GroupDiscovery({ ...parts, groupKinds })]
}

/** Nothing without the feature gate. */
export function podGroupsOf(parts: Assembly, deleter: ClaimDeleter): readonly RunnableSpec[] {
  const { caches, clock, state } = parts
  const { groupKinds } = caches
  if (groupKinds === undefined) return []
  const notes = new GroupClaimNotes(parts)
  const report = new GroupReport(parts)
  return [
    new GroupDiscovery({ ...parts, groupKinds }),
    new GroupController({
      state,
      standing: new GroupStanding(parts),
      notes,
      releases: new GroupReleases({ ...parts, deleter, marks: new DisruptionMarks(parts), notes }),
      report,
      clock,
    }),
    new SilentMembers({ state, report, clock }),
  ]
}

/**
 * Nothing without the feature gate.
 * @param written by whom conditions are written.
 */
export function provisioningRequestsOf(
  parts: Assembly,
  written: Pick<KubeClient, 'patch'>,
): readonly RunnableSpec[] {
  if (parts.caches.groupKinds === undefined) return []
  parts.state.requests.serve()
  const standing = new GroupStanding(parts)
  const templates = new RequestTemplates(parts)
  const progress = new RequestProgress({ ...parts, standing, keptPlans: new KeptPlans(parts) })
  const status = new RequestStatus({ ...parts, client: written })
  return [
    new ProvisioningRequests({
      state: parts.state,
      standing,
      search: new RequestSearch({ ...parts, templates, progress, status }),
      booking: new RequestBooking({ ...parts, templates, progress, status }),
      consumers: new ConsumerReport(parts),
    }),
  ]
}

export function nominatorOf(parts: Assembly): Nominator {
  return new Nominator({
    ...parts,
    writer: new NominationWriter(parts),
    outcomes: new NominationOutcomes(parts),
    resumePlans: () => {
      resumePlans(parts)
    },
  })
}

export function learningOf(parts: Assembly, learning: CapacityLearning): NodePoolLearning {
  return new NodePoolLearning({
    ...parts,
    learning,
    memory: new PoolMemory(parts),
    report: new LearningReport(parts),
  })
}
