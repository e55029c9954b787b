/** Maintains the status ConfigMap (cluster-autoscaler.md 7.1). */
import { type ConfigMap, kinds, type KubeObject } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { annotations } from '../names.ts'
import { goTime, statusDocument, StatusTransitions } from './status-document.ts'
import type { StatusReport } from './status-report.ts'

/** Where a loop reports its status. */
export interface StatusWriter {
  /** Only rejects with the signal's reason; other errors are logged. */
  write(report: StatusReport, signal: AbortSignal): Promise<void>
}

/** For `--write-status-configmap=false` and dry runs. */
export const noStatusWriter: StatusWriter = {
  async write() {},
}

export interface StatusConfigMapDependencies {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'update' | 'delete'>
  readonly clock: Clock
  readonly logger: Logger
  readonly namespace: string
  readonly name: string
}

/** Reads, then updates or creates, as there is no permission to patch it. */
export class StatusConfigMap implements StatusWriter {
  readonly #dependencies: StatusConfigMapDependencies
  readonly #transitions = new StatusTransitions()
  #uid: string | undefined
  #isRemoved = false
  #writing: Promise<unknown> = Promise.resolve()

  constructor(dependencies: StatusConfigMapDependencies) {
    this.#dependencies = dependencies
  }

  /** The object of events about the whole autoscaler. */
  get reference(): KubeObject {
    return {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { ...this.#key, ...(this.#uid !== undefined && { uid: this.#uid }) },
    }
  }

  async write(report: StatusReport, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#dependencies
    const nowMs = clock.now()
    const status = statusDocument(report, nowMs, this.#transitions)
    if (this.#isRemoved) return
    try {
      const writing = this.#store(status, goTime(nowMs), signal)
      this.#writing = writing
      await writing
    } catch (error) {
      if (signal.aborted) throw error
      logger.warn('status not written', { configMap: this.#key.name, error })
    }
  }

  /** Deletes it and stops writing; errors are logged. */
  async remove(signal: AbortSignal): Promise<void> {
    const { client, logger } = this.#dependencies
    this.#isRemoved = true
    // A write in progress could create it again.
    await this.#writing.catch(ignored)
    try {
      await client.delete(kinds.configMap, this.#key, { signal, lane: 'urgent' })
    } catch (error) {
      logger.warn('status not removed', { configMap: this.#key.name, error })
    }
  }

  async #store(status: string, lastUpdated: string, signal: AbortSignal): Promise<void> {
    const { client } = this.#dependencies
    const found = await client.get(kinds.configMap, this.#key, { signal })
    const wanted: ConfigMap = {
      ...found,
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        ...found?.metadata,
        ...this.#key,
        annotations: { ...found?.metadata.annotations, [annotations.lastUpdated]: lastUpdated },
      },
      data: { ...found?.data, status },
    }
    const stored =
      found === undefined
        ? await client.create(kinds.configMap, wanted, { signal })
        : await client.update(kinds.configMap, wanted, { signal })
    this.#uid = stored.metadata.uid
  }

  get #key(): { readonly namespace: string; readonly name: string } {
    const { namespace, name } = this.#dependencies
    return { namespace, name }
  }
}

/** The caller of the write has handled the error. */
function ignored(): void {}
