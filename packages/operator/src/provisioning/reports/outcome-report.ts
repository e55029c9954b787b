/** Reports what a scheduling pass decided, in steps. */
import { labels } from '@tenon/api'
import type { Deferral, NewClaim, SchedulingResult } from '@tenon/engine'
import { inSlices, type Logger, type Slicing } from '@tenon/runtime'
import { labelsOf } from '../../state/nodes/state-node.ts'
import type { GatheredInput } from '../input/scheduling-input.ts'
import { podList } from '../../text.ts'
import type { SchedulingReport } from './scheduling-report.ts'
import type { Caches } from '../../state/caches.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly report: SchedulingReport
  readonly groups: { readonly decided: (result: SchedulingResult) => void }
  readonly slicing: Slicing
  readonly logger: Logger
}

export class OutcomeReport {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  tell(input: GatheredInput, result: SchedulingResult): Promise<void> {
    return inSlices(this.#telling(input, result), this.#deps.slicing)
  }

  *#telling(input: GatheredInput, result: SchedulingResult): Generator<undefined, void, undefined> {
    const { caches, logger, report } = this.#deps
    for (const { pod, node } of result.placements) {
      yield
      const target = input.stateNodes.get(node)
      if (target === undefined) continue
      const pool = caches.nodePools.get({ name: labelsOf(target)[labels.nodePool] ?? '' })
      report.placed(pod, pool, target.claim?.metadata.name)
      report.nominated(pod, target.claim, target.node?.metadata.name)
    }
    // A pod whose claim waits for a limit has a decision all the same.
    for (const { nodePool, pods } of [...result.claims, ...deferredFor('limitReserved', result)]) {
      const current = caches.nodePools.get({ name: nodePool })
      for (const pod of pods) report.placed(pod, current, undefined)
      yield
    }
    this.#tellWaiting(result)
    this.#deps.groups.decided(result)
    yield* report.failures(result, input.refused)
    for (const pool of input.poolsWithoutListing) report.poolWithoutTypes(pool, { becauseOfMinValues: false })
    for (const { nodePool: name, ...why } of result.poolsWithoutTypes) {
      const pool = caches.nodePools.get({ name })
      if (pool !== undefined) report.poolWithoutTypes(pool, why)
    }
    for (const object of result.malformed) logger.error('ignored an invalid object', { ...object })
  }

  /** Logs pods for which nothing is launched yet. */
  #tellWaiting(result: SchedulingResult): void {
    const { logger } = this.#deps
    const podsOf = (kind: Deferral['kind']) => deferredFor(kind, result).flatMap(({ pods }) => pods)
    const crowd = podsOf('offeringsOnTrial')
    if (crowd.length > 0)
      logger.info('pods wait for one launch that tests whether there is capacity again', {
        Pods: podList(crowd),
      })
  }
}

function deferredFor(kind: Deferral['kind'], { deferred }: SchedulingResult): readonly NewClaim[] {
  return deferred.flatMap(({ claim, because }) => (because.kind === kind ? [claim] : []))
}
