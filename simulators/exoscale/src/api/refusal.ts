/** A refused call, with status and body of the response. */
export class Refusal extends Error {
  readonly status: number
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
    super(`refused with status ${status}`)
    this.name = 'Refusal'
    this.status = status
    this.body = body
    this.headers = headers
  }
}

/** A refusal with only a message, as for 401, 403, 404, 405 and 409. */
export function refused(status: number, message: string): Refusal {
  return new Refusal(status, { message })
}

/** 404 for a resource in path or body. */
export function notFound(kind: string, id: string): Refusal {
  return refused(404, `${kind} ${id} not found`)
}

/** 400 with one entry per field error. */
export function invalid(errors: readonly string[]): Refusal {
  return new Refusal(400, {
    type: 'about:blank',
    title: 'Bad Request',
    detail: errors.join('; '),
    errors: errors.map((message) => ({ message })),
  })
}
