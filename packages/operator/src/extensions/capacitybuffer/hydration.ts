/** `capacitybuffer.hydration`: restores the room of buffers before the first decision (buffers-and-dra.md 2.5). */
import { type CapacityBuffer, isConditionTrue } from '@tenon/api'
import { done, type ReconcileResult } from '@tenon/kube'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import type { BufferCaches } from '../../state/caches.ts'
import type { SingletonSpec } from '../../controller.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { type BufferTemplates, sourceOf } from './buffer-templates.ts'
import { readyType } from './report.ts'

interface Dependencies {
  /** Undefined without the feature gate. */
  readonly buffers: BufferCaches | undefined
  readonly state: Pick<ClusterState, 'buffers'>
  readonly templates: BufferTemplates | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/** Buffers that cannot be read delay decisions no longer than this. */
const unknownMs = 60_000
const retryMs = 1000

export class BufferHydration implements SingletonSpec {
  readonly name = 'capacitybuffer.hydration'
  readonly #deps: Dependencies
  readonly #openedMs: number
  /** One read serves all callers. */
  #reading: Promise<void> | undefined

  constructor(deps: Dependencies) {
    this.#deps = deps
    this.#openedMs = deps.clock.monotonic()
    if (deps.buffers === undefined) deps.state.buffers.known()
  }

  /** Requests a pass once the buffers are known. */
  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { buffers } = this.#deps.state
    await this.settle(signal)
    if (!buffers.isKnown) return { kind: 'after', delayMs: retryMs }
    if (buffers.isUndecided) buffers.ask('hydrated')
    return done
  }

  /** Resolves when all buffers that can be read now are known; the rest is retried by the next call. */
  async settle(signal: AbortSignal): Promise<void> {
    const { state } = this.#deps
    if (state.buffers.isKnown) return
    this.#reading ??= this.#read(signal).finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { buffers, clock, state } = this.#deps
    if (buffers === undefined) return
    const { capacityBuffers, podTemplates } = buffers
    const isRead = capacityBuffers.isSynced && podTemplates.isSynced
    const isLate = clock.monotonic() - this.#openedMs >= unknownMs
    // If the kind is not served, or may not be read, there are no buffers.
    if (!isRead && !isLate && !capacityBuffers.isRefused) return
    const outcomes = await Promise.all(
      capacityBuffers.list().map(async (buffer) => await this.#hydrate(buffer, signal)),
    )
    if (outcomes.every(Boolean)) state.buffers.known()
  }

  /** @returns whether the room of the buffer is known. */
  async #hydrate(buffer: CapacityBuffer, signal: AbortSignal): Promise<boolean> {
    const { clock, logger, state, templates } = this.#deps
    const { name, namespace = '' } = buffer.metadata
    const { replicas = 0 } = buffer.status ?? {}
    // The controller may have resolved it meanwhile.
    if (templates === undefined || replicas <= 0 || state.buffers.of(`${namespace}/${name}`).length > 0)
      return true
    if (!isConditionTrue(buffer, readyType)) return true
    const resolution = await templates.resolve(buffer, signal)
    if (resolution.kind === 'resolved') {
      if (resolution.schedule?.isOn === false) return true
      const { template } = resolution
      state.buffers.put(sourceOf(buffer, { replicas, template }, rfc3339(clock.now())))
      return true
    }
    logger.debug('what a capacity buffer is for could not be read', {
      CapacityBuffer: { name, namespace },
      because: resolution.message,
    })
    return resolution.error === undefined
  }
}
