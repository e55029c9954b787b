/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/** A leader elector whose lease is held by a worker thread with its own connection. */
import { Worker } from 'node:worker_threads'
import type { LeaderElector } from '@tenon/kube'
import { type Logger, processMonotonic } from '@tenon/runtime'
import type { FromLeaseThread, LeaseThreadData, ToLeaseThread } from './lease-thread.ts'

/** In the bundle, the thread's file is next to whichever file contains this code. */
const threadUrl = new URL(`./lease-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'mjs'}`, import.meta.url)

/** Callbacks of leader election. */
export interface LeadershipHooks {
  readonly onStarted: () => void
  readonly onStopped: () => void
}

export interface ThreadedElectorOptions extends LeadershipHooks {
  readonly data: Omit<LeaseThreadData, 'until'>
  /** Also gets the log lines of the thread. */
  readonly logger: Logger
}

export class ThreadedElector implements LeaderElector {
  readonly #options: ThreadedElectorOptions
  /** Shared memory that only the thread writes: a blocked main thread must learn of renewals without messages. */
  readonly #until = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT))
  readonly #ended = Promise.withResolvers<void>()
  #worker: Worker | undefined
  #isStopped = false

  constructor(options: ThreadedElectorOptions) {
    this.#options = options
  }

  get isLeader(): boolean {
    return !this.#isStopped && processMonotonic() < (this.#until[0] ?? 0)
  }

  start(): void {
    const { data, logger } = this.#options
    const workerData: LeaseThreadData = { ...data, until: this.#until }
    this.#worker = new Worker(threadUrl, { name: 'lease', workerData })
    this.#worker.on('message', (message: FromLeaseThread) => {
      this.#hear(message)
    })
    this.#worker.on('error', (error) => {
      logger.error('the thread that holds the lease has failed', { error })
    })
    this.#worker.on('exit', () => {
      this.#stopped()
      this.#ended.resolve()
    })
  }

  async stop(): Promise<void> {
    if (this.#worker === undefined) return
    const end: ToLeaseThread = 'end'
    this.#worker.postMessage(end)
    await this.#ended.promise
    await this.#worker.terminate()
  }

  #hear(message: FromLeaseThread): void {
    const { onStarted, logger } = this.#options
    switch (message.kind) {
      case 'started':
        onStarted()
        return
      case 'stopped':
        this.#stopped()
        return
      case 'ended':
        this.#ended.resolve()
        return
      case 'logged':
        logger[message.level](message.message, message.fields)
    }
  }

  #stopped(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#options.onStopped()
  }
}
