/** A simulated Exoscale with stale reads and wrong responses about what it creates. */
import {
  type HttpRequest,
  type HttpResponse,
  integerBetween,
  oneChunk,
  readText,
  type Transport,
} from '@tenon/runtime'
import type { FaultDependencies } from './api-faults.ts'

const second = 1000
const minute = 60 * second
const day = 24 * 60 * minute
const claimLabel = 'exoscale.com/node-claim'
const instancePath = /\/instance\/([0-9a-f-]{36})$/

type Instance = Readonly<Record<string, unknown>>

/** How the response to the next creation is wrong. */
const lies = ['madeAndRefused', 'refusedAndMade', 'madeTwice', 'wrongAge', 'noLabels', 'wrongLabels'] as const

/** What the cloud of one world hides and invents; every process sees the same. */
export class LyingCloud {
  readonly #deps: FaultDependencies
  readonly #hiddenUntil = new Map<string, number>()
  readonly #shownAs = new Map<
    string,
    { readonly untilMs: number; readonly change: (instance: Instance) => Instance }
  >()
  /** Instances that are still being created, with their claims. */
  readonly #awaited = new Map<string, string>()
  /** Claims for which the cloud may have created two instances, with the number of crashes when one was hidden. */
  readonly #excused = new Map<string, number>()
  #isOver = false

  constructor(deps: FaultDependencies) {
    this.#deps = deps
  }

  /** Whether the cloud itself may have created a second instance for the claim. */
  mayHaveTwo(claim: string): boolean {
    const crashes = this.#excused.get(claim)
    return crashes !== undefined && this.#crashes() > crashes
  }

  /** From now on all responses are correct. */
  readonly stopLying = (): void => {
    this.#isOver = true
  }

