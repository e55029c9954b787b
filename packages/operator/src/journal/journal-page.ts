/**
 * `GET /debug/journal?since=1h&follow=true`: entries as JSON lines, oldest first. With `stored=true` those of earlier processes
 * too, as far as `--journal-path` has them; these are not followed.
 */
import { parseDuration } from '@tenon/api'
import { type Clock, type HttpRequest, type HttpResponse, oneChunk } from '@tenon/runtime'
import type { Journal } from './journal.ts'

/** The stream of a follower that is further behind ends. */
const mostWaiting = 20_000
/** Other work runs between chunks. */
const linesPerChunk = 200

/** @param signal ends the stream of a follower. */
export function journalPage(
  { journal, clock }: { readonly journal: Journal; readonly clock: Pick<Clock, 'now'> },
  { path }: Pick<HttpRequest, 'path'>,
  signal?: AbortSignal,
): HttpResponse {
  const query = new URLSearchParams(path.split('?')[1] ?? '')
  const since = query.get('since')
  const sinceMs = since === null ? Number.NEGATIVE_INFINITY : timeOf(since, clock.now())
  if (sinceMs === undefined)
    return {
      status: 400,
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body: oneChunk(
        `since: "${since}" is no duration such as 1h30m and no time such as 2026-11-26T08:00:00Z\n`,
      ),
    }
  const body =
    query.get('stored') === 'true'
      ? everything(journal, sinceMs, signal)
      : query.get('follow') === 'true'
        ? followed(journal, sinceMs, signal)
        : chunks(journal.lines(sinceMs))
  return { status: 200, headers: { 'content-type': 'application/x-ndjson' }, body }
}

/** Unix milliseconds; undefined if the text is neither a duration nor a time. */
function timeOf(text: string, nowMs: number): number | undefined {
  const agoMs = parseDuration(text)
  if (agoMs !== undefined) return nowMs - agoMs
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

async function* chunks(lines: Iterable<string>): AsyncGenerator<string, void, undefined> {
  let part: string[] = []
  for (const line of lines) {
    part.push(line)
    if (part.length < linesPerChunk) continue
    yield textOf(part)
    part = []
  }
  if (part.length > 0) yield textOf(part)
}

/** What is on disk, then what is not written yet. */
async function* everything(
  journal: Journal,
  sinceMs: number,
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<string, void, undefined> {
  let [part, lastMs]: [string[], number] = [[], sinceMs]
  for await (const line of journal.stored?.(signal) ?? []) {
    const atMs = timeOfLine(line)
    if (!(atMs >= sinceMs)) continue
    lastMs = Math.max(lastMs, atMs)
    part.push(line)
    if (part.length < linesPerChunk) continue
    yield textOf(part)
    part = []
  }
  if (part.length > 0) yield textOf(part)
  // Readers know entries by their id.
  yield* chunks(journal.lines(lastMs))
}

/** Without parsing the line; NaN if it has no time. */
function timeOfLine(line: string): number {
  return Date.parse(/"at":"([^"]*)"/.exec(line)?.[1] ?? '')
}

async function* followed(
  journal: Journal,
  sinceMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<string, void, undefined> {
  const waiting: string[] = []
  let wake: () => void = () => undefined
  let isBehind = false
  const forget = journal.follow(({ line }) => {
    if (waiting.length < mostWaiting) waiting.push(line)
    else isBehind = true
    wake()
  })
  const aborted = () => {
    wake()
  }
  signal?.addEventListener('abort', aborted, { once: true })
  try {
    // The first step takes all entries at once, before more can be added.
    const known = journal.lines(sinceMs)
    const first = known.next()
    if (first.done !== true) {
      yield textOf([first.value])
      yield* chunks(known)
    }
    const goesOn = () => signal?.aborted !== true && !isBehind
    while (goesOn()) {
      if (waiting.length > 0) yield textOf(waiting.splice(0, linesPerChunk))
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  } finally {
    forget()
    signal?.removeEventListener('abort', aborted)
  }
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}
