/** One thread that decides, as the thread that started it sees it. */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { DisruptionAnswer, DisruptionQuestion, Problem, Solution } from '@tenon/engine'
import { inSlices, type Slicing } from '@tenon/runtime'
import { Assembly, type Part, PieceSize } from './parts.ts'
import { problemMessages, SentTypes, type ToThread } from './problem-parts.ts'
import type { FromThread, ThreadData } from './thread-program.ts'
import { PodError } from './pod-watch.ts'
import { solutionFrom } from './solution-parts.ts'
import { ThreadState } from './thread-state.ts'

/** What bounds a decision of the thread. */
export interface Bounds {
  readonly signal: AbortSignal
  /** Milliseconds that are left. */
  readonly remainingMs: () => number
}

/** In the bundle the thread's program lies beside whatever file this has become part of. */
export const threadUrl: URL = new URL(
  `./scheduling-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'mjs'}`,
  import.meta.url,
)

/** A thread that decides now and then needs no room for young objects that a busy one would gain from. */
const resourceLimits = { maxYoungGenerationSizeMb: 16 }

/** The thread is well, but what it was asked for threw. */
class DecisionError extends PodError {
  /** @param failure with the stack where that happened. */
  constructor({ message, stack, pod = -1 }: Extract<FromThread, { kind: 'failed' }>) {
    const cause = new Error(message)
    cause.stack = stack
    super(`the scheduling thread failed: ${message}`, pod, { cause })
  }
}

/**
 * Starts its thread at once. The thread keeps the process alive only while it decides. A decision that throws is
 * rejected with a {@link DecisionError}; any other error ends the thread, and whatever it was doing.
 */
export class ThreadSession {
  readonly #slicing: Slicing
  readonly #worker: Worker
  readonly #replies: MessagePort
  readonly #state = new ThreadState()
  readonly #types = new SentTypes()
  readonly #size = new PieceSize()
  #failure: Error | undefined
  #waiting: PromiseWithResolvers<void> | undefined

  /**
   * @param program what the thread runs.
   * @param onFailure told when the thread ends, unless it was asked to.
   */
  constructor(slicing: Slicing, program: URL, onFailure: (error: Error) => void) {
    this.#slicing = slicing
    const { port1, port2 } = new MessageChannel()
    this.#replies = port1
    const data: ThreadData = { replies: port2, state: this.#state.memory }
    this.#worker = new Worker(program, {
      name: 'scheduling',
      workerData: data,
      transferList: [port2],
      resourceLimits,
    })
    const fail = (error: Error) => {
      if (this.#failure !== undefined) return
      this.#end(error)
      onFailure(error)
    }
    this.#worker.on('error', (cause: Error) => {
      fail(new PodError(`the scheduling thread failed: ${cause.message}`, this.#state.pod, { cause }))
    })
    this.#worker.on('exit', (code) => {
      fail(new PodError(`the scheduling thread ended with code ${code}`, this.#state.pod))
    })
    this.#worker.on('message', (message: FromThread) => {
      if (message.kind === 'answered') this.#waiting?.resolve()
      else this.#waiting?.reject(new DecisionError(message))
    })
    this.#worker.unref()
  }

  get isOver(): boolean {
    return this.#failure !== undefined
  }

  /** How the thread gets on. */
  get state(): Pick<ThreadState, 'isDeciding' | 'pod' | 'signs'> {
    return this.#state
  }

  /**
   * Has the thread solve the problem; one at a time.
   * @returns what was decided when the bounds were reached; undefined when they were before it began.
   * @throws DecisionError when it throws; Error when the thread ends meanwhile, or the problem cannot be sent: the
   * session is over then.
   */
  async solve(problem: Problem, bounds: Bounds): Promise<Solution | undefined> {
    const assembly = await this.#ask(problem, bounds, (deadlineMs) => ({ kind: 'solve', deadlineMs }))
    return assembly && solutionFrom(assembly)
  }

  /** The same for a question about removing nodes. */
  async examine(
    problem: Problem,
    question: DisruptionQuestion,
    bounds: Bounds,
  ): Promise<DisruptionAnswer | undefined> {
    const assembly = await this.#ask(problem, bounds, (deadlineMs) => ({
      kind: 'examine',
      question,
      deadlineMs,
    }))
    return (assembly?.record() as { readonly answer: DisruptionAnswer } | undefined)?.answer
  }

  async #ask(
    problem: Problem,
    { signal, remainingMs }: Bounds,
    request: (deadlineMs: number) => ToThread,
  ): Promise<Assembly | undefined> {
    const stop = () => {
      this.#state.shouldStop = true
    }
    this.#state.shouldStop = false
    signal.addEventListener('abort', stop, { once: true })
    this.#worker.ref()
    try {
      const isOver = () => signal.aborted || remainingMs() <= 0 || this.isOver
      await inSlices(this.#sending(problem), this.#slicing, isOver)
      if (this.#failure !== undefined) throw this.#failure
      if (isOver()) return undefined
      this.#waiting = Promise.withResolvers()
      this.#post(request(remainingMs()))
      await this.#waiting.promise
      const assembly = await inSlices(this.#receiving(), this.#slicing)
      await this.#slicing.turns.next()
      if (this.#failure !== undefined) throw this.#failure
      return assembly
    } catch (error) {
      // Of an answer that failed only what was told of it has to go; else nobody knows what the thread has heard.
      if (error instanceof DecisionError) for (const _ of this.#receiving()) continue
      else await this.end(error as Error)
      throw error
    } finally {
      this.#waiting = undefined
      this.#worker.unref()
      signal.removeEventListener('abort', stop)
    }
  }

  /** Ends the thread; what it is doing is rejected with `error`. */
  async end(error: Error): Promise<void> {
    this.#end(error)
    await this.#worker.terminate()
  }

  #end(error: Error): void {
    this.#failure ??= error
    this.#waiting?.reject(this.#failure)
    this.#replies.close()
  }

  *#sending(problem: Problem): Generator<undefined, void, undefined> {
    const { clock } = this.#slicing
    for (const message of problemMessages(problem, this.#types, this.#size)) {
      const start = clock.monotonic()
      this.#post(message)
      this.#size.took(clock.monotonic() - start)
      yield
    }
  }

  /** Takes the parts one by one: left to the event loop, they would arrive in one turn. */
  *#receiving(): Generator<undefined, Assembly, undefined> {
    const assembly = new Assembly()
    for (;;) {
      const received = receiveMessageOnPort(this.#replies)
      if (received === undefined) break
      assembly.add(received.message as Part)
      yield
    }
    return assembly
  }

  #post(message: ToThread): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.#worker.postMessage(message)
  }
}