  /** A later lie about the same claim takes nothing back. */
  #excuse(claim: string, crashes: number): void {
    this.#excused.set(claim, Math.min(crashes, this.#excused.get(claim) ?? crashes))
  }

  #crashes(): number {
    const struck = this.#deps.weather.struck()
    return (struck.get('crash') ?? 0) + (struck.get('reconfigure') ?? 0) + (struck.get('pause') ?? 0)
  }

  readonly path = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const path = request.path.split('?')[0] ?? ''
      if (request.method === 'POST' && path.endsWith('/instance'))
        return await this.#create(inner, request, signal)
      if (request.method !== 'GET' || this.#isOver) return await inner.send(request, signal)
      const id = instancePath.exec(path)?.[1]
      if (id !== undefined && this.#isHidden(id)) return answer(404, { message: 'not found' })
      const response = await inner.send(request, signal)
      if (response.status !== 200) return response
      if (path.includes('/operation/')) return await this.#operation(response)
      if (id === undefined && !path.endsWith('/instance')) return response
      return await this.#shown(response)
    },
  })

  async #create(
    inner: Transport,
    request: HttpRequest,
    signal: AbortSignal | undefined,
  ): Promise<HttpResponse> {
    const { weather, log, clock } = this.#deps
    const { labels } = JSON.parse(String(request.body)) as {
      readonly labels?: Readonly<Record<string, string>>
    }
    const claim = labels?.[claimLabel] ?? ''
    if (this.#isOver || !weather.strikes('lyingCloud'))
      return (await this.#made(await inner.send(request, signal), claim)).response
    const random = weather.source('lyingCloud')
    const lie = lies[random.uint32() % lies.length] ?? 'madeTwice'
    log.record('fault', `lyingCloud ${lie} ${claim}`)
    if (lie === 'refusedAndMade') {
      this.#excuse(claim, -1)
      clock.after(integerBetween(random, second, minute), () => {
        inner.send(request).catch(() => undefined)
      })
      return answer(503, { message: 'injected by the simulation' })
    }
    const response = await inner.send(request, signal)
    if (lie === 'madeAndRefused')
      return answer(random.uint32() % 2 === 0 ? 400 : 500, { message: 'injected' })
    if (lie === 'madeTwice') {
      this.#excuse(claim, -1)
      return await inner.send(request, signal)
    }
    const { id, response: same } = await this.#made(response, claim)
    if (id === undefined) return same
    // A response that names another claim is not for this one; one without a name belongs to whoever created
    // the instance.
    if (lie === 'wrongLabels') this.#excuse(claim, -1)
    if (lie === 'noLabels') this.#excuse(claim, this.#crashes())
    const untilMs = clock.monotonic() + integerBetween(random, minute, 30 * minute)
    const offMs = random.uint32() % 2 === 0 ? day : -day
    this.#shownAs.set(id, {
      untilMs: lie === 'wrongAge' ? Number.POSITIVE_INFINITY : untilMs,
      change: {
        wrongAge: (instance: Instance) => ({
          ...instance,
          'created-at': new Date(Date.parse(String(instance['created-at'])) + offMs).toISOString(),
        }),
        noLabels: (instance: Instance) => ({ ...instance, labels: {} }),
        wrongLabels: (instance: Instance) => ({
          ...instance,
          labels: { ...(instance['labels'] as object), [claimLabel]: `${claim}-rewritten` },
        }),
      }[lie],
    })
    return same
  }

  async #made(
    response: HttpResponse,
    claim: string,
  ): Promise<{ readonly id: string | undefined; readonly response: HttpResponse }> {
    if (response.status >= 300) return { id: undefined, response }
    const text = await readText(response.body)
    const { reference } = JSON.parse(text) as { readonly reference?: { readonly id?: string } }
    if (reference?.id !== undefined) this.#awaited.set(reference.id, claim)
    return { id: reference?.id, response: { ...response, body: oneChunk(text) } }
  }

  /** An instance may be hidden from the moment on when the success of its operation was reported. */
  async #operation(response: HttpResponse): Promise<HttpResponse> {
    const { weather, log, clock } = this.#deps
    const text = await readText(response.body)
    const { state, reference } = JSON.parse(text) as {
      readonly state?: string
      readonly reference?: { readonly id?: string }
    }
    const { id = '' } = reference ?? {}
    const claim = state === 'success' ? this.#awaited.get(id) : undefined
    if (claim !== undefined) {
      this.#awaited.delete(id)
      if (weather.strikes('laggingCloud')) {
        const random = weather.source('laggingCloud')
        const ms =
          random.uint32() % 2 === 0
            ? integerBetween(random, second, minute)
            : integerBetween(random, minute, 10 * minute)
        log.record('fault', `laggingCloud ${id} ${ms}`)
        // A process that crashes before it has stored the instance cannot know it.
        this.#excuse(claim, this.#crashes())
        this.#hiddenUntil.set(id, clock.monotonic() + ms)
      }
    }
    return { ...response, body: oneChunk(text) }
  }

  #isHidden(id: string): boolean {
    return (this.#hiddenUntil.get(id) ?? 0) > this.#deps.clock.monotonic()
  }

  async #shown(response: HttpResponse): Promise<HttpResponse> {
    if (this.#hiddenUntil.size === 0 && this.#shownAs.size === 0) return response
    const body = JSON.parse(await readText(response.body)) as Instance & {
      readonly instances?: readonly Instance[]
    }
    const { instances } = body
    const shown =
      instances === undefined
        ? this.#changed(body)
        : {
            ...body,
            instances: instances
              .filter(({ id }) => !this.#isHidden(String(id)))
              .map((each) => this.#changed(each)),
          }
    return { ...response, body: oneChunk(JSON.stringify(shown)) }
  }

  #changed(instance: Instance): Instance {
    const lie = this.#shownAs.get(String(instance['id']))
    return lie === undefined || lie.untilMs <= this.#deps.clock.monotonic() ? instance : lie.change(instance)
  }
}

function answer(status: number, body: object): HttpResponse {
  return { status, headers: { 'content-type': 'application/json' }, body: oneChunk(JSON.stringify(body)) }
}
