import type { Transport } from '@tenon/runtime'

/** A write was not sent, as this process does not lead: no failure, and nothing to be told. */
class FencedError extends Error {}

/** Whether an error tells of nothing but writes that were not sent. */
export function isFenced(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isFenced)
  return error instanceof FencedError || (error instanceof Error && isFenced(error.cause))
}

const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Sends what changes nothing always, and everything else only while `mayAct` answers true: who has lost the
 * lease writes nothing more, wherever its work has got to. What was sent before is not taken back.
 */
export function fencedTransport(transport: Transport, mayAct: () => boolean): Transport {
  return {
    send: (request, signal) => {
      if (readMethods.has(request.method) || mayAct()) return transport.send(request, signal)
      const [path] = request.path.split('?')
      return Promise.reject(
        new FencedError(`${request.method} ${path} was not sent: this process does not lead`),
      )
    },
  }
}
