import type { Condition, PodGroup } from '@tenon/api'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import { ApiError, type LocalApi } from '../../contract.ts'
import { podGroupKind } from '../../pod-group-kind.ts'

interface Dependencies {
  readonly api: LocalApi
  readonly clock: Clock
  readonly logger: Logger
}

const type = 'PodGroupScheduled'

/** Writes the status of PodGroups. */
export class GroupWriter {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  scheduled(group: PodGroup): void {
    this.#write(group, {
      status: 'True',
      reason: 'Scheduled',
      message: 'enough pods of the group have a node',
    })
  }

  /** A group that was scheduled once stays so. */
  refused(group: PodGroup, reason: 'Unschedulable' | 'SchedulerError', message: string): void {
    this.#write(group, { status: 'False', reason, message })
  }

  #write(
    group: PodGroup,
    { status, reason, message }: Pick<Condition, 'status' | 'reason' | 'message'>,
  ): void {
    const { api, clock, logger } = this.#deps
    const { namespace, name, uid } = group.metadata
    const latest = api.get(podGroupKind, namespace, name)
    if (latest === undefined || latest.metadata.uid !== uid) return
    const conditions = latest.status?.conditions ?? []
    const known = conditions.find((one) => one.type === type)
    if (known?.status === 'True' && status === 'False') return
    if (known?.status === status && known.reason === reason && known.message === message) return
    const lastTransitionTime = known?.status === status ? known.lastTransitionTime : rfc3339(clock.now())
    const condition: Condition = { type, status, reason, message, lastTransitionTime }
    const others = conditions.filter((one) => one.type !== type)
    try {
      api.patch(podGroupKind, namespace, name, { status: { conditions: [...others, condition] } }, 'status')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      logger.debug('status of a PodGroup could not be written', { namespace, name, error })
    }
  }
}
