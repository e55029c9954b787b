import type { FaultEffect } from '../faults.ts'

/** One authorised call, taken apart. */
export interface Call {
  /** Operation id, such as `create-instance`. */
  readonly operation: string
  readonly parameters: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The parsed body; empty when the operation takes none. */
  readonly body: Readonly<Record<string, unknown>>
  readonly effects: readonly FaultEffect[]
}

/** An operation of the API. */
export interface Route {
  readonly operation: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path below `/v2` with `{parameters}`. */
  readonly path: string
  /** Whether a JSON object must be sent. */
  readonly body?: 'required'
  /** Answers the body of a 200; refuses by throwing a `Refusal`. */
  readonly handle: (call: Call) => unknown
}
