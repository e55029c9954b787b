/** Decides in a thread, so that the event loop is not blocked. */
import { cpuUsage, threadCpuUsage } from 'node:process'
import {
  type DisruptionAnswer,
  type DisruptionQuestion,
  type DisruptionResult,
  knownSpecs,
  type Problem,
  problemInSteps,
  resultInSteps,
  type SchedulingInput,
  type SchedulingResult,
  type Solution,
} from '@tenon/engine'
import { disruptionResult } from '@tenon/engine/consolidation'
import { type Clock, inSlices, type Logger, type Slicing, type Turns } from '@tenon/runtime'
import type { DecisionOptions, SchedulingDecider } from './decider.ts'
import { InlineScheduler, nothingDecided } from './inline-scheduler.ts'
import { sliceMs } from '../slice.ts'
import { PodError } from './pod-watch.ts'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import {
  Reassembly,
  type Part,
  PieceSize,
  problemMessages,
  SentTypes,
  solutionFrom,
  type ToThread,
} from './thread-messages.ts'
import type { FromThread, ThreadData } from './thread-program.ts'
import { ThreadState } from './thread-state.ts'

/** A thread that has not answered this long after it should have stopped is given up; half its time if that is less. */
const mostGraceMs = 30_000
const leastGraceMs = 2000

/** A thread that gives no sign of life for this part of its time is given up: it asks every few ms whether to stop. */
const silentShare = 0.1
const leastSilentMs = 2000
/** Looks in that time. */
const silentLooks = 10

/** A request to the thread, once the problem is built. */
type Ask<T> = (session: ThreadSession, problem: Problem, bounds: Bounds) => Promise<T | undefined>

export interface ThreadDeciderOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  readonly turns: Turns
  readonly logger: Logger
  /** What the thread runs. */
  readonly program?: URL
  /** Milliseconds of CPU that all threads but the calling one have used. */
  readonly otherCpuMs?: () => number
  /** CPU time in which a thread may give no sign of life; default: a share of its time. */
  readonly silentMs?: number
}

function otherCpuMs(): number {
  const all = cpuUsage()
  const own = threadCpuUsage()
  return (all.user + all.system - own.user - own.system) / 1000
}

/** After so many deaths in a row without a decision, the cause is not the problem. */
const mostDeaths = 3

/**
 * Starts its thread with the first decision. If the thread fails, the decision is rejected, and the next one gets a new
 * thread. If threads die on every problem, the calling thread decides.
 */
export class ThreadDecider implements SchedulingDecider {
  readonly #options: ThreadDeciderOptions
  readonly #slicing: Slicing
  readonly #closing = new AbortController()
  readonly #specs = knownSpecs()
  #session: ThreadSession | undefined
  #failures = 0
  /** Threads that died in a row. */
  #deaths = 0
  /** Questions under way, or waiting for their turn. */
  readonly #examinations = new Set<AbortController>()
  /** Settles with the previous decision. */
  #previous: Promise<unknown> = Promise.resolve()

  constructor(options: ThreadDeciderOptions) {
    this.#options = options
    this.#slicing = { clock: options.clock, turns: options.turns, sliceMs }
  }

