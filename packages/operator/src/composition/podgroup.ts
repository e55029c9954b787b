/** Builds what holds launches for groups of pods together. */
import { DisruptionMarks } from '../disruption/commands/marks.ts'
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import type { RunnableSpec } from '../controller.ts'
import { GroupClaimNotes } from '../extensions/podgroup/claim-notes.ts'
import { GroupController } from '../extensions/podgroup/controller.ts'
import { GroupDiscovery } from '../extensions/podgroup/discovery.ts'
import { GroupReleases } from '../extensions/podgroup/releases.ts'
import { GroupReport } from '../extensions/podgroup/report.ts'
import { SilentMembers } from '../extensions/podgroup/silent-members.ts'
import { GroupStanding } from '../extensions/podgroup/standing.ts'
import type { Assembly } from './parts.ts'

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
