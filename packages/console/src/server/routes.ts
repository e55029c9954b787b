/** Questions of the page, each with its answer as JSON. */
import { savingsByDay } from '@tenon/operator/objects'
import type { Clock, HttpResponse } from '@tenon/runtime'
import { type AnswerPort, copyQuestions, type Question } from '../answers/answers.ts'
import type { ConsoleFacts } from '../answers/facts.ts'
import { placedOn } from '../answers/placement.ts'
import { priceHistory } from '../answers/price-history.ts'
import type { ConsoleModel } from '../model/model.ts'
import { answered, json, problem } from './answer.ts'

/** Characters of a manifest that is read here while somebody types; a longer one is read where nobody waits. */
const mostTyped = 16_384

/** Of a manifest: some hundred NodePools. */
const mostCharacters = 262_144

type Answerer = (question: Question) => Promise<HttpResponse>

/** What is known without asking anybody. */
type Followed = Pick<ConsoleModel, 'header' | 'journal' | 'podsOn'>

export interface RoutesOptions {
  readonly facts: Pick<ConsoleFacts, 'fields' | 'readManifests'>
  /** Answers what needs a copy of the cluster. */
  readonly copies: AnswerPort
  readonly clock: Clock
  readonly live: () => Promise<Followed>
}

/** Answers by path. All of them read. */
export class Routes {
  readonly #options: RoutesOptions
  /** By method and path: answered here, as they take no copy of the cluster. */
  readonly #quick: ReadonlyMap<string, Answerer>

  constructor(options: RoutesOptions) {
    const { facts } = options
    this.#options = options
    this.#quick = new Map<string, Answerer>([
      ['GET /api/fields', async () => json({ fields: await facts.fields() })],
      ['GET /api/placement', (question) => this.#placement(question)],
      ['GET /api/prices', () => this.#prices()],
      ['GET /api/savings', () => this.#savings()],
      ['POST /api/check', async ({ body }) => json({ problems: (await facts.readManifests(body)).problems })],
    ])
  }

  /** @returns undefined for a path that is no question. */
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
