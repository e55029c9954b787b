/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/** Answers of the page from threads of their own: a copy of a large cluster takes seconds to read and to study. */
import { Worker } from 'node:worker_threads'
import { type AnswerPort, type GivenAnswer, nothingToReplay, type Question } from '@tenon/console'
import type { Clock } from '@tenon/runtime'
import type { AnswerThreadData, FromAnswerThread, ToAnswerThread } from './answer-thread.ts'

/** In the bundle the thread's program lies beside whatever file this has become part of. */
const threadUrl = new URL(
  `./answer-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'mjs'}`,
  import.meta.url,
)

/** A thread that nobody asks for so long is ended, with the copy that it holds. */
const idleMs = 60_000
/** So long a thread may take to notice that nobody waits for its answer. */
const graceMs = 1000

/** One answer at a time, except the replay of a recording, which may take minutes and is made once. */
export class ThreadedAnswers implements AnswerPort {
  readonly #copies: AnswerThread
  readonly #replays: AnswerThread
  readonly #hasRecording: boolean
  readonly #ended = new AbortController()
  #replayed: Promise<GivenAnswer> | undefined

  constructor(data: AnswerThreadData, clock: Clock) {
    this.#copies = new AnswerThread(data, clock)
    this.#replays = new AnswerThread(data, clock)
    this.#hasRecording = data.source.trace !== undefined
  }

  async answer(question: Question, signal: AbortSignal): Promise<GivenAnswer> {
    if (question.path === '/api/replay' && !this.#hasRecording) return nothingToReplay
    if (question.path !== '/api/replay') return await this.#copies.answer(question, signal)
    const replayed = (this.#replayed ??= this.#replay(question))
    return await Promise.race([replayed, aborted(signal)])
  }

  /** Whoever has asked first may be gone before it is done. */
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

/** Starts its thread with the first question, and again after one that has failed. */
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
    // Whoever waits for an answer is told; between questions there is nobody to tell.
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

/** Rejects once the signal aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = () => {
      reject(signal.reason as Error)
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
