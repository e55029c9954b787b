/** Answers questions of the page from snapshots, as JSON. */
import type { Snapshot } from '@tenon/ask'
import { costDimensions } from '@tenon/ask/cost'
import type { Clock } from '@tenon/runtime'
import { explainedNode, explainedNodePool, explainedPod, pendingAnswer } from './explain.ts'
import type { ConsoleFacts, SimulatedChanges } from './facts.ts'
import { poolsAnswer } from './pools.ts'
import { whatIfAnswer } from './simulate.ts'

/** A question as plain data, so that it can be sent to another thread. */
export interface Question {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The query string. */
  readonly query: string
  /** The request body. */
  readonly body: string
}

/** JSON with an HTTP status. */
export interface GivenAnswer {
  readonly status: number
  readonly text: string
}

/**
 * Answers {@link copyQuestions}. Each answer takes a snapshot and may compute for seconds, so it must not run
 * in a thread that serves others.
 */
export interface AnswerPort {
  /** Whether there is a recording to replay; absent: no. */
  readonly mayReplay?: boolean
  /** @throws the reason of `signal` when it aborts. */
  answer(question: Question, signal: AbortSignal): Promise<GivenAnswer>
}

/** Method and path of each question that {@link Answers} knows. Those with a body are read-only too. */
export const copyQuestions: ReadonlySet<string> = new Set([
  'GET /api/pending',
  'GET /api/explain',
  'GET /api/pools',
  'GET /api/cost',
  'GET /api/manifest',
  'GET /api/replay',
  'GET /api/start',
  'POST /api/check',
  'POST /api/simulate',
])

/** Limits how long a play can keep others waiting. */
const longestPlayMs = 7 * 24 * 3_600_000
/** How old a snapshot may be: the parts of a page ask one after the other. */
const snapshotMs = 1000

/** Answers in the current thread. */
export class Answers implements AnswerPort {
  readonly #facts: ConsoleFacts
  readonly #clock: Clock
  #snapshot: { readonly atMs: number; readonly promise: Promise<Snapshot> } | undefined

  constructor(facts: ConsoleFacts, clock: Clock) {
    this.#facts = facts
    this.#clock = clock
  }

  async answer(question: Question, signal: AbortSignal): Promise<GivenAnswer> {
    try {
      return await this.#answer(question, signal)
    } catch (error) {
      signal.throwIfAborted()
      return refused(502, error instanceof Error ? error.message : String(error))
    }
  }

  async #answer({ method, path, query, body }: Question, signal: AbortSignal): Promise<GivenAnswer> {
    const asked = new URLSearchParams(query)
    switch (`${method} ${path}`) {
      case 'GET /api/pending':
        return given(await pendingAnswer(await this.#now(signal)))
      case 'GET /api/explain':
        return await this.#explain(asked, signal)
      case 'GET /api/pools':
        return given(await poolsAnswer(await this.#now(signal), signal))
      case 'GET /api/cost':
        return await this.#cost(asked.get('by') ?? 'nodepool', signal)
      case 'GET /api/manifest':
        return await this.#manifest(asked.get('nodepool') ?? '', signal)
      case 'GET /api/replay':
        return this.#facts.replay === undefined ? nothingToReplay : given(await this.#facts.replay(signal))
      case 'GET /api/start':
        return given(
          (await this.#facts.start?.(() => this.#now(signal), signal)) ?? {
            absent: 'nothing is known of clouds',
          },
        )
      case 'POST /api/check':
        return given({ problems: (await this.#facts.readManifests(body)).problems })
      case 'POST /api/simulate':
        return await this.#simulate(
          { manifests: body, scales: asked.getAll('scale') },
          asked.get('for'),
          signal,
        )
      default:
        return refused(404, 'there is no such question')
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

  async #explain(asked: URLSearchParams, signal: AbortSignal): Promise<GivenAnswer> {
    const [kind = '', name = '', namespace = ''] = ['kind', 'name', 'namespace'].map(
      (each) => asked.get(each) ?? '',
    )
    const snapshot = await this.#now(signal)
    const explained =
      kind === 'pod'
        ? await explainedPod(snapshot, namespace, name)
        : kind === 'nodepool'
          ? await explainedNodePool(snapshot, name, signal)
          : await explainedNode(snapshot, name, signal)
    // Not an error: an object may disappear at any time, and browsers print a 404 on the console.
    return given(explained ?? { gone: `${kind} ${name} is not there` })
  }

  async #cost(by: string, signal: AbortSignal): Promise<GivenAnswer> {
    if (!(costDimensions as readonly string[]).includes(by))
      return refused(400, `by: use one of ${costDimensions.join(', ')}`)
    return given(await this.#facts.cost(await this.#now(signal), by))
  }

  async #manifest(name: string, signal: AbortSignal): Promise<GivenAnswer> {
    const { objects } = await this.#now(signal)
    const pool = objects.find((each) => each.kind === 'NodePool' && each.metadata.name === name)
    if (pool === undefined) return refused(404, `NodePool ${name} is not there`)
    return given({ text: this.#facts.manifestText(pool) })
  }

  async #simulate(
    changes: SimulatedChanges,
    forText: string | null,
    signal: AbortSignal,
  ): Promise<GivenAnswer> {
    const forMs = forText === null ? undefined : Number(forText)
    if (forMs !== undefined && !(forMs > 0 && forMs <= longestPlayMs))
      return refused(400, 'for: use milliseconds, at most 7 days')
    return given(await whatIfAnswer(this.#facts, await this.#now(signal), changes, forMs))
  }
}

/** The answer without a recording. */
export const nothingToReplay: GivenAnswer = given({
  absent: 'no recording was given: start with tenon console --trace week.tnr',
})

function given(value: object): GivenAnswer {
  return { status: 200, text: JSON.stringify(value) }
}

/** The page shows `error` to the user. */
function refused(status: number, error: string): GivenAnswer {
  return { status, text: JSON.stringify({ error }) }
}
