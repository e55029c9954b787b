/** Harbour Cloud in memory: for tests, and for a cluster on one host. */
import {
  type Clock,
  type HttpRequest,
  type HttpResponse,
  oneChunk,
  rfc3339,
  type Transport,
} from '@tenon/provider'
import type { Image, Server, ServerOrder, Size } from './cloud-api.ts'

const usualBootMs = 2000
const deletionMs = 5000

/** What is sold. */
export const sizes: readonly Size[] = [
  { name: 'small', cpus: 2, memoryGiB: 4, pricePerHour: { 'north-1': 0.03, 'south-1': 0.035 } },
  { name: 'medium', cpus: 4, memoryGiB: 8, pricePerHour: { 'north-1': 0.06, 'south-1': 0.07 } },
  { name: 'large', cpus: 8, memoryGiB: 32, pricePerHour: { 'north-1': 0.16 } },
]

const answer = (
  status: number,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse => ({
  status,
  headers,
  body: oneChunk(body === undefined ? '' : JSON.stringify(body)),
})

/** What happens on the servers. */
export interface Instances {
  /** A while after an order: the server runs its script. */
  boot(server: Server, userData: string): void
  /** The server is gone. */
  end(server: Server): void
}

const noInstances: Instances = { boot: () => {}, end: () => {} }

export class SimulatedCloud implements Transport {
  readonly servers = new Map<string, Server>()
  readonly images: Image[] = [{ id: 'image-1', name: 'debian-13' }]
  readonly sizes = sizes
  /** What orders are answered with, if they do not go well. */
  trouble: 'soldOut' | 'refused' | 'throttled' | undefined
  /** The next order takes effect, and its answer is lost. */
  losesNextAnswer = false
  readonly #clock: Clock
  readonly #instances: Instances
  readonly #bootMs: number
  #isStopped = false
  #sequence = 0

  constructor(clock: Clock, instances: Instances = noInstances, bootMs: number = usualBootMs) {
    this.#clock = clock
    this.#instances = instances
    this.#bootMs = bootMs
  }

  /** Nothing boots any more. */
  stop(): void {
    this.#isStopped = true
  }

  async send({ method, path, body }: HttpRequest): Promise<HttpResponse> {
    // As over a network, the answer comes later.
    await this.#clock.sleep(5)
    const [, , collection = '', id] = path.split('/')
    if (collection === 'sizes') return answer(200, this.sizes)
    if (collection === 'images') return answer(200, this.images)
    if (method === 'POST') return this.#order(JSON.parse(String(body)) as ServerOrder)
    if (id === undefined) return answer(200, [...this.servers.values()])
    const server = this.servers.get(id)
    if (server === undefined) return answer(404, { code: 'not_found' })
    return method === 'DELETE' ? this.#delete(server) : answer(200, server)
  }

  /** Puts a server there that is running already. */
  add({ userData: _script, ...order }: ServerOrder): Server {
    const id = `00000000-0000-4000-8000-${String(++this.#sequence).padStart(12, '0')}`
    const server: Server = { ...order, id, state: 'running', createdAt: rfc3339(this.#clock.now()) }
    this.servers.set(id, server)
    return server
  }

  #order(order: ServerOrder): HttpResponse {
    if (this.trouble === 'soldOut') return answer(409, { code: 'sold_out' })
    if (this.trouble === 'refused') return answer(400, { code: 'bad_order' })
    if (this.trouble === 'throttled') return answer(429, { code: 'slow_down' }, { 'retry-after': '7' })
    const server = this.add(order)
    this.#clock.after(this.#bootMs, () => {
      if (!this.#isStopped && this.servers.has(server.id)) this.#instances.boot(server, order.userData)
    })
    if (this.losesNextAnswer) {
      this.losesNextAnswer = false
      throw new Error('the connection was reset')
    }
    return answer(201, server)
  }

  #delete(server: Server): HttpResponse {
    this.servers.set(server.id, { ...server, state: 'deleting' })
    this.#clock.after(deletionMs, () => {
      if (this.servers.delete(server.id)) this.#instances.end(server)
    })
    return answer(202)
  }
}
