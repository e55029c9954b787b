/** HTTP to a port of a pod by port-forward; the pod may listen on loopback only. */
import type http from 'node:http'
import { createRequire } from 'node:module'
import type { Duplex } from 'node:stream'
import type { HttpRequest, HttpResponse, Transport } from '@tenon/runtime'
import { plainHeaders } from '../config/http-transport.ts'
import type { LoadedKubeConfig } from '../config/load.ts'
import { type PodPort, portForwardPath } from './pod-port.ts'

/** Not imported, as that would also load Node's large fetch client. */
const require = createRequire(import.meta.url)
const { request: open } = require('node:http') as typeof http

/** A transport with a new connection for every request. Rejects with KubeError. */
export function podTransport(config: Pick<LoadedKubeConfig, 'upgradeTo'>, target: PodPort): Transport {
  return {
    send: async (request, signal) => {
      // Loads the WebSocket client, which most processes never need.
      const { openForwardedConnection } = await import('./forwarded-connection.ts')
      const address = await config.upgradeTo(portForwardPath(target))
      const connection = await openForwardedConnection(target, address, signal)
      return await exchange(request, { connection, port: target.port, signal })
    },
  }
}

interface Exchange {
  readonly connection: Duplex
  readonly port: number
  readonly signal: AbortSignal | undefined
}

function exchange(request: HttpRequest, { connection, port, signal }: Exchange): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    // The connection may have failed since it was opened, which a request would not notice.
    if (connection.errored !== null) {
      reject(connection.errored)
      return
    }
    connection.once('error', reject)
    const outgoing = open(
      {
        createConnection: () => connection,
        host: 'localhost',
        port,
        method: request.method,
        path: request.path,
        headers: { ...request.headers, connection: 'close' },
        ...(signal !== undefined && { signal }),
      },
      (incoming) => {
        resolve({
          status: incoming.statusCode ?? 0,
          headers: plainHeaders(incoming.headers),
          body: incoming,
        })
      },
    )
    outgoing.on('error', (error) => {
      connection.destroy()
      reject(error)
    })
    outgoing.end(request.body)
  })
}
