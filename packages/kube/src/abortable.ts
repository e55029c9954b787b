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
 * {@link untilAborted} for one wait after the other with the same signal, which is listened to once: for each
 * event of a watch, that would take longer than to read it.
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

  /** One at a time. */
  until<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#giveUp = reject
      work.then(resolve, reject)
      if (this.#signal.aborted) this.#onAbort()
    })
  }

  /** There will be no further wait. */
  end(): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
  }
}

/** Runs `work` with a signal that aborts with `signal`, or with `late()` after `ms`. */
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

/** An abort controller that follows `parent` until it is unlinked. */
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

/** For promises whose failure is reported elsewhere. */
function ignored(): void {}
