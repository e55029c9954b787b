/** Marks nodes as being deleted, and takes the marks back (cluster-autoscaler.md 6.6). */
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
  /** Values of the taints by node name: by them a deletion knows its own mark again. */
  | { readonly kind: 'marked'; readonly values: ReadonlyMap<string, string> }
  | { readonly kind: 'failed'; readonly message: string }

export class NodeMarker {
  readonly #deps: MarkerDependencies
  /** Names of nodes whose mark could not be taken back, with its value. */
  readonly #leftovers = new Map<string, string | undefined>()

  constructor(deps: MarkerDependencies) {
    this.#deps = deps
  }

  /** Marks all nodes of a batch or, when one cannot be marked, none. */
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
    // Also the one that failed: its write may have arrived.
    await inParallel(nodes, parallelWrites, (node) =>
      this.unmark(node.metadata.name, values.get(node.metadata.name), signal),
    )
    return { kind: 'failed', message }
  }

  /**
   * Takes a mark back, and the cordon that came with it. Tried again by {@link retryLeftovers} when it fails.
   * @param value of the taint; another one is of somebody else, and stays. Any is taken when it is not known.
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

  /** Tries again what failed before. @param isInProgress nodes that were chosen again since are left alone. */
  async retryLeftovers(isInProgress: (nodeName: string) => boolean, signal: AbortSignal): Promise<void> {
    for (const [nodeName, value] of this.#leftovers) {
      if (isInProgress(nodeName)) this.#leftovers.delete(nodeName)
      else await this.unmark(nodeName, value, signal)
    }
  }

  /** Answers the value of the taint. One that is there already is taken over, and nothing is written. */
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
