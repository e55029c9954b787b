import type { Transport } from '@tenon/runtime'

/** A write was not sent, as this process may not act. Not a failure, and not logged. */
class FencedError extends Error {}

/** Whether an error consists only of writes that were not sent. */
export function isFenced(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isFenced)
  return error instanceof FencedError || (error instanceof Error && isFenced(error.cause))
}

const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Always sends reads, and writes only while `mayAct` returns true: a process that lost the lease, or that only
 * observes, writes nothing more, whatever it is doing. Earlier writes are not undone.
 */
export function fencedTransport(transport: Transport, mayAct: () => boolean): Transport {
  return {
    send: (request, signal) => {
      if (readMethods.has(request.method) || mayAct()) return transport.send(request, signal)
      const [path] = request.path.split('?')
      return Promise.reject(
        new FencedError(
          `${request.method} ${path} was not sent: this process does not lead, or only observes`,
        ),
      )
    },
  }
}
