/** The way to a cloud that fails a share of all calls, in every manner that a client has to survive. */
import {
  type Clock,
  type HttpResponse,
  oneChunk,
  type Random,
  readText,
  type Transport,
  unit,
} from '@tenon/runtime'

const manners = [
  'throttled',
  'refused',
  'unavailable',
  'timeoutBeforeEffect',
  'timeoutAfterEffect',
  'lostRequest',
  'lostReply',
  'slowReply',
  'staleList',
] as const

/** How a call may fail. */
export type Manner = (typeof manners)[number]

/** Lists lag behind by so much at most; the provider waits longer before it believes that nothing is there. */
const staleMs = 20_000
const slowMs = 20_000

export interface UnreliableOptions {
  readonly clock: Clock
  readonly random: Random
  /** Probability in [0, 1] that a call fails. */
  readonly share: number
}

/** Counts what passes, and spoils a share of it between {@link UnreliableCloud.storm} and {@link UnreliableCloud.calm}. */
export class UnreliableCloud {
  readonly #options: UnreliableOptions
  readonly #struck = new Map<Manner, number>()
  readonly #lists: { readonly at: number; readonly text: string }[] = []
  #calls = 0
  #isCalm = true

  constructor(options: UnreliableOptions) {
    this.#options = options
  }

  /** Requests sent so far, each attempt counted. */
  get calls(): number {
    return this.#calls
  }

  /** How often each manner has struck. */
  get struck(): ReadonlyMap<Manner, number> {
    return this.#struck
  }

  storm(): void {
    this.#isCalm = false
  }

  /** From now on every call gets its answer. */
  calm(): void {
    this.#isCalm = true
  }

  readonly path = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      this.#calls++
      const isList = request.method === 'GET' && request.path.split('?')[0] === '/v2/instance'
      const answered = async (): Promise<HttpResponse> => {
        const response = await inner.send(request, signal)
        return isList ? await this.#remembered(response) : response
      }
      const manner = this.#draw(isList)
      if (manner === undefined) return await answered()
      this.#struck.set(manner, (this.#struck.get(manner) ?? 0) + 1)
      switch (manner) {
        case 'throttled':
          return answer(429, { message: 'too many requests' }, { 'retry-after': '2' })
        case 'refused':
          return answer(500, { message: 'internal error' })
        case 'unavailable':
          return answer(503, { message: 'service unavailable' })
        case 'lostRequest':
          throw new Error('connection reset')
        case 'lostReply':
          await answered()
          throw new Error('connection reset')
        case 'timeoutBeforeEffect':
          return await silence(signal)
        case 'timeoutAfterEffect':
          await answered()
          return await silence(signal)
        case 'slowReply': {
          const response = await answered()
          await this.#options.clock.sleep(1000 + Math.floor(unit(this.#options.random) * slowMs))
          return response
        }
        case 'staleList':
          return this.#stale() ?? (await answered())
      }
    },
  })

  #draw(isList: boolean): Manner | undefined {
    const { random, share } = this.#options
    if (this.#isCalm || unit(random) >= share) return undefined
    const manner = manners[random.uint32() % manners.length]
    return manner === 'staleList' && !isList ? 'refused' : manner
  }

  async #remembered(response: HttpResponse): Promise<HttpResponse> {
    if (response.status !== 200) return response
    const text = await readText(response.body)
    const at = this.#options.clock.monotonic()
    this.#lists.push({ at, text })
    while ((this.#lists[0]?.at ?? at) < at - staleMs) this.#lists.shift()
    return { ...response, body: oneChunk(text) }
  }

  /** The oldest list that a replica of the cloud may still show. */
  #stale(): HttpResponse | undefined {
    const at = this.#options.clock.monotonic()
    const old = this.#lists.find((list) => list.at >= at - staleMs)
    return old && { status: 200, headers: { 'content-type': 'application/json' }, body: oneChunk(old.text) }
  }
}

function answer(status: number, body: object, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: oneChunk(JSON.stringify(body)),
  }
}

/** No answer at all: the caller has to give up by itself. */
function silence(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = (): void => reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'))
    if (signal?.aborted === true) end()
    signal?.addEventListener('abort', end, { once: true })
  })
}
