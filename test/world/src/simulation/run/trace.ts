/** A run on disk: its story, its results, and its last events. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Report } from '../simulation.ts'
import { parseStory, type Story } from '../story.ts'

/** What `--replay` needs, and what helps a person. */
interface Trace {
  readonly story: Story
  readonly hash: string
}

/** Writes a trace as JSON; `events` and `logs` are its last lines. */
export async function writeTrace(path: string, report: Report): Promise<void> {
  const { story, hash, violation, events, tail, logs, clusterEvents } = report
  const trace = { story, hash, violation, eventCount: events, events: tail, clusterEvents, logs }
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `${JSON.stringify(trace, null, 1)}\n`)
}

/** @throws Error if the file cannot be read or is not a trace. */
export async function readTrace(path: string): Promise<Trace> {
  const text = await readFile(path, 'utf8')
  let fields: { readonly story?: unknown; readonly hash?: unknown }
  try {
    fields = JSON.parse(text) as typeof fields
  } catch (cause) {
    throw new Error(`${path} is not a trace: it is not JSON`, { cause })
  }
  return { story: parseStory(fields.story), hash: String(fields.hash) }
}
