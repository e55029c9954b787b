import type { FaultEffect } from '../faults.ts'

/** One authorised and parsed call. */
export interface Call {
  /** Operation id, such as `create-instance`. */
  readonly operation: string
  readonly parameters: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The parsed body; empty if the operation has none. */
  readonly body: Readonly<Record<string, unknown>>
  readonly effects: readonly FaultEffect[]
}

/** An operation of the API. */
export interface Route {
  readonly operation: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path below `/v2` with `{parameters}`. */
  readonly path: string
  /** Whether a JSON object is required. */
  readonly body?: 'required'
  /** Returns the body of a 200; throws a `Refusal` otherwise. */
  readonly handle: (call: Call) => unknown
}
