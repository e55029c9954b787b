/** Questions of the page, each with its answer as JSON. */
import { costDimensions, type Snapshot } from '@tenon/ask'
import { savingsByDay } from '@tenon/operator'
import type { Clock, HttpResponse } from '@tenon/runtime'
import { explainedNode, explainedNodePool, explainedPod, pendingAnswer } from '../answers/explain.ts'
import type { ConsoleFacts } from '../answers/facts.ts'
import { placedOn } from '../answers/placement.ts'
import { poolsAnswer } from '../answers/pools.ts'
import { priceHistory } from '../answers/price-history.ts'
import { whatIfAnswer } from '../answers/simulate.ts'
import type { ConsoleModel } from '../model/model.ts'
import { json, problem } from './answer.ts'

/** One question. */
export interface Question {
  readonly path: string
  readonly query: URLSearchParams
  /** Text of a question that is asked with a body. */
  readonly body: string
  readonly signal: AbortSignal
}

type Answerer = (question: Question) => Promise<HttpResponse>

/** Longer plays keep everybody waiting. */
const longestPlayMs = 7 * 24 * 3_600_000
/** A snapshot that old serves a page whose parts ask one after the other. */
const snapshotMs = 1000

/** What is known without asking anybody. */
type Followed = Pick<ConsoleModel, 'journal' | 'podsOn' | 'view'>

/** Answers by path. All of them read; those of {@link asked} take a body, and read all the same. */
export class Routes {
  readonly #facts: ConsoleFacts
  readonly #clock: Clock
  readonly #live: () => Promise<Followed>
  #snapshot: { readonly atMs: number; readonly promise: Promise<Snapshot> } | undefined
  /** By method and path: answered at once, whatever else is asked, as they take no copy of the cluster. */
  readonly #quick: ReadonlyMap<string, Answerer>
  /** One answer at a time: each holds a copy of the cluster. */
  #last: Promise<unknown> = Promise.resolve()
  readonly #answers: ReadonlyMap<string, Answerer>
  readonly #asked: ReadonlyMap<string, Answerer>

  constructor(facts: ConsoleFacts, clock: Clock, live: () => Promise<Followed>) {
    this.#facts = facts
    this.#clock = clock
    this.#live = live
    this.#quick = new Map<string, Answerer>([
      ['GET /api/fields', async () => json({ fields: await facts.fields() })],
      ['GET /api/placement', (question) => this.#placement(question)],
      ['GET /api/prices', () => this.#prices()],
      ['GET /api/savings', () => this.#savings()],
      ['POST /api/check', async ({ body }) => json({ problems: (await facts.readManifests(body)).problems })],
    ])
    this.#answers = new Map<string, Answerer>([
      ['/api/pending', async ({ signal }) => json(await pendingAnswer(await this.#now(signal)))],
      ['/api/explain', (question) => this.#explain(question)],
      ['/api/pools', async ({ signal }) => json(await poolsAnswer(await this.#now(signal), signal))],
      ['/api/cost', (question) => this.#cost(question)],
      ['/api/manifest', (question) => this.#manifest(question)],
      ['/api/replay', (question) => this.#replay(question)],
    ])
    this.#asked = new Map<string, Answerer>([['/api/simulate', (question) => this.#simulate(question)]])
  }

  /** @returns undefined for a path that is no question. */
  async answer(method: 'GET' | 'POST', question: Question): Promise<HttpResponse | undefined> {
    const quick = this.#quick.get(`${method} ${question.path}`)
    if (quick !== undefined) return await this.#answered(question, quick(question))
    const answerer = (method === 'GET' ? this.#answers : this.#asked).get(question.path)
    if (answerer === undefined) return undefined
    const before = this.#last
    const work = before.then(
      () => answerer(question),
      () => answerer(question),
    )
    this.#last = work
    return await this.#answered(question, work)
  }

  async #answered({ signal }: Question, work: Promise<HttpResponse>): Promise<HttpResponse> {
    try {
      return await work
    } catch (error) {
      signal.throwIfAborted()
      return problem(502, error instanceof Error ? error.message : String(error))
    }
  }

  async #now(signal: AbortSignal): Promise<Snapshot> {
    const nowMs = this.#clock.monotonic()
    if (this.#snapshot === undefined || nowMs - this.#snapshot.atMs > snapshotMs) {
      const promise = this.#facts.snapshot(signal)
      this.#snapshot = { atMs: nowMs, promise }
      promise.catch(() => {
        this.#snapshot = undefined
      })
    }
    return await this.#snapshot.promise
  }

  async #explain({ query, signal }: Question): Promise<HttpResponse> {
    const [kind, name, namespace] = ['kind', 'name', 'namespace'].map((each) => query.get(each) ?? '')
    const snapshot = await this.#now(signal)
    const explained =
      kind === 'pod'
        ? await explainedPod(snapshot, namespace ?? '', name ?? '')
        : kind === 'nodepool'
          ? await explainedNodePool(snapshot, name ?? '', signal)
          : await explainedNode(snapshot, name ?? '', signal)
    return explained === undefined ? problem(404, `${kind} ${name} is not there`) : json(explained)
  }

  async #placement({ query }: Question): Promise<HttpResponse> {
    const live = await this.#live()
    return json({ pods: placedOn(new Set(query.getAll('node')), (node) => live.podsOn(node)) })
  }

  async #prices(): Promise<HttpResponse> {
    const live = await this.#live()
    const journal = live.journal()
    if ('absent' in journal) return json(journal)
    const nowMs = this.#clock.now()
    const { perHour } = live.view(nowMs).header.price
    return json(
      perHour === undefined ? { absent: 'no node has a known price' } : priceHistory(journal, nowMs, perHour),
    )
  }

  async #savings(): Promise<HttpResponse> {
    const journal = (await this.#live()).journal()
    return json('absent' in journal ? journal : { days: savingsByDay(journal, this.#clock.now()) })
  }

  async #cost({ query, signal }: Question): Promise<HttpResponse> {
    const by = query.get('by') ?? 'nodepool'
    if (!(costDimensions as readonly string[]).includes(by))
      return problem(400, `by: use one of ${costDimensions.join(', ')}`)
    return json(await this.#facts.cost(await this.#now(signal), by))
  }

  async #manifest({ query, signal }: Question): Promise<HttpResponse> {
    const name = query.get('nodepool') ?? ''
    const { objects } = await this.#now(signal)
    const pool = objects.find((each) => each.kind === 'NodePool' && each.metadata.name === name)
    if (pool === undefined) return problem(404, `NodePool ${name} is not there`)
    return json({ text: this.#facts.manifestText(pool) })
  }

  async #simulate({ body, query, signal }: Question): Promise<HttpResponse> {
    const given = query.get('for')
    const forMs = given === null ? undefined : Number(given)
    if (forMs !== undefined && !(forMs > 0 && forMs <= longestPlayMs))
      return problem(400, 'for: use milliseconds, at most 7 days')
    return json(await whatIfAnswer(this.#facts, await this.#now(signal), body, forMs))
  }

  async #replay({ signal }: Question): Promise<HttpResponse> {
    const replayed = await this.#facts.replay?.(signal)
    return json(replayed ?? { absent: 'no recording was given: start with tenon console --trace week.tnr' })
  }
}
