/** A connection to an API server that can be interrupted, like the network between two clusters. */
import { createServer, connect, type Server, type Socket } from 'node:net'

/** `open` forwards everything; `refused` accepts no connection; `silent` accepts connections and never responds. */
export type LineState = 'open' | 'refused' | 'silent'

export class SeveredLine {
  readonly #target: URL
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  #port = 0
  #state: LineState = 'open'

  private constructor(target: URL) {
    this.#target = target
    this.#server = createServer((socket) => this.#take(socket))
  }

  /** @param endpoint such as `https://127.0.0.1:6443`; certificates stay valid, only the route differs. */
  static async open(endpoint: string): Promise<SeveredLine> {
    const line = new SeveredLine(new URL(endpoint))
    await new Promise<void>((resolve, reject) => {
      line.#server.once('error', reject)
      line.#server.listen(0, '127.0.0.1', resolve)
    })
    // Must not keep the process of a failed test alive.
    line.#server.unref()
    const address = line.#server.address()
    if (address !== null && typeof address === 'object') line.#port = address.port
    return line
  }

  get endpoint(): string {
    return `https://127.0.0.1:${this.#port}`
  }

  /** Also cuts existing connections. */
  set(state: LineState): void {
    this.#state = state
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.set('refused')
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #take(socket: Socket): void {
    // Both ends end together, and errors of one of them are not the test's.
    socket.on('error', () => socket.destroy())
    if (this.#state === 'refused') {
      socket.destroy()
      return
    }
    this.#keep(socket)
    if (this.#state === 'silent') return
    const onward = connect(Number(this.#target.port), this.#target.hostname)
    this.#keep(onward)
    onward.on('error', () => onward.destroy())
    onward.once('close', () => socket.destroy())
    socket.once('close', () => onward.destroy())
    socket.pipe(onward).pipe(socket)
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }
}
