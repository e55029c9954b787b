/** Requests to the server. */

/** Its message is for the user. */
class QuestionError extends Error {
  override name = 'QuestionError'
}

/** @throws QuestionError with the server's message. */
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return await answerOf(await sent(path, { ...(signal !== undefined && { signal }) }))
}

/**
 * Sends a body.
 * @throws QuestionError with the server's message.
 */
export async function askWith<T>(path: string, body: string, signal?: AbortSignal): Promise<T> {
  return await answerOf(await sent(path, { method: 'POST', body, ...(signal !== undefined && { signal }) }))
}

async function sent(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init)
  } catch (cause) {
    if (init.signal?.aborted === true) throw cause
    throw new QuestionError('the console does not answer: is the command still running?', { cause })
  }
}

async function answerOf<T>(response: Response): Promise<T> {
  const answer = (await response.json()) as { readonly error?: string }
  if (!response.ok) throw new QuestionError(answer.error ?? `the console answered ${response.status}`)
  return answer as T
}
