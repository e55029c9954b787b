/* oxlint-disable unicorn/require-post-message-target-origin -- threads, not windows */
/** Entry of the thread that answers from copies of the cluster, so that the page is served meanwhile. */
import { parentPort, workerData } from 'node:worker_threads'
import { Answers, type GivenAnswer, type Question } from '@tenon/console'
import { messageOf, SystemClock } from '@tenon/runtime'
import { consoleFacts, type ConsoleSource, type QuietIo } from './facts.ts'

/** What the thread is started with. */
export interface AnswerThreadData extends Pick<QuietIo, 'cwd' | 'env'> {
  readonly source: ConsoleSource
}

/** One question after the other; `forget`: nobody waits for the answer to the last one any more. */
export type ToAnswerThread =
  | { readonly kind: 'ask'; readonly question: Question }
  | { readonly kind: 'forget' }

export type FromAnswerThread =
  | { readonly kind: 'answered'; readonly answer: GivenAnswer }
  /** It was forgotten. */
  | { readonly kind: 'ended'; readonly message: string }

const { cwd, env, source } = workerData as AnswerThreadData
// The thread is ended from outside.
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
