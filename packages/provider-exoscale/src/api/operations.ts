/** Waiting for asynchronous operations. */
import type { Clock } from '@tenon/runtime'
import { ExoscaleOperationError } from './errors.ts'
import type { Operation } from './types.ts'

const operationTimeoutMs = 10 * 60_000
const maxPollErrors = 5

/** Seconds until the next poll: 3 at first, growing to 60 after a quarter of an hour. */
export function pollIntervalSeconds(elapsedSeconds: number): number {
  const slope = 57 / 870
  return Math.trunc(Math.min(60, Math.max(3, slope * elapsedSeconds + 3 - 30 * slope)))
}

export interface WaitOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Polls until the operation has succeeded.
 * @throws ExoscaleOperationError if it failed (also if it is passed in as failed) or timed out.
 */
export async function waitForOperation(
  first: Operation,
  poll: (id: string) => Promise<Operation>,
  clock: Clock,
  { timeoutMs = operationTimeoutMs, signal }: WaitOptions = {},
): Promise<Operation> {
  const start = clock.monotonic()
  let operation = first
  let pollErrors = 0
  while (operation.state === 'pending') {
    const elapsedMs = clock.monotonic() - start
    const waitMs = pollIntervalSeconds(elapsedMs / 1000) * 1000
    if (elapsedMs + waitMs > timeoutMs)
      throw failure(operation, 'deadline', `still pending after ${timeoutMs / 1000} s`)
    await clock.sleep(waitMs, signal)
    try {
      operation = await poll(operation.id)
      pollErrors = 0
    } catch (error) {
      signal?.throwIfAborted()
      pollErrors++
      if (pollErrors >= maxPollErrors) throw error
    }
  }
  if (operation.state === 'success') return operation
  throw failure(operation, operation.reason ?? operation.state, operation.message ?? '')
}

function failure(operation: Operation, reason: string, message: string): ExoscaleOperationError {
  return new ExoscaleOperationError(operation.id, reason, message, operation.reference?.id)
}
