/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/** Entry point of the thread that computes answers from snapshots, so that the page stays responsive. */
import { parentPort, workerData } from 'node:worker_threads'
import { Answers, type GivenAnswer, type Question } from '@tenon/console'
import { messageOf, SystemClock } from '@tenon/runtime'
import { consoleFacts, type ConsoleSource, type QuietIo } from './facts.ts'

export interface AnswerThreadData extends Pick<QuietIo, 'cwd' | 'env'> {
  readonly source: ConsoleSource
}

/** Questions are answered one at a time; `forget` cancels the last one. */
export type ToAnswerThread =
  | { readonly kind: 'ask'; readonly question: Question }
  | { readonly kind: 'forget' }

export type FromAnswerThread =
  | { readonly kind: 'answered'; readonly answer: GivenAnswer }
  /** The question was cancelled. */
  | { readonly kind: 'ended'; readonly message: string }

const { cwd, env, source } = workerData as AnswerThreadData
// The main thread terminates this one.
const interrupted = new AbortController().signal
const answers = new Answers(consoleFacts({ cwd, env, interrupted }, source), new SystemClock())
let asked = new AbortController()

parentPort?.on('message', (message: ToAnswerThread) => {
  if (message.kind === 'forget') asked.abort(new Error('nobody waits for the answer'))
  else void answer(message.question)
})

async function answer(question: Question): Promise<void> {
  asked = new AbortController()
  try {
    say({ kind: 'answered', answer: await answers.answer(question, asked.signal) })
  } catch (error) {
    say({ kind: 'ended', message: messageOf(error) })
  }
}

function say(message: FromAnswerThread): void {
  parentPort?.postMessage(message)
}
