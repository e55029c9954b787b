/** `/snapshotz`: the state of a loop, for debugging (cluster-autoscaler.md 7.4). */
import type { Node, Pod } from '@tenon/api'
import type { GroupHold } from '@tenon/provider'
import { type HttpHandler, type HttpResponse, oneChunk, rfc3339Micro, type Turns } from '@tenon/runtime'
import type { NodeTemplate } from '../model.ts'

/** The state of a loop. Not changed later. */
export interface DebuggingSnapshot {
  readonly nodes: readonly { readonly node: Node; readonly pods: readonly Pod[] }[]
  /** Pods without a node that fit on existing nodes. */
  readonly unscheduledPodsCanBeScheduled: readonly Pod[]
  readonly templates: ReadonlyMap<string, NodeTemplate>
  /** By group id: what must not be changed at present. */
  readonly holds: ReadonlyMap<string, GroupHold>
  readonly startMs: number
  readonly endMs: number
}

/** The loop's side of the handler. */
export interface SnapshotzRequests {
  /** Whether a request waits; read at the start of a complete loop. */
  readonly isWanted: boolean
  provide(snapshot: DebuggingSnapshot): void
  /** The loop ended early without a snapshot. */
  fail(reason: string, nowMs: number): void
}

type Result =
  | { readonly kind: 'snapshot'; readonly snapshot: DebuggingSnapshot }
  | { readonly kind: 'failed'; readonly reason: string; readonly atMs: number }
  | { readonly kind: 'gone' }

/** Serves one request at a time. */
export class SnapshotzServer implements SnapshotzRequests {
  readonly #turns: Turns
  readonly #ending: AbortSignal
  #resolve: ((result: Result) => void) | undefined

  /** @param ending aborts when the process stops. */
  constructor(turns: Turns, ending: AbortSignal) {
    this.#turns = turns
    this.#ending = ending
  }

  get isWanted(): boolean {
    return this.#resolve !== undefined
  }

  provide(snapshot: DebuggingSnapshot): void {
    this.#resolve?.({ kind: 'snapshot', snapshot })
  }

  fail(reason: string, nowMs: number): void {
    this.#resolve?.({ kind: 'failed', reason, atMs: nowMs })
  }

  readonly handle: HttpHandler = async (_request, signal) => {
    if (this.#resolve !== undefined) return plain(429, 'another snapshot is being waited for\n')
    const result = await this.#wait(signal)
    if (result.kind === 'gone') return plain(503, 'the snapshot was given up\n')
    if (result.kind === 'failed') return json(500, oneChunk(failureText(result)))
    return json(200, snapshotText(result.snapshot, this.#turns))
  }

  async #wait(signal: AbortSignal | undefined): Promise<Result> {
    const stopped = AbortSignal.any([this.#ending, ...(signal === undefined ? [] : [signal])])
    if (stopped.aborted) return { kind: 'gone' }
    const { promise, resolve } = Promise.withResolvers<Result>()
    const end = () => {
      resolve({ kind: 'gone' })
    }
    this.#resolve = resolve
    stopped.addEventListener('abort', end, { once: true })
    const result = await promise
    stopped.removeEventListener('abort', end)
    this.#resolve = undefined
    return result
  }
}

function failureText({ reason, atMs }: Extract<Result, { kind: 'failed' }>): string {
  const at = rfc3339Micro(atMs)
  return JSON.stringify({
    NodeList: [],
    UnscheduledPodsCanBeScheduled: [],
    Error: reason,
    StartTimestamp: at,
    EndTimestamp: at,
    TemplateNodes: {},
  })
}

/** Written node by node: as one text, a large cluster would block the event loop. */
async function* snapshotText(snapshot: DebuggingSnapshot, turns: Turns): AsyncGenerator<string> {
  yield '{"NodeList":['
  yield* pieces(snapshot.nodes.map(entry), turns)
  yield '],"UnscheduledPodsCanBeScheduled":['
  yield* pieces(snapshot.unscheduledPodsCanBeScheduled, turns)
  const [start, end] = [snapshot.startMs, snapshot.endMs].map((ms) => JSON.stringify(rfc3339Micro(ms)))
  yield `],"StartTimestamp":${start},"EndTimestamp":${end},"TemplateNodes":{`
  let separator = ''
  for (const [group, template] of snapshot.templates) {
    yield `${separator}${JSON.stringify(group)}:${JSON.stringify(entry(template))}`
    separator = ','
  }
  const holds = Object.fromEntries(
    [...snapshot.holds].map(([group, { forbids, reason }]) => [group, { Forbids: forbids, Reason: reason }]),
  )
  yield `},"NodeGroupHolds":${JSON.stringify(holds)}}`
}

/** Elements between two yields to the event loop. */
const piecesPerTurn = 50

async function* pieces(elements: readonly object[], turns: Turns): AsyncGenerator<string> {
  for (let at = 0; at < elements.length; at += piecesPerTurn) {
    if (at > 0) await turns.next()
    const texts = elements.slice(at, at + piecesPerTurn).map((element) => JSON.stringify(element))
    yield `${at > 0 ? ',' : ''}${texts.join(',')}`
  }
}

function entry({ node, pods }: { readonly node: Node; readonly pods: readonly Pod[] }): object {
  return { Node: node, Pods: pods }
}

function json(status: number, body: HttpResponse['body']): HttpResponse {
  return { status, headers: { 'content-type': 'application/json' }, body }
}

function plain(status: number, text: string): HttpResponse {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: oneChunk(text) }
}
