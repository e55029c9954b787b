/** Warns of pods whose preferences cost nodes. */
import type { Pod } from '@tenon/api'
import type { Clock, Logger } from '@tenon/runtime'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { Settings } from '../../settings.ts'

export interface PreferenceWarningParts {
  readonly state: Pick<ClusterState, 'podDecisions'>
  readonly settings: Pick<Settings, 'preferences'>
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

const warningPauseMs = 24 * 3_600_000

/** Preferences about other pods keep nodes apart that could be one: users may not expect that. */
export function warnOfPreferences(
  { clock, logger, settings, state }: PreferenceWarningParts,
  pods: readonly Pod[],
): void {
  if (settings.preferences !== 'Respect') return
  for (const pod of pods) {
    const preferences = costlyPreferences(pod)
    if (preferences.length === 0) continue
    if (!state.podDecisions.mayWarn(pod.metadata.uid ?? '', clock.now(), warningPauseMs)) continue
    logger.info('pod has preferences that can keep nodes from being consolidated', {
      Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
      preferences: preferences.join(', '),
    })
  }
}

function costlyPreferences({ spec }: Pod): readonly string[] {
  const preferences: string[] = []
  if ((spec.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).length > 0)
    preferences.push('preferred pod anti-affinity')
  if ((spec.topologySpreadConstraints ?? []).some((c) => c.whenUnsatisfiable === 'ScheduleAnyway'))
    preferences.push('topology spread with ScheduleAnyway')
  return preferences
}
