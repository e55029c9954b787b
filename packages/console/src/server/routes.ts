/** Answers questions of the page as JSON. */
import { savingsByDay } from '@tenon/operator/objects'
import type { Clock, HttpResponse } from '@tenon/runtime'
import { type AnswerPort, copyQuestions, type Question } from '../answers/answers.ts'
import type { ConsoleFacts } from '../answers/facts.ts'
import { placedOn } from '../answers/placement.ts'
import { priceHistory } from '../answers/price-history.ts'
import type { ConsoleModel } from '../model/model.ts'
import { answered, json, problem } from './answer.ts'

/** Limit of manifests that this thread parses while the user types; longer ones go to another thread. */
const mostTyped = 16_384

/** Limit of a manifest: some hundred NodePools. */
const mostCharacters = 262_144

type RouteHandler = (question: Question) => Promise<HttpResponse>

/** The parts of the model that answers read. */
type Followed = Pick<ConsoleModel, 'header' | 'journal' | 'podsOn'>

export interface RoutesOptions {
  readonly facts: Pick<ConsoleFacts, 'fields' | 'readManifests'>
  /** Answers questions that need a snapshot. */
  readonly copies: AnswerPort
  readonly clock: Clock
  readonly live: () => Promise<Followed>
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
      ['GET /api/placement', (question) => this.#placement(question)],
      ['GET /api/prices', () => this.#prices()],
      ['GET /api/savings', () => this.#savings()],
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
      if (quick !== undefined) return await quick(question)
      const { status, text } = await this.#options.copies.answer(question, signal)
      return answered(status, 'application/json; charset=utf-8', text)
    } catch (error) {
      signal.throwIfAborted()
      return problem(502, error instanceof Error ? error.message : String(error))
    }
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

  async #savings(): Promise<HttpResponse> {
    const journal = (await this.#options.live()).journal()
    return json('absent' in journal ? journal : { days: savingsByDay(journal, this.#options.clock.now()) })
  }
}
