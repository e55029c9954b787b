/** Answers questions of the page as JSON. */
import { savingsByDay } from '@tenon/operator/objects'
import { type Clock, eventLoopTurns, type HttpResponse, inSlices } from '@tenon/runtime'
import { type AnswerPort, copyQuestions, type Question } from '../answers/answers.ts'
import type { ConsoleFacts } from '../answers/facts.ts'
import { objectAnswer } from '../answers/object.ts'
import { placedOn } from '../answers/placement.ts'
import { decisionsAnswer } from '../answers/past-decisions.ts'
import { priceHistory } from '../answers/price-history.ts'
import { spendAnswer, spendQuestion } from '../answers/spend.ts'
import type { ConsoleModel } from '../model/model.ts'
import { objectRefOf } from '../model/object-ref.ts'
import type { Past } from '../model/past.ts'
import { answered, json, problem } from './answer.ts'
import type { FollowedCluster } from './followed-cluster.ts'

/** Limit of manifests that this thread parses while the user types; longer ones go to another thread. */
const mostTyped = 16_384

/** Limit of a text to search for: no name is longer. */
const mostSearched = 512

/** Limit of a manifest: some hundred NodePools. */
const mostCharacters = 262_144

/** How long an answer keeps others waiting at a time. */
const slicing = { turns: eventLoopTurns, sliceMs: 8 }

type RouteHandler = (question: Question, signal: AbortSignal) => Promise<HttpResponse>

/** The parts of the model that answers read. */
type Followed = Pick<ConsoleModel, 'header' | 'journal' | 'past' | 'podsOn'>

export interface RoutesOptions {
  readonly facts: Pick<ConsoleFacts, 'fields' | 'readManifests' | 'yamlText'>
  /** Answers questions that need a snapshot. */
  readonly copies: AnswerPort
  readonly clock: Clock
  /** With all rows up to date. */
  readonly live: () => Promise<Followed>
  /** Perhaps while rows are being rebuilt. */
  readonly followed: () => Promise<FollowedCluster>
}

/** Answers by path. All of them are read-only. */
export class Routes {
  readonly #options: RoutesOptions
  /** By method and path: answers that need no snapshot. */
  readonly #quick: ReadonlyMap<string, RouteHandler>

  constructor(options: RoutesOptions) {
    const { facts } = options
    this.#options = options
    this.#quick = new Map<string, RouteHandler>([
      ['GET /api/fields', async () => json({ fields: await facts.fields() })],
      ['GET /api/object', (question, signal) => this.#object(question, signal)],
      ['GET /api/search', (question) => this.#search(question)],
      ['GET /api/placement', (question) => this.#placement(question)],
      ['GET /api/prices', () => this.#prices()],
      ['GET /api/savings', () => this.#savings()],
      ['GET /api/spend', (question) => this.#spend(question)],
      ['GET /api/decisions', (question) => this.#decisions(question)],
      ['POST /api/check', async ({ body }) => json({ problems: (await facts.readManifests(body)).problems })],
    ])
  }

  /** @returns undefined for an unknown path. */
  async answer(question: Question, signal: AbortSignal): Promise<HttpResponse | undefined> {
    const name = `${question.method} ${question.path}`
    const quick = question.body.length > mostTyped ? undefined : this.#quick.get(name)
    if (quick === undefined && !copyQuestions.has(name)) return undefined
    if (question.body.length > mostCharacters)
      return problem(413, `a manifest may have ${mostCharacters} characters`)
    try {
      if (quick !== undefined) return await quick(question, signal)
      const { status, text } = await this.#options.copies.answer(question, signal)
      return answered(status, 'application/json; charset=utf-8', text)
    } catch (error) {
      signal.throwIfAborted()
      return problem(502, error instanceof Error ? error.message : String(error))
    }
  }

  async #object({ query }: Question, signal: AbortSignal): Promise<HttpResponse> {
    const ref = objectRefOf(new URLSearchParams(query))
    if (ref === undefined) return problem(400, 'kind and name of an object are missing, or too long')
    const { objects, view: model } = await this.#options.followed()
    const { yamlText } = this.#options.facts
    return json(await objectAnswer(ref, { model, objects, yamlText }, signal))
  }

  async #search({ query }: Question): Promise<HttpResponse> {
    const text = new URLSearchParams(query).get('text') ?? ''
    if (text.length > mostSearched) return problem(400, `a search may have ${mostSearched} characters`)
    return json((await this.#options.followed()).view.search(text))
  }

  async #placement({ query }: Question): Promise<HttpResponse> {
    const live = await this.#options.live()
    const nodes = new Set(new URLSearchParams(query).getAll('node'))
    return json({ pods: placedOn(nodes, (node) => live.podsOn(node)) })
  }

  async #prices(): Promise<HttpResponse> {
    const live = await this.#options.live()
    const journal = live.journal()
    if ('absent' in journal) return json(journal)
    const nowMs = this.#options.clock.now()
    const { perHour } = live.header(nowMs).price
    return json(
      perHour === undefined ? { absent: 'no node has a known price' } : priceHistory(journal, nowMs, perHour),
    )
  }

  async #spend({ query }: Question): Promise<HttpResponse> {
    const asked = spendQuestion(new URLSearchParams(query))
    if ('problem' in asked) return problem(400, asked.problem)
    const { past } = await this.#options.live()
    const { clock } = this.#options
    const absent = await this.#nothingIn(past)
    if (absent !== undefined) return json({ absent })
    return json(await inSlices(spendAnswer(past, asked, clock.now()), { ...slicing, clock }))
  }

  async #decisions({ query }: Question): Promise<HttpResponse> {
    const asked = new URLSearchParams(query)
    const { past } = await this.#options.live()
    const absent = await this.#nothingIn(past)
    if (absent !== undefined) return json({ absent })
    return json(decisionsAnswer(past, asked))
  }

  /** Why there is no journal; undefined if there is one, or one is being read. */
  async #nothingIn(past: Past): Promise<string | undefined> {
    const journal = (await this.#options.live()).journal()
    return 'absent' in journal && !past.isReading && past.spend.fromMs === undefined
      ? journal.absent
      : undefined
  }

  async #savings(): Promise<HttpResponse> {
    const journal = (await this.#options.live()).journal()
    return json('absent' in journal ? journal : { days: savingsByDay(journal, this.#options.clock.now()) })
  }
}
