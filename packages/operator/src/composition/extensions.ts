/** Builds what Karpenter has not: room for CapacityBuffers, groups of pods, ProvisioningRequests, nominations, learning. */
import type { KubeClient } from '@tenon/kube'
import { BufferTemplates } from '../extensions/capacitybuffer/buffer-templates.ts'
import { CapacityBuffers } from '../extensions/capacitybuffer/controller.ts'
import { capacityQuotas } from '../extensions/capacityquota/controller.ts'
import { BufferHydration } from '../extensions/capacitybuffer/hydration.ts'
import { BufferSchedules } from '../extensions/capacitybuffer/schedule.ts'
import type { RunnableSpec } from '../controller.ts'
import { policyOf } from '../settings.ts'
import type { Assembly } from './parts.ts'
import { DisruptionMarks } from '../disruption/commands/marks.ts'
import { CandidateFinder } from '../disruption/candidates.ts'
import { CatalogueReader } from '../disruption/catalogue.ts'
import { PodDeletionCosts } from '../extensions/deletioncost/controller.ts'
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import { GroupController } from '../extensions/podgroup/controller.ts'
import { GroupDiscovery } from '../extensions/podgroup/discovery.ts'
import { GroupReport } from '../extensions/podgroup/report.ts'
import { SilentMembers } from '../extensions/podgroup/silent-members.ts'
import { SpendNotes } from '../extensions/spend/spend-notes.ts'
import { ProvisioningRequests } from '../extensions/provisioningrequest/controller.ts'
import { Nominator } from '../placement/nominator.ts'

interface Buffering {
  readonly specs: readonly RunnableSpec[]
  readonly hydration: BufferHydration
}

/** @param written by whom conditions are written. */
export function bufferingOf(parts: Assembly, written: Pick<KubeClient, 'patch'>): Buffering {
  const { client, clock, logger, state } = parts
  const { buffers } = parts.caches
  const schedules = policyOf(parts.settings).readsAnnotations ? new BufferSchedules(parts) : undefined
  const templates = buffers && new BufferTemplates(client, buffers, schedules)
  const hydration = new BufferHydration({ buffers, state, templates, clock, logger })
  if (buffers === undefined || templates === undefined) return { specs: [], hydration }
  return {
    specs: [new CapacityBuffers({ client: written, buffers, state, templates, clock }), hydration],
    hydration,
  }
}

/** Nothing in the compatibility mode. */
export function quotasOf(parts: Assembly): readonly RunnableSpec[] {
  const { capacityQuotas: quotas } = parts.caches
  return quotas === undefined ? [] : [capacityQuotas(parts, quotas)]
}

/** Finds out which groups there are, for a process that only observes; nothing without the feature gate. */
export function observedPodGroupsOf(parts: Assembly): readonly RunnableSpec[] {
  const { client, logger, state } = parts
  const { groupKinds } = parts.caches
  return groupKinds === undefined ? [] : [new GroupDiscovery(client, groupKinds, state, logger)]
}

/** Nothing without the feature gate. */
export function podGroupsOf(parts: Assembly, deleter: ClaimDeleter): readonly RunnableSpec[] {
  const { caches, client, clock, events, logger, metrics, state } = parts
  const { groupKinds } = caches
  if (groupKinds === undefined) return []
  const report = new GroupReport(state, events, metrics, clock)
  const marks = new DisruptionMarks(parts)
  return [
    new GroupDiscovery(client, groupKinds, state, logger),
    new GroupController({ ...parts, deleter, marks, report }),
    new SilentMembers(state, report, clock),
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
  return [new ProvisioningRequests({ ...parts, client: written })]
}

/** Nothing without the option. */
export function podDeletionCostsOf(parts: Assembly): readonly RunnableSpec[] {
  if (!parts.settings.podDeletionCost) return []
  const readers = { candidates: new CandidateFinder(parts), catalogue: new CatalogueReader(parts) }
  return [new PodDeletionCosts({ ...parts, ...readers })]
}

/** Nothing in the compatibility mode. */
export function spendNotesOf(parts: Assembly): readonly RunnableSpec[] {
  return policyOf(parts.settings).notesSpend ? [new SpendNotes(parts)] : []
}

export function nominatorOf(parts: Assembly): Nominator {
  return new Nominator(parts)
}
