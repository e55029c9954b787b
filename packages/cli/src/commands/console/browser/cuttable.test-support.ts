/** A way to the page that can be cut, as a network is. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface CuttableLink {
  readonly link: string
  /** Ends all connections, and takes none until the answer is called. */
  readonly cut: () => () => Promise<void>
}

export async function cuttable(t: TestContext, link: string): Promise<CuttableLink> {
  const target = new URL(link)
  const to = Number(target.port)
  const sockets = new Set<Socket>()
  const listen = async (port: number): Promise<Server> => {
    const server = createServer((socket) => {
      const onward = connect(to, '127.0.0.1')
      for (const each of [socket, onward]) {
        sockets.add(each)
        each.on('error', () => each.destroy())
        each.on('close', () => sockets.delete(each))
      }
      socket.pipe(onward).pipe(socket)
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return server
  }
  let server = await listen(0)
  const end = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  t.after(end)
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const { port } = address
  target.port = String(port)
  return {
    link: target.href,
    cut: () => {
      end()
      return async () => {
        server = await listen(port)
      }
    },
  }
}
