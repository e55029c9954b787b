/** The pages of one user: the view of the cluster, the stream of its changes, answers and actions. */
import { type Clock, eventLoopTurns, type HttpHandler, type HttpResponse, type Random } from '@tenon/runtime'
import { type ActionPort, type AgreedRequest, agreedRequestOf } from '../actions/request.ts'
import type { AnswerPort } from '../answers/answers.ts'
import type { ConsoleFacts } from '../answers/facts.ts'
import { pageChange, type PagePicture, pageView, type PageView } from '../model/page-view.ts'
import { answered, eventStream, json, problem } from './answer.ts'
import { EventLog } from './event-log.ts'
import type { FollowedCluster, LiveView } from './followed-cluster.ts'
import type { PageFile, PageFiles } from './page-files.ts'
import { Routes } from './routes.ts'

/** What the pages of one user are made of. */
export interface ConsolePagesOptions {
  readonly clock: Clock
  readonly random: Random
  readonly facts: Pick<ConsoleFacts, 'fields' | 'readManifests' | 'yamlText'>
  /** Answers questions that need a snapshot. */
  readonly copies: AnswerPort
  /** Starts to follow the cluster; called when the first page connects. */
  readonly follow: (signal: AbortSignal) => Promise<FollowedCluster>
  /** Carries out actions of the page; absent: the page is read-only. */
  readonly actions?: ActionPort
  /** Name of the user, if the page has several. */
  readonly user?: string
}

/** Changes are sent in batches, as more frequent drawing is useless. */
const tickMs = 100
/** A stream without events sends a keep-alive after this time. */
const idleMs = 15_000

/** What authenticated clients get. */
export class ConsolePages {
  readonly #options: ConsolePagesOptions
  readonly #files: PageFiles
  readonly #routes: Routes
  readonly #log: EventLog
  readonly #ended: AbortSignal
  #live: Promise<FollowedCluster> | undefined
  /** The model of which pages have the picture. */
  #shown: LiveView | undefined

  constructor(options: ConsolePagesOptions, files: PageFiles, ended: AbortSignal) {
    this.#options = options
    this.#files = files
    const { clock, copies, facts } = options
    this.#routes = new Routes({
      facts,
      copies,
      clock,
      live: async () => await this.#current(),
      followed: async () => await this.#followed(),
    })
    this.#log = new EventLog(options.random.uint32().toString(16))
    this.#ended = ended
    this.#tick(clock)
  }

  /** Sends changes to all streams, once per tick. */
  #tick(clock: Clock): void {
    if (this.#ended.aborted) return
    const changes = this.#shown?.takeChanges(clock.now()) ?? []
    if (changes.length > 0) this.#log.add(changes.map(pageChange))
    const cancel = clock.after(tickMs, () => {
      this.#ended.removeEventListener('abort', cancel)
      this.#tick(clock)
    })
    this.#ended.addEventListener('abort', cancel, { once: true })
  }

  async answer(
    { body, headers, method, path: target }: Parameters<HttpHandler>[0],
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const url = URL.parse(target, 'http://127.0.0.1')
    if (url === null) return problem(400, 'this is no address')
    const { pathname: path, search, searchParams: query } = url
    if (method !== 'GET' && method !== 'POST') return problem(405, 'the page only asks (GET, POST)')
    if (method === 'GET' && path === '/api/stream')
      return await this.#stream(headers['last-event-id'] ?? query.get('after') ?? undefined, signal)
    const text = body === undefined ? '' : Buffer.from(body).toString()
    if (path === '/api/actions') return await this.#act(method, text, signal)
    if (path.startsWith('/api/')) {
      const answer = await this.#routes.answer({ method, path, query: search.slice(1), body: text }, signal)
      return answer ?? problem(404, 'there is no such question')
    }
    if (method !== 'GET') return problem(405, 'files are only read (GET)')
    const isPacked = headers['accept-encoding']?.includes('gzip') === true
    const file = this.#files.get(path.slice(1))
    // Each view has its own address; all of them are the same page.
    const page = file ?? (path.includes('.') ? undefined : this.#files.get('index.html'))
    return page === undefined ? problem(404, 'there is no such file') : fileAnswer(page, isPacked)
  }

  async #stream(lastEventId: string | undefined, signal: AbortSignal): Promise<HttpResponse> {
    const { clock } = this.#options
    try {
      await this.#followed()
    } catch (error) {
      return problem(502, error instanceof Error ? error.message : String(error))
    }
    const picture = async () => {
      const live = await this.#current()
      const nowMs = clock.now()
      const changes = live.takeChanges(nowMs, Number.POSITIVE_INFINITY)
      // A first picture contains all changes so far, and no other page needs them.
      if (this.#shown !== undefined && changes.length > 0) this.#log.add(changes.map(pageChange))
      this.#shown = live
      const { actions, copies, user } = this.#options
      return pictureParts(pageView(live.view(nowMs)), {
        mayAct: actions !== undefined,
        mayReplay: copies.mayReplay === true,
        nowMs,
        ...(user !== undefined && { user }),
      })
    }
    const idle = (over: AbortSignal) => clock.sleep(idleMs, over)
    return eventStream(this.#log.follow(lastEventId, picture, idle, signal))
  }

  /** Starts to follow the cluster with the first page, and again after a failure. */
  async #followed(): Promise<FollowedCluster> {
    this.#live ??= this.#options.follow(this.#ended)
    try {
      return await this.#live
    } catch (error) {
      this.#live = undefined
      throw error
    }
  }

  /** The followed model, with all rows up to date. */
  async #current(): Promise<LiveView> {
    const { view } = await this.#followed()
    while (view.isBehind) {
      view.settle()
      await eventLoopTurns.next()
    }
    return view
  }

  async #act(method: string, text: string, signal: AbortSignal): Promise<HttpResponse> {
    const { actions } = this.#options
    if (actions === undefined)
      return problem(405, 'this console only reads: start it with --allow-actions to change something')
    if (method !== 'POST') return problem(405, 'actions are asked for with POST')
    let asked: AgreedRequest | undefined
    try {
      asked = agreedRequestOf(JSON.parse(text))
    } catch {
      asked = undefined
    }
    if (asked === undefined) return problem(400, 'this is no action')
    try {
      const planned = await actions.plan(asked.request)
      const { command } = planned
      // Runs exactly the command that the user has confirmed.
      if (asked.agreed === undefined) return json({ command })
      if (asked.agreed !== command) return problem(409, `the command is now: ${command}`)
      return json({ command, done: await planned.run(signal) })
    } catch (error) {
      return problem(422, error instanceof Error ? error.message : String(error))
    }
  }
}

/** Small enough to block neither end of the stream. */
const partRows = 100

/** Rows of the tables as changes, then everything else. */
function* pictureParts(
  { nodes, claims, pools, groups, pendingPods, decisions, offerings, ...rest }: PageView,
  facts: Omit<PagePicture, keyof typeof rest>,
): Generator<string, void, undefined> {
  const tables = { nodes, claims, pools, groups, pendingPods, decisions, offerings }
  for (const [table, rows] of Object.entries(tables))
    for (let at = 0; at < rows.length; at += partRows)
      yield JSON.stringify({ table, set: rows.slice(at, at + partRows), removed: [] })
  yield JSON.stringify({ ...rest, ...facts } satisfies PagePicture)
}

function fileAnswer({ contentType, gzipped, text }: PageFile, isPacked: boolean): HttpResponse {
  return isPacked
    ? answered(200, contentType, gzipped, { 'content-encoding': 'gzip', vary: 'accept-encoding' })
    : answered(200, contentType, text, { vary: 'accept-encoding' })
}