  decide(input: SchedulingInput, { deadlineMs, signal }: DecisionOptions): Promise<SchedulingResult> {
    // Pending pods go first.
    for (const examination of this.#examinations) examination.abort()
    return this.#inTurn(input, { deadlineMs, signal }, async (session, problem, bounds) => {
      const solution = await session.solve(problem, bounds)
      this.#deaths = 0
      if (solution === undefined) return undefined
      await this.#slicing.turns.next()
      return inSlices(resultInSteps(input, problem, solution), this.#slicing)
    })
      .catch((error: unknown) => {
        if (signal.aborted || this.#closing.signal.aborted || this.#deaths < mostDeaths) throw error
        this.#options.logger.error('scheduling threads keep failing: deciding without one', { error })
        // The next decision tries one thread again.
        this.#deaths = mostDeaths - 1
        return new InlineScheduler(this.#options.clock).decide(input, { deadlineMs, signal })
      })
      .then((result) => result ?? nothingDecided(input))
  }

  examine(
    input: SchedulingInput,
    question: DisruptionQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined> {
    const interruption = new AbortController()
    const signal = AbortSignal.any([options.signal, interruption.signal])
    const examination = this.#inTurn(input, { ...options, signal }, async (session, problem, bounds) => {
      const answer = await session.examine(problem, question, bounds)
      return answer === undefined || interruption.signal.aborted
        ? undefined
        : disruptionResult(input, question, answer)
    })
    this.#examinations.add(interruption)
    return examination.finally(() => this.#examinations.delete(interruption))
  }

  async close(): Promise<void> {
    const error = new Error('the scheduling thread was closed')
    this.#closing.abort(error)
    await this.#session?.end(error)
  }

  /** Runs one request at a time; undefined if the bounds were reached before it began. */
  #inTurn<T>(
    input: SchedulingInput,
    { deadlineMs, signal }: DecisionOptions,
    ask: Ask<T>,
  ): Promise<T | undefined> {
    const { clock } = this.#options
    const end = clock.monotonic() + deadlineMs
    const bounds = { signal, remainingMs: () => end - clock.monotonic() }
    const turn = this.#previous.then(() => this.#ask(input, bounds, ask))
    this.#previous = turn.catch(() => undefined)
    return turn
  }

  async #ask<T>(input: SchedulingInput, bounds: Bounds, ask: Ask<T>): Promise<T | undefined> {
    const { signal, remainingMs } = bounds
    const closing = this.#closing.signal
    closing.throwIfAborted()
    const isOver = () => signal.aborted || closing.aborted || remainingMs() <= 0
    if (isOver()) return undefined
    // It starts while the problem is built.
    const session = this.#running()
    // Questions about removals are about the same pods time and again.
    const known = input.policy.simulation === 'disruption' ? this.#specs : undefined
    const problem = await inSlices(problemInSteps(input, known), this.#slicing, isOver)
    closing.throwIfAborted()
    if (problem === undefined) return undefined
    const unwatch = this.#watch(session, remainingMs(), signal)
    try {
      return await ask(session, problem, bounds)
    } finally {
      unwatch()
    }
  }

  #running(): ThreadSession {
    if (this.#session === undefined || this.#session.isOver)
      this.#session = new ThreadSession(this.#slicing, this.#options.program ?? threadUrl, (error) => {
        this.#failures++
        if (!isOutOfMemory(error)) this.#deaths++
        this.#options.logger.error('scheduling thread failed, the next decision starts another', {
          error,
          failures: this.#failures,
        })
      })
    return this.#session
  }

  /** Ends the thread if it hangs or does not stop in time. */
  #watch(session: ThreadSession, remainingMs: number, signal: AbortSignal): () => void {
    const { clock, logger } = this.#options
    const graceMs = Math.min(mostGraceMs, Math.max(leastGraceMs, remainingMs / 2))
    const giveUp = (what: string) => {
      const error = new PodError(`${what}, so its thread was ended`, session.state.pod)
      logger.error('ended a scheduling thread that did not stop', { error })
      void session.end(error)
    }
    const isLate = () => giveUp(`the decision did not stop within ${graceMs / 1000} s after it was asked to`)
    const cancels = [
      clock.after(remainingMs + graceMs, isLate),
      this.#whileSilent(session, remainingMs, giveUp),
    ]
    const onAbort = () => {
      cancels.push(clock.after(graceMs, isLate))
    }
    signal.addEventListener('abort', onAbort, { once: true })
    return () => {
      signal.removeEventListener('abort', onAbort)
      for (const cancel of cancels) cancel()
    }
  }

  /** Silence is measured in CPU time: on a busy host a thread may wait for minutes before it runs at all. */
  #whileSilent(session: ThreadSession, remainingMs: number, giveUp: (what: string) => void): () => void {
    const { clock, otherCpuMs: cpuMs = otherCpuMs } = this.#options
    const silentMs = this.#options.silentMs ?? Math.max(leastSilentMs, remainingMs * silentShare)
    const { state } = session
    let { signs } = state
    let since = cpuMs()
    const look = () => {
      if (!state.isDeciding || state.signs !== signs) {
        signs = state.signs
        since = cpuMs()
      }
      if (cpuMs() - since < silentMs) cancel = clock.after(silentMs / silentLooks, look)
      else giveUp(`the decision gave no sign of life for ${silentMs / 1000} s`)
    }
    let cancel = clock.after(silentMs / silentLooks, look)
    return () => {
      cancel()
    }
  }
}

/** A problem that exceeds the memory of a thread would exceed that of the process, too. */
function isOutOfMemory({ cause }: Error): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ERR_WORKER_OUT_OF_MEMORY'
}

/** What bounds a decision of the thread. */
interface Bounds {
  readonly signal: AbortSignal
  /** Milliseconds that are left. */
  readonly remainingMs: () => number
}

/** In the bundle the program of the thread lies beside the file that this code is in. */
const threadUrl: URL = new URL(
  `./scheduling-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'mjs'}`,
  import.meta.url,
)

/** The thread is mostly idle, and does without the memory for young objects that a busy one would gain from. */
const resourceLimits = { maxYoungGenerationSizeMb: 16 }

/** The decision threw, but the thread lives. */
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
class ThreadSession {
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
   * @param onFailure called when the thread ends unasked.
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

  /** Progress of the thread. */
  get state(): Pick<ThreadState, 'isDeciding' | 'pod' | 'signs'> {
    return this.#state
  }

  /**
   * Lets the thread solve the problem; one at a time.
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
  ): Promise<Reassembly | undefined> {
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
      // Of an answer that failed only its messages are dropped; otherwise it is unknown what the thread has received.
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
  *#receiving(): Generator<undefined, Reassembly, undefined> {
    const assembly = new Reassembly()
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
