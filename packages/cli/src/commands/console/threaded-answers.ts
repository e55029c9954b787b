/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/**
 * Computes answers of the page in worker threads, as reading and studying a snapshot of a large cluster takes
 * seconds.
 */
import { Worker } from 'node:worker_threads'
import { type AnswerPort, type GivenAnswer, nothingToReplay, type Question } from '@tenon/console'
import type { Clock } from '@tenon/runtime'
import type { AnswerThreadData, FromAnswerThread, ToAnswerThread } from './answer-thread.ts'

/** In the bundle, the thread's file is next to whichever file contains this code. */
const threadUrl = new URL(
  `./answer-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'mjs'}`,
  import.meta.url,
)

/** An idle thread is terminated after this time, to free its snapshot. */
const idleMs = 60_000
/** How long a thread may take to notice that its question was cancelled. */
const graceMs = 1000

/**
 * Answers one question at a time. The replay of a recording, which may take minutes, has its own thread and
 * runs once.
 */
export class ThreadedAnswers implements AnswerPort {
  readonly mayReplay: boolean
  readonly #copies: AnswerThread
  readonly #replays: AnswerThread
  readonly #ended = new AbortController()
  #replayed: Promise<GivenAnswer> | undefined

  constructor(data: AnswerThreadData, clock: Clock) {
    this.#copies = new AnswerThread(data, clock)
    this.#replays = new AnswerThread(data, clock)
    this.mayReplay = data.source.trace !== undefined
  }

  async answer(question: Question, signal: AbortSignal): Promise<GivenAnswer> {
    if (question.path === '/api/replay' && !this.mayReplay) return nothingToReplay
    if (question.path !== '/api/replay') return await this.#copies.answer(question, signal)
    const replayed = (this.#replayed ??= this.#replay(question))
    return await Promise.race([replayed, aborted(signal)])
  }

  /** Not bound to the signal of the first client, which may disconnect before the replay is done. */
  async #replay(question: Question): Promise<GivenAnswer> {
    try {
      const answer = await this.#replays.answer(question, this.#ended.signal)
      if (answer.status !== 200) this.#replayed = undefined
      return answer
    } catch (error) {
      this.#replayed = undefined
      throw error
    }
  }

  async close(): Promise<void> {
    this.#ended.abort(new Error('the console ends'))
    await Promise.all([this.#copies.close(), this.#replays.close()])
  }
}

/** Starts its thread with the first question, and again after a failure. */
class AnswerThread {
  readonly #data: AnswerThreadData
  readonly #clock: Clock
  #worker: Worker | undefined
  #last: Promise<unknown> = Promise.resolve()
  #keepOn: () => void = () => undefined

  constructor(data: AnswerThreadData, clock: Clock) {
    this.#data = data
    this.#clock = clock
  }

  answer(question: Question, signal: AbortSignal): Promise<GivenAnswer> {
    const work = this.#last.then(() => this.#ask(question, signal))
    this.#last = work.catch(() => undefined)
    return work
  }

  async close(): Promise<void> {
    this.#keepOn()
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }

  #started(): Worker {
    const worker = new Worker(threadUrl, { name: 'answers', workerData: this.#data })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
    })
    // A failure rejects the current question; between questions there is none.
    worker.on('error', () => undefined)
    return worker
  }

  async #ask(question: Question, signal: AbortSignal): Promise<GivenAnswer> {
    signal.throwIfAborted()
    this.#keepOn()
    const worker = (this.#worker ??= this.#started())
    const heard = Promise.withResolvers<GivenAnswer>()
    const ended = (error: Error) => {
      heard.reject(new Error(`the thread that answers has ended: ${error.message}`, { cause: error }))
    }
    const exited = (code: number) => {
      ended(new Error(`exit code ${code}`))
    }
    const answered = (message: FromAnswerThread) => {
      if (message.kind === 'answered') heard.resolve(message.answer)
      else heard.reject(new Error(message.message))
    }
    let giveUp: () => void = () => undefined
    const forget = () => {
      worker.postMessage({ kind: 'forget' } satisfies ToAnswerThread)
      giveUp = this.#clock.after(graceMs, () => void worker.terminate())
    }
    worker.on('error', ended).on('exit', exited).on('message', answered)
    signal.addEventListener('abort', forget, { once: true })
    try {
      worker.postMessage({ kind: 'ask', question } satisfies ToAnswerThread)
      return await heard.promise
    } finally {
      giveUp()
      signal.removeEventListener('abort', forget)
      worker.off('error', ended).off('exit', exited).off('message', answered)
      this.#keepOn = this.#clock.after(idleMs, () => void this.close())
    }
  }
}

/** Rejects when the signal aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = () => {
      reject(signal.reason as Error)
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
