/** Sends questions to a forked process. */
import type { ChildProcess, Serializable } from 'node:child_process'
import { once } from 'node:events'

/** @throws Error if the process ends instead of answering. */
export async function ask<Reply>(child: ChildProcess, question: Serializable): Promise<Reply> {
  const over = new AbortController()
  const { signal } = over
  const answered = Promise.race([once(child, 'message', { signal }), once(child, 'exit', { signal })])
  child.send(question)
  const [answer] = (await answered) as unknown[]
  over.abort()
  if (answer === null || answer === undefined) throw new Error('the process has ended')
  return answer as Reply
}
