/** Starts deletions, runs them in the background, and reports their results (cluster-autoscaler.md 6.6). */
import { type Clock, messageOf } from '@tenon/runtime'
import type { Reporting } from '../../model.ts'
import { nameOf } from '../../pods/pod-traits.ts'
import { gpuLabels } from '../../gpu.ts'
import type { Drain } from '../drain/node-drain.ts'
import type { CloudRemover } from './cloud-remover.ts'
import { renderUtilization } from '../nodes/utilization.ts'
import type { DeletionFailure, DeletionJob, DeletionResult } from './deletion-job.ts'
import type { DeletionTracker } from './deletion-tracker.ts'
import type { NodeDeletion } from './node-deletion.ts'
import { type NodeCheckDependencies, checkNodeNow } from './node-look.ts'
import type { NodeMarker } from './node-marker.ts'
import { inParallel } from './parallel.ts'

const parallelLooks = 5

export interface DeleterDependencies {
  readonly marker: NodeMarker
  readonly deletion: NodeDeletion
  readonly remover: CloudRemover
  readonly tracker: DeletionTracker
  readonly reporting: Reporting
  readonly look: NodeCheckDependencies
  readonly clock: Clock
  /** Called once for each node of {@link Deleter.start}, unless its signal aborts first. */
  readonly ended: (result: DeletionResult) => void
}

export type Start =
  | { readonly kind: 'started'; readonly started: readonly DeletionJob[] }
  /** Nodes of the batch that could not be tainted stay. `started`: empty ones whose deletion continues. */
  | { readonly kind: 'failed'; readonly message: string; readonly started: readonly DeletionJob[] }

export class Deleter {
  readonly #deps: DeleterDependencies

  constructor(deps: DeleterDependencies) {
    this.#deps = deps
  }

