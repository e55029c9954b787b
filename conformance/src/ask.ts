/** A response with its `Warning` header. */
export interface Answer {
  readonly status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- cases look at whatever the server said
  readonly body: any
  readonly warning: string | undefined
}

/** Sends a request to an API server as administrator. */
export type Ask = (method: string, path: string, body?: object, contentType?: string) => Promise<Answer>
