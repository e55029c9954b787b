/** The deletion of one marked node, from the delay after its taint to its last event (cluster-autoscaler.md 6.6). */
import { type Clock, type Logger, messageOf } from '@tenon/runtime'
import { delayDeletionPrefix } from '../../names.ts'
import type { AutoscalerOptions } from '../../options/options.ts'
import { hasEnded, isExpendable } from '../../pods/classes.ts'
import { DisruptionBudgets } from '../drain/disruption-budgets.ts'
import { type Drain, drainOf } from '../drain/node-drain.ts'
import { nameOf } from '../../pods/pod-traits.ts'
import { renderReason } from '../reasons.ts'
import type { CloudRemover } from './cloud-remover.ts'
import type { ClusterReader } from './cluster-reader.ts'
import type { DeletionFailure, DeletionJob } from './deletion-job.ts'
import { evictionPlan } from './eviction-plan.ts'
import type { Evictor } from './evictor.ts'
import type { TaintLatency } from './taint-latency.ts'

const pollMs = 5_000

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

  /** @returns why the node stays; undefined when its instance is gone. Rejects when the signal aborts. */
  async run(job: DeletionJob, taintValue: string, signal: AbortSignal): Promise<DeletionFailure | undefined> {
    const { steps, options } = this.#deps
    const { name } = job.node.metadata
    await this.#delay(name, signal)
    const drain = await this.#recheck(job, signal)
    if ('stage' in drain) return drain
    const plan = evictionPlan(drain, job.kind, options.scaleDown)
    const message = await steps.evictor.drain(name, plan, signal)
    if (message !== undefined) return { stage: 'drain', message }
    await this.#awaitAnnotations(name, signal)
    return await steps.remover.remove({ node: job.node, groupId: job.groupId, taintValue }, signal)
  }

  /** The scheduler may have chosen the node before it learnt of the taint. */
  async #delay(nodeName: string, signal: AbortSignal): Promise<void> {
    const { deleteDelayAfterTaintMs, dynamicDeleteDelayAfterTaint } = this.#deps.options.scaleDown
    const { clock, steps } = this.#deps
    if (dynamicDeleteDelayAfterTaint) await steps.latency.observe(nodeName, signal)
    const dynamicMs = dynamicDeleteDelayAfterTaint ? steps.latency.delayMs() : undefined
    await clock.sleep(dynamicMs ?? deleteDelayAfterTaintMs, signal)
  }

  /** Reads pods and budgets again, and asks the drain rules once more. */
  async #recheck({ node, kind }: DeletionJob, signal: AbortSignal): Promise<Drain | DeletionFailure> {
    const { reader, clock, options } = this.#deps
    try {
      const [pods, budgets] = await Promise.all([
        reader.podsOf(node.metadata.name, signal),
        reader.disruptionBudgets(signal),
      ])
      const { expendablePodsPriorityCutoff } = options.loop
      const counted = pods.filter((pod) => !hasEnded(pod) && !isExpendable(pod, expendablePodsPriorityCutoff))
      const drain = drainOf(counted, {
        nowMs: clock.now(),
        options: options.scaleDown,
        controllerOf: reader.controllerOf,
        budgets: new DisruptionBudgets(budgets),
      })
      if (drain.kind === 'blocked') {
        const reason = { kind: 'BlockedByPod', pod: drain.pod, reason: drain.reason } as const
        return { stage: 'recheck', message: renderReason(reason) }
      }
      const [awaited] = drain.awaited
      const [moved] = drain.toMove
      if (awaited !== undefined) {
        return { stage: 'recheck', message: renderReason({ kind: 'BlockedByOnCompletionPod', pod: awaited }) }
      }
      if (kind === 'empty' && moved !== undefined) {
        return { stage: 'recheck', message: `pod ${nameOf(moved)} was bound to it meanwhile` }
      }
      return drain
    } catch (error) {
      if (signal.aborted) throw error
      return { stage: 'recheck', message: `its pods could not be read again: ${messageOf(error)}` }
    }
  }

  /** Others may hold the deletion up for a while. When they do so for longer, it goes on all the same. */
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
