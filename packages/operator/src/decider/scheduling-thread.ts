/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/** Entry of the thread that decides: hears problems, answers with solutions. Holds one decision at a time. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { examine, KnownPackings, type SchedulingControl, solve, TypeReader } from '@tenon/engine'
import { SystemClock } from '@tenon/runtime'
import { type Part, partsOf, PieceSize } from './parts.ts'
import { ProblemReader, type ToThread } from './problem-parts.ts'
import { solutionParts } from './solution-parts.ts'

/** What the thread is started with. */
export interface ThreadData {
  /** Takes the parts of each solution. */
  readonly replies: MessagePort
  /** Shared with the starting thread: other than zero while the decision under way should stop. */
  readonly stop: Int32Array
}

/** From the start of a decision; a plan that is not found by then is not waited for. */
const improvementMs = 3000

const { replies, stop } = workerData as ThreadData
const clock = new SystemClock()
const problems = new ProblemReader()
const types = new TypeReader()
const packings = new KnownPackings()
const size = new PieceSize()

/** What the thread says once all parts of an answer are there, or when there will be none. */
export type FromThread =
  | { readonly kind: 'answered' }
  | { readonly kind: 'failed'; readonly message: string; readonly stack: string }

// An error elsewhere ends the thread, which is what the other side hears then.
parentPort?.on('message', (message: ToThread) => {
  if (message.kind === 'solve')
    answer(message.deadlineMs, (control) => solutionParts(solve(problems.problem(), control), size))
  else if (message.kind === 'examine') {
    const { question, deadlineMs } = message
    answer(deadlineMs, (control) => partsOf({ answer: examine(problems.problem(), question, control) }, size))
  } else problems.hear(message)
})

/** A decision that throws, or whose answer cannot be sent, costs only itself. */
function answer(deadlineMs: number, partsFor: (control: SchedulingControl) => Iterable<Part>): void {
  try {
    tellParts(deadlineMs, partsFor)
    // Told last and elsewhere: all parts are there when this arrives.
    say({ kind: 'answered' })
  } catch (error) {
    const { message, stack = message } = error instanceof Error ? error : new Error(String(error))
    say({ kind: 'failed', message, stack })
  }
}

function say(message: FromThread): void {
  parentPort?.postMessage(message)
}

function tellParts(deadlineMs: number, partsFor: (control: SchedulingControl) => Iterable<Part>): void {
  const start = clock.monotonic()
  const shouldStop = () => Atomics.load(stop, 0) !== 0 || clock.monotonic() - start >= deadlineMs
  // Looking for a cheaper plan may take as long again as first fit, but pods wait meanwhile.
  const shouldImprove = () => clock.monotonic() - start < improvementMs
  for (const part of partsFor({ shouldStop, shouldImprove, types, packings })) {
    const before = clock.monotonic()
    replies.postMessage(part)
    size.took(clock.monotonic() - before)
  }
}