  /**
   * Taints the nodes and starts their deletion; then resolves. Empty ones are tainted first, and continue if the others
   * cannot be tainted. A node that has changed in the API server since it was chosen is skipped.
   * @param signal ends the deletions where they are, when leadership is lost: the next leader cleans up.
   */
  async start(
    empty: readonly DeletionJob[],
    drain: readonly DeletionJob[],
    signal: AbortSignal,
  ): Promise<Start> {
    const started: DeletionJob[] = []
    for (const chosen of [empty, drain]) {
      const batch = await this.#stillChosen(chosen, signal)
      if (batch.length === 0) continue
      const marking = await this.#deps.marker.markAll(
        batch.map(({ node }) => node),
        signal,
      )
      if (marking.kind === 'failed') {
        const failure = { stage: 'tainting', message: marking.message } as const
        for (const job of batch) this.#deps.ended(this.#resultOf(job, failure))
        return { kind: 'failed', message: marking.message, started }
      }
      // Nothing delays empty nodes: those of a group are removed by one call.
      for (const { kind, groupId, node } of batch)
        if (kind === 'empty') this.#deps.remover.expect(groupId, node.metadata.name)
      for (const job of batch) {
        this.#deps.tracker.begin(job)
        this.#announce(job)
        void this.#run(job, marking.values.get(job.node.metadata.name) ?? '', signal)
      }
      started.push(...batch)
      this.#countPending()
    }
    return { kind: 'started', started }
  }

  /** Caches may be minutes old, or come from a wrong list. */
  async #stillChosen(jobs: readonly DeletionJob[], signal: AbortSignal): Promise<readonly DeletionJob[]> {
    const { look, ended } = this.#deps
    const going: DeletionJob[] = []
    await inParallel(jobs, parallelLooks, async (job) => {
      const found = await checkNodeNow(job.node.metadata.name, look, signal)
      const why = found.kind === 'stays' ? found.why : newcomerOf(found, job)
      if (why === undefined) {
        going.push(job)
        return
      }
      const failure = { stage: 'recheck', message: why } as const
      this.#tellStaying(job, failure)
      ended(this.#resultOf(job, failure))
    })
    return jobs.filter((job) => going.includes(job))
  }

  async #run(job: DeletionJob, taintValue: string, signal: AbortSignal): Promise<void> {
    const { deletion, remover, marker, reporting } = this.#deps
    const { logger } = reporting
    const { name } = job.node.metadata
    try {
      const failure = await deletion.run(job, taintValue, signal).catch((error: unknown): DeletionFailure => {
        if (signal.aborted) throw error
        logger.error('the deletion of a node ended in an unexpected error', { node: name, error })
        return { stage: 'recheck', message: messageOf(error) }
      })
      if (failure === undefined) {
        this.#succeed(job)
        return
      }
      remover.expectNoLonger(job.groupId, name)
      this.#tellStaying(job, failure)
      await marker.unmark(name, taintValue, signal)
      this.#end(job, failure)
    } catch (error) {
      // Only on abort: this process is no longer the leader and must not write.
      logger.info('the deletion of a node was given up', { node: name, reason: messageOf(error) })
    } finally {
      remover.expectNoLonger(job.groupId, name)
    }
  }

  #tellStaying({ node, groupId, kind }: DeletionJob, { stage, message }: DeletionFailure): void {
    const { events, logger } = this.#deps.reporting
    const verb = kind === 'drain' ? 'drain and delete node' : 'delete empty node'
    events.object(node, 'Warning', 'ScaleDownFailed', `failed to ${verb}: ${message}`)
    logger.warn('a node stays', { node: node.metadata.name, nodeGroup: groupId, stage, reason: message })
  }

  #succeed(job: DeletionJob): void {
    const { events, metrics } = this.#deps.reporting
    const { name } = job.node.metadata
    const labels = gpuLabels(job.node)
    events.object(job.node, 'Normal', 'ScaleDown', 'nodes removed by cluster autoscaler')
    if (job.kind === 'empty')
      events.status('Normal', 'ScaleDownEmpty', `Scale-down: empty node ${name} removed`)
    else events.status('Normal', 'ScaleDown', `Scale-down: node ${name} removed with drain`)
    metrics.add('scaled_down_nodes_total', 1, { reason: job.reason, ...labels, dra_drivers: '' })
    if (labels.gpu_name !== '')
      metrics.add('scaled_down_gpu_nodes_total', 1, { reason: job.reason, ...labels })
    this.#end(job, undefined)
  }

  #announce(job: DeletionJob): void {
    const { events, logger } = this.#deps.reporting
    const { name } = job.node.metadata
    const utilization = renderUtilization(job.utilization)
    if (job.kind === 'empty')
      events.status('Normal', 'ScaleDownEmpty', `Scale-down: removing empty node "${name}"`)
    else {
      const pods = job.pods.map(nameOf).join(',')
      const message = `Scale-down: removing node ${name}, utilization: ${utilization}, pods to reschedule: ${pods}`
      events.status('Normal', 'ScaleDown', message)
    }
    logger.info('removing a node', {
      node: name,
      nodeGroup: job.groupId,
      kind: job.kind,
      utilization,
    })
  }

  #end(job: DeletionJob, failure: DeletionFailure | undefined): void {
    const result = this.#resultOf(job, failure)
    this.#deps.tracker.end(result)
    this.#countPending()
    this.#deps.ended(result)
  }

  #resultOf(job: DeletionJob, failure: DeletionFailure | undefined): DeletionResult {
    const base = { nodeName: job.node.metadata.name, groupId: job.groupId, atMs: this.#deps.clock.now() }
    return failure === undefined
      ? { ...base, kind: 'deleted', reason: job.reason }
      : { ...base, kind: 'failed', ...failure }
  }

  #countPending(): void {
    const { reporting, tracker } = this.#deps
    reporting.metrics.set('pending_node_deletions', tracker.count)
  }
}

/** A pod that must move but was unknown when the node was chosen, so that no room was sought for it. */
function newcomerOf({ toMove }: Drain, { kind, pods }: DeletionJob): string | undefined {
  const known = new Set(kind === 'empty' ? [] : pods.map(({ metadata }) => metadata.uid))
  const newcomer = toMove.find(({ metadata }) => !known.has(metadata.uid))
  return newcomer && `pod ${nameOf(newcomer)} was bound to it meanwhile`
}
