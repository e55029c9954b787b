/**
 * The deletion of one tainted node, from the delay after its taint to its last event (cluster-autoscaler.md 6.6).
 */
import type { Clock, Logger } from '@tenon/runtime'
import { delayDeletionPrefix } from '../../names.ts'
import type { AutoscalerOptions } from '../../options/options.ts'
import { nameOf } from '../../pods/pod-traits.ts'
import type { CloudRemover } from './cloud-remover.ts'
import type { ClusterReader } from './cluster-reader.ts'
import type { DeletionFailure, DeletionJob } from './deletion-job.ts'
import { evictionPlan } from './eviction-plan.ts'
import type { Evictor } from './evictor.ts'
import { checkNodeNow } from './node-look.ts'
import type { TaintLatency } from './taint-latency.ts'

const pollMs = 5_000
/** How often pods that arrive during the drain are evicted too, before the deletion fails. */
const drainRounds = 3

export interface NodeDeletionDependencies {
  readonly options: Pick<AutoscalerOptions, 'loop' | 'scaleDown'>
  readonly reader: ClusterReader
  readonly steps: {
    readonly latency: TaintLatency
    readonly evictor: Evictor
    readonly remover: CloudRemover
  }
  readonly clock: Clock
  readonly logger: Logger
}

export class NodeDeletion {
  readonly #deps: NodeDeletionDependencies

  constructor(deps: NodeDeletionDependencies) {
    this.#deps = deps
  }

  /** @returns why the node stays; undefined if its instance is gone. Rejects when the signal aborts. */
  async run(job: DeletionJob, taintValue: string, signal: AbortSignal): Promise<DeletionFailure | undefined> {
    const { steps } = this.#deps
    const { node, groupId, kind } = job
    await this.#delay(node.metadata.name, signal)
    for (let round = 1; ; round++) {
      const failure = await this.#drain(job, signal)
      if (failure !== undefined) return failure
      await this.#awaitAnnotations(node.metadata.name, signal)
      const ending = await steps.remover.remove({ node, groupId, taintValue }, signal)
      if (ending?.stage !== 'newcomer' || kind === 'empty' || round === drainRounds) return ending
    }
  }

  async #drain({ node, kind }: DeletionJob, signal: AbortSignal): Promise<DeletionFailure | undefined> {
    const { steps, options } = this.#deps
    const { name } = node.metadata
    const look = await checkNodeNow(name, this.#deps, signal)
    if (look.kind === 'stays') return { stage: 'recheck', message: look.why }
    const [moved] = look.toMove
    if (kind === 'empty' && moved !== undefined)
      return { stage: 'recheck', message: `pod ${nameOf(moved)} was bound to it meanwhile` }
    const plan = evictionPlan(look, kind, options.scaleDown)
    const message = await steps.evictor.drain(name, plan, signal)
    return message === undefined ? undefined : { stage: 'drain', message }
  }

  /** The scheduler may have chosen the node before it saw the taint. */
  async #delay(nodeName: string, signal: AbortSignal): Promise<void> {
    const { deleteDelayAfterTaintMs, dynamicDeleteDelayAfterTaint } = this.#deps.options.scaleDown
    const { clock, steps } = this.#deps
    if (dynamicDeleteDelayAfterTaint) await steps.latency.observe(nodeName, signal)
    const dynamicMs = dynamicDeleteDelayAfterTaint ? steps.latency.delayMs() : undefined
    await clock.sleep(dynamicMs ?? deleteDelayAfterTaintMs, signal)
  }

  /** Annotations may delay the deletion, up to a limit. */
  async #awaitAnnotations(nodeName: string, signal: AbortSignal): Promise<void> {
    const { reader, clock, logger, options } = this.#deps
    const limitMs = options.scaleDown.nodeDeletionDelayTimeoutMs
    if (limitMs <= 0) return
    const endMs = clock.monotonic() + limitMs
    for (;;) {
      const isHeldUp = await reader.node(nodeName, signal).then(
        (node) =>
          Object.keys(node?.metadata.annotations ?? {}).some((key) => key.startsWith(delayDeletionPrefix)),
        (error: unknown) => {
          if (signal.aborted) throw error
          logger.debug('a node that is being deleted could not be read', { node: nodeName, error })
          return true
        },
      )
      if (!isHeldUp) return
      if (clock.monotonic() >= endMs) {
        logger.warn('a node is deleted although annotations still hold its deletion up', { node: nodeName })
        return
      }
      await clock.sleep(Math.min(pollMs, endMs - clock.monotonic()), signal)
    }
  }
}
