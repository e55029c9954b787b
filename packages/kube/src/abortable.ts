/** Waits that end on abort, for operations that do not support it themselves. */
import type { Clock } from '@tenon/runtime'

/** Resolves with `work`, or rejects with the signal's reason as soon as it aborts. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => {
      reject(signal.reason as Error)
    }
    if (signal.aborted) {
      work.catch(ignored)
      onAbort()
      return
    }
    signal.addEventListener('abort', onAbort, { once: true })
    work
      .finally(() => {
        signal.removeEventListener('abort', onAbort)
      })
      .then(resolve, reject)
  })
}

/**
 * {@link untilAborted} for many waits with the same signal, but with one listener: for each event of a watch, adding
 * one would take longer than reading the event.
 */
export class AbortableWaits {
  readonly #signal: AbortSignal
  readonly #onAbort: () => void
  #giveUp: (reason: Error) => void = ignored

  constructor(signal: AbortSignal) {
    this.#signal = signal
    this.#onAbort = () => {
      this.#giveUp(signal.reason as Error)
    }
    signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Only one wait at a time. */
  until<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#giveUp = reject
      work.then(resolve, reject)
      if (this.#signal.aborted) this.#onAbort()
    })
  }

  /** Removes the listener; there must be no further wait. */
  end(): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
  }
}

/** Runs `work` with a signal that aborts with `signal`, or with the reason `late()` after `ms`. */
export async function withDeadline<T>(
  clock: Clock,
  options: { readonly ms: number; readonly late: () => Error; readonly signal?: AbortSignal | undefined },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const link = linkedAbort(options.signal)
  const cancel = clock.after(options.ms, () => {
    link.controller.abort(options.late())
  })
  try {
    return await untilAborted(work(link.controller.signal), link.controller.signal)
  } finally {
    cancel()
    link.unlink()
  }
}

/** An abort controller that also aborts with `parent`, until it is unlinked. */
export function linkedAbort(parent: AbortSignal | undefined): {
  readonly controller: AbortController
  readonly unlink: () => void
} {
  const controller = new AbortController()
  const follow = () => {
    controller.abort(parent?.reason)
  }
  if (parent?.aborted) follow()
  else parent?.addEventListener('abort', follow, { once: true })
  return {
    controller,
    unlink: () => {
      parent?.removeEventListener('abort', follow)
    },
  }
}

/** For promises whose failure is handled elsewhere. */
function ignored(): void {}
