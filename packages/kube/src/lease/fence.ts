import type { Transport } from '@tenon/runtime'

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
      return Promise.reject(new Error(`${request.method} ${path} was not sent: this process does not lead`))
    },
  }
}
