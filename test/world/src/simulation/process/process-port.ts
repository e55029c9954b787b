import { DocumentBody, DocumentStream, type HttpResponse, type Transport } from '@tenon/runtime'
import type { ProcessClock } from './process-clock.ts'

/** A crashed process gets no responses. */
const never = new Promise<never>(() => undefined)

/** When a process crashes, relative to its next write. */
export type CrashPoint = 'beforeWrite' | 'afterWrite'

/** All connections of one process. After its crash nothing is sent or received. */
export class ProcessPort {
  readonly #clock: ProcessClock
  readonly #gone = new AbortController()
  #crashAt: CrashPoint | undefined
  /** Called once, at the crash. */
  onDeath: () => void = () => undefined

  constructor(clock: ProcessClock) {
    this.#clock = clock
  }

  get isDead(): boolean {
    return this.#gone.signal.aborted
  }

  /** Crashes the process now: its connections break, its timers stop. */
  kill(): void {
    if (this.isDead) return
    this.#clock.kill()
    this.#gone.abort(new Error('the process has died'))
    this.onDeath()
  }

  /** Crashes the process at its next write. */
  crashAt(point: CrashPoint): void {
    this.#crashAt = point
  }

  guard(inner: Transport): Transport {
    return {
      send: async (request, signal) => {
        if (this.isDead) return await never
        const isLast = this.#crashAt !== undefined && request.method !== 'GET' && !isLease(request.path)
        if (isLast && this.#crashAt === 'beforeWrite') this.kill()
        if (this.isDead) return await never
        try {
          const response = await inner.send(request, this.#endingAtDeath(request.path, signal))
          if (isLast) this.kill()
          return await this.#delivered(this.#guarded(response))
        } catch (error) {
          if (isLast) this.kill()
          return await this.#delivered(Promise.reject(error as Error))
        }
      },
    }
  }

  /** Watches of a crashed process would stay open for ever; short requests end by themselves. */
  #endingAtDeath(path: string, signal: AbortSignal | undefined): AbortSignal | undefined {
    if (!path.includes('watch=true')) return signal
    return signal === undefined ? this.#gone.signal : AbortSignal.any([signal, this.#gone.signal])
  }

  #guarded(response: HttpResponse): HttpResponse {
    const { body } = response
    // The response is complete, so its body is too.
    if (body instanceof DocumentBody) return response
    if (body instanceof DocumentStream)
      return { ...response, body: body.through((documents) => this.#chunks(documents)) }
    return { ...response, body: this.#chunks(body) }
  }

  async *#chunks<C>(body: AsyncIterable<C>): AsyncGenerator<C> {
    try {
      for await (const chunk of body) yield await this.#delivered(chunk)
    } finally {
      if (this.isDead) await never
    }
  }

  /** Delivers a value to the process when it runs. */
  async #delivered<T>(value: T | Promise<T>): Promise<T> {
    const settled = Promise.resolve(value)
    settled.catch(() => undefined)
    if (this.isDead) return await never
    if (this.#clock.isPaused) await this.#clock.resumed()
    if (this.isDead) return await never
    return await settled
  }
}

const isLease = (path: string): boolean => path.includes('/leases/')
