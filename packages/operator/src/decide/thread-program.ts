/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/** Program of the deciding thread: receives problems, and sends solutions, one at a time. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { PackingCache, type SchedulingControl, type solve, TypeReader } from '@tenon/engine'
import type { examine } from '@tenon/engine/consolidation'
import { SystemClock } from '@tenon/runtime'
import {
  type Part,
  partsOf,
  PieceSize,
  ProblemReader,
  solutionParts,
  type ToThread,
} from './thread-messages.ts'
import { PodError, PodWatch } from './pod-watch.ts'
import { ThreadState } from './thread-state.ts'

/** Worker data of the thread. */
export interface ThreadData {
  /** Takes the parts of each solution. */
  readonly replies: MessagePort
  readonly state: Int32Array
}

/** From the start of a decision: no cheaper plan is searched for after this time. */
const improvementMs = 3000

/** Sent once all parts of an answer were sent, or if there will be none. */
export type FromThread =
  | { readonly kind: 'answered' }
  | {
      readonly kind: 'failed'
      readonly message: string
      readonly stack: string
      /** Index of the pod that the decision was about. */
      readonly pod: number | undefined
    }

/** @param engine what decides. */
export function decideInThread(engine: {
  readonly solve: typeof solve
  readonly examine: typeof examine
}): void {
  const { replies, state: memory } = workerData as ThreadData
  const state = new ThreadState(memory)
  const clock = new SystemClock()
  const problems = new ProblemReader()
  const types = new TypeReader()
  const packings = new PackingCache()
  const size = new PieceSize()
  state.about()

  // An error elsewhere ends the thread, and the other side sees that.
  parentPort?.on('message', (message: ToThread) => {
    state.sign()
    if (message.kind === 'solve')
      answer(message.deadlineMs, (control) => solutionParts(engine.solve(problems.problem(), control), size))
    else if (message.kind === 'examine') {
      const { question, deadlineMs } = message
      answer(deadlineMs, (control) =>
        partsOf({ answer: engine.examine(problems.problem(), question, control) }, size),
      )
    } else problems.hear(message)
  })

  /** A decision that throws, or whose answer cannot be sent, costs only itself. */
  function answer(deadlineMs: number, partsFor: (control: SchedulingControl) => Iterable<Part>): void {
    const watch = new PodWatch({ clock, deadlineMs, isAborted: () => state.shouldStop, onPod: state.about })
    state.about(-1)
    try {
      sendParts(watch, partsFor)
      // Sent last: all parts have arrived when this does.
      say({ kind: 'answered' })
    } catch (thrown) {
      const error = watch.asPodError(thrown)
      const { message, stack = message } = thrown instanceof Error ? thrown : new Error(String(thrown))
      say({ kind: 'failed', message, stack, pod: error instanceof PodError ? error.pod : undefined })
    } finally {
      state.about()
    }
  }

  function sendParts(watch: PodWatch, partsFor: (control: SchedulingControl) => Iterable<Part>): void {
    const start = clock.monotonic()
    const shouldStop = () => {
      state.sign()
      return watch.shouldStop()
    }
    // Searching for a cheaper plan may take as long again as first fit, but pods wait meanwhile.
    const shouldImprove = () => clock.monotonic() - start < improvementMs
    for (const part of partsFor({ shouldStop, shouldImprove, onPod: watch.onPod, types, packings })) {
      const before = clock.monotonic()
      replies.postMessage(part)
      state.sign()
      size.took(clock.monotonic() - before)
    }
  }
}

function say(message: FromThread): void {
  parentPort?.postMessage(message)
}
