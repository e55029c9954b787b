/** `GET /debug/snapshot`: all that a decision reads, in the lines of a snapshot file (ask.md 1, 4). */
import { snapshotLines, takeSnapshot } from '@tenon/ask/snapshot'
import type { Operator } from '@tenon/operator'
import { type Clock, eventLoopTurns, type HttpHandler } from '@tenon/runtime'
import { version } from '../../version.ts'

/** Cut so that decisions go on beside it. */
const sliceMs = 5
const chunkLength = 64 * 1024

/** Who answers. */
export interface SnapshotAnswerer {
  readonly operator: Operator
  readonly identity: string
  readonly isLeading: () => boolean
  readonly clock: Clock
}

/** Answers every request with a snapshot of this moment. */
export function snapshotPage({ operator, identity, isLeading, clock }: SnapshotAnswerer): HttpHandler {
  return async (_request, signal = new AbortController().signal) => {
    const slicing = { clock, turns: eventLoopTurns, sliceMs }
    const snapshot = await takeSnapshot(
      {
        operator,
        provider: operator.provider,
        origin: { kind: 'controller', identity, isLeading: isLeading() },
        program: `tenon ${version}`,
        clock,
        slicing,
      },
      signal,
    )
    return {
      status: 200,
      headers: { 'content-type': 'application/jsonl' },
      body: chunks(snapshotLines(snapshot)),
    }
  }
}

async function* chunks(lines: Iterable<string>): AsyncGenerator<string, void, undefined> {
  let chunk = ''
  for (const line of lines) {
    chunk += `${line}\n`
    if (chunk.length < chunkLength) continue
    yield chunk
    chunk = ''
    await eventLoopTurns.next()
  }
  if (chunk !== '') yield chunk
}
