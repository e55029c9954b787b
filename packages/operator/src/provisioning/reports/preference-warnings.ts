/** Warns of pods whose wishes cost nodes. */
import type { Pod } from '@tenon/api'
import type { Clock, Logger } from '@tenon/runtime'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import type { Settings } from '../../settings.ts'

/** What this file works with. */
interface Dependencies {
  readonly state: Pick<ClusterState, 'podDecisions'>
  readonly settings: Pick<Settings, 'preferences'>
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

const warningPauseMs = 24 * 3_600_000

export class PreferenceWarnings {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Wishes about other pods keep nodes apart that could be one: users may not expect that. */
  warn(pods: readonly Pod[]): void {
    const { clock, logger, settings, state } = this.#deps
    if (settings.preferences !== 'Respect') return
    for (const pod of pods) {
      const wishes = hinderingWishes(pod)
      if (wishes.length === 0) continue
      if (!state.podDecisions.mayWarn(pod.metadata.uid ?? '', clock.now(), warningPauseMs)) continue
      logger.info('pod has preferences that can keep nodes from being consolidated', {
        Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
        preferences: wishes.join(', '),
      })
    }
  }
}

function hinderingWishes({ spec }: Pod): readonly string[] {
  const wishes: string[] = []
  if ((spec.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).length > 0)
    wishes.push('preferred pod anti-affinity')
  if ((spec.topologySpreadConstraints ?? []).some((c) => c.whenUnsatisfiable === 'ScheduleAnyway'))
    wishes.push('topology spread with ScheduleAnyway')
  return wishes
}
