import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A TCP proxy whose connections can be cut. */
export interface CuttingProxy {
  readonly port: number
  /** Breaks all connections, and rejects new ones until {@link CuttingProxy.restore}. */
  cut(): void
  restore(): void
  close(): Promise<void>
}

export async function startCuttingProxy(host: string, targetPort: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  let isCut = false
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  const server = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = connect(targetPort, host)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.pipe(other)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => {
    server.listen(0, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    restore: () => {
      isCut = false
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        cut()
      }),
  }
}
