import { hrtime } from 'node:process'

/**
 * Everything that waits or reads the time takes a `Clock`, so that the same code runs on real and on virtual
 * time.
 */
export interface Clock {
  /** Unix milliseconds; may jump. */
  now(): number
  /** Milliseconds since an arbitrary start; never goes backwards. */
  monotonic(): number
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason as soon as `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Runs `callback` once after `ms` milliseconds. The returned function cancels it. */
  after(ms: number, callback: () => void): () => void
}

/** Monotonic milliseconds with the same origin in all threads of this process. */
export function processMonotonic(): number {
  return Number(hrtime.bigint()) / 1e6
}

let lastSecond = Number.NaN
let lastText = ''

/** RFC 3339 in whole seconds, as in `metav1.Time`. */
export function rfc3339(ms: number): string {
  // Cached: many timestamps fall into one second, and formatting is slow.
  const second = Math.floor(ms / 1000)
  if (second === lastSecond) return lastText
  const text = `${new Date(ms).toISOString().slice(0, 19)}Z`
  lastSecond = second
  lastText = text
  return text
}

/** RFC 3339 with microseconds, as in `metav1.MicroTime` (leases, events). */
export function rfc3339Micro(ms: number): string {
  const part = Math.floor(ms) - Math.floor(ms / 1000) * 1000
  return `${rfc3339(ms).slice(0, 19)}.${String(part).padStart(3, '0')}000Z`
}

/** The host's clock. Only composition roots and tests of the shell construct it. */
export class SystemClock implements Clock {
  now(): number {
    return Date.now()
  }

  monotonic(): number {
    return performance.now()
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal)
  }

  after(ms: number, callback: () => void): () => void {
    const timer = setTimeout(callback, Math.max(0, ms))
    return () => {
      clearTimeout(timer)
    }
  }
}

/** Implements `sleep` for every clock, on top of {@link Clock.after}. */
export function sleepOn(clock: Pick<Clock, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error)
      return
    }
    const onAbort = () => {
      cancel()
      reject(signal?.reason as Error)
    }
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
