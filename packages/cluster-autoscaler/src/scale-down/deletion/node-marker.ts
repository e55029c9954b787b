/** Adds and removes deletion taints (cluster-autoscaler.md 6.6). */
import type { Node } from '@tenon/api'
import { type Clock, type Logger, messageOf } from '@tenon/runtime'
import type { ClusterWriter, EventSink } from '../../model.ts'
import { hardTaintOf, taintValue, withHardTaint, withoutHardTaint } from '../nodes/taints.ts'
import { inParallel } from './parallel.ts'

const parallelWrites = 5

export interface MarkerDependencies {
  readonly writer: ClusterWriter
  readonly events: EventSink
  readonly clock: Clock
  readonly logger: Logger
  /** `--cordon-node-before-terminating`. */
  readonly cordons: boolean
}

export type Marking =
  /** Taint values by node name, by which a deletion recognizes its own taint. */
  | { readonly kind: 'marked'; readonly values: ReadonlyMap<string, string> }
  | { readonly kind: 'failed'; readonly message: string }

export class NodeMarker {
  readonly #deps: MarkerDependencies
  /** Names of nodes whose taint could not be removed, with its value. */
  readonly #leftovers = new Map<string, string | undefined>()

  constructor(deps: MarkerDependencies) {
    this.#deps = deps
  }

  /** Taints all nodes of a batch, or none if one fails. */
  async markAll(nodes: readonly Node[], signal: AbortSignal): Promise<Marking> {
    const values = new Map<string, string>()
    const failures: string[] = []
    await inParallel(nodes, parallelWrites, async (node) => {
      try {
        values.set(node.metadata.name, await this.#mark(node, signal))
      } catch (error) {
        if (signal.aborted) throw error
        const reason = messageOf(error)
        failures.push(`could not mark node ${node.metadata.name} for deletion: ${reason}`)
        const message = `failed to mark the node as toBeDeleted/unschedulable: ${reason}`
        this.#deps.events.object(node, 'Warning', 'ScaleDownFailed', message)
      }
    })
    const [message] = failures
    if (message === undefined) return { kind: 'marked', values }
    // Also the failed one, as its write may have succeeded.
    await inParallel(nodes, parallelWrites, (node) =>
      this.unmark(node.metadata.name, values.get(node.metadata.name), signal),
    )
    return { kind: 'failed', message }
  }

  /**
   * Removes a taint and its cordon. If that fails, {@link retryLeftovers} retries it.
   * @param value of the taint; a taint with another value stays. Undefined = any value.
   */
  async unmark(nodeName: string, value: string | undefined, signal: AbortSignal): Promise<void> {
    try {
      await this.#unmark(nodeName, value, signal)
      this.#leftovers.delete(nodeName)
    } catch (error) {
      if (signal.aborted) throw error
      this.#leftovers.set(nodeName, value)
      this.#deps.logger.error(
        'could not take the deletion mark of a node back; it is tried again in the next loop',
        {
          node: nodeName,
          error,
        },
      )
    }
  }

  /**
   * Retries earlier failures.
   * @param isInProgress skips nodes that were chosen again.
   */
  async retryLeftovers(isInProgress: (nodeName: string) => boolean, signal: AbortSignal): Promise<void> {
    for (const [nodeName, value] of this.#leftovers) {
      if (isInProgress(nodeName)) this.#leftovers.delete(nodeName)
      else await this.unmark(nodeName, value, signal)
    }
  }

  /** Returns the value of the taint. An existing taint is kept without a write. */
  async #mark(node: Node, signal: AbortSignal): Promise<string> {
    const { writer, clock, events, cordons } = this.#deps
    const { name, uid } = node.metadata
    const value = taintValue(clock.now())
    const written = await writer.updateNode(
      name,
      (newest) => (newest.metadata.uid === uid ? withHardTaint(newest, value, cordons) : undefined),
      signal,
    )
    if (written === undefined || written.metadata.uid !== uid) throw new Error('the node is gone')
    const taint = hardTaintOf(written)
    if (taint === undefined) throw new Error('the taint was not written')
    events.object(node, 'Normal', 'ScaleDown', 'marked the node as toBeDeleted/unschedulable')
    return taint.value ?? ''
  }

  async #unmark(nodeName: string, value: string | undefined, signal: AbortSignal): Promise<void> {
    const { writer, cordons } = this.#deps
    const isOurs = (node: Node) => value === undefined || (hardTaintOf(node)?.value ?? '') === value
    await writer.updateNode(
      nodeName,
      (newest) => (isOurs(newest) ? withoutHardTaint(newest, cordons) : undefined),
      signal,
    )
  }
}
