import type { NodePool } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'

interface Dependencies {
  readonly events: EventRecorder
  readonly logger: Logger
}

/** Tells of instance types that are smaller than they say. */
export class LearningReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param found what nodes of the type have instead. */
  smaller(pool: NodePool, type: string, found: string): void {
    const { events, logger } = this.#deps
    logger.warn('instance type is smaller than its catalogue says', {
      NodePool: { name: pool.metadata.name },
      'instance-type': type,
      found,
    })
    events.record({
      object: pool,
      type: 'Warning',
      reason: 'InstanceTypeSmaller',
      message: `Nodes of instance type ${type} have ${found}; decisions use this from now on`,
      dedupe: [pool.metadata.uid ?? '', type],
    })
  }
}
