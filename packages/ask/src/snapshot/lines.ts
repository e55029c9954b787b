/** Snapshots as lines of JSON (ask.md 4). */
import { createHash } from 'node:crypto'
import { type KubeObject, ownValue } from '@tenon/api'
import { entryFrom, type JournalEntry, lineOf, type NodeDecision } from '@tenon/operator'
import { headProblem, isFields, readHead, type SnapshotHead } from './head.ts'
import { type Snapshot, type SnapshotCatalogue, snapshotVersion } from './snapshot.ts'

const apiVersion = 'tenon.sh/v1alpha1'
const kind = 'Snapshot'

type Line =
  | { readonly catalogue: SnapshotCatalogue }
  | { readonly object: KubeObject }
  | { readonly nodeDecision: NodeDecision }

/**
 * Lines without their ends. The last one has their number and a sum of all before it, so that a file that was cut off
 * or damaged is noticed. A file that was edited by hand is read when its last line has no sum.
 */
export function* snapshotLines(snapshot: Snapshot): Generator<string, void, undefined> {
  const { objects, catalogues, nodeDecisions, journal, ...head } = snapshot
  const sum = createHash('sha256')
  let lines = 1
  const noted = (text: string): string => {
    lines++
    sum.update(text)
    return text
  }
  const line = (value: Line): string => noted(JSON.stringify(value))
  yield noted(JSON.stringify({ apiVersion, kind, version: snapshotVersion, ...head }, infinityAsText))
  for (const catalogue of catalogues) yield line({ catalogue })
  for (const object of objects) yield line({ object })
  for (const nodeDecision of nodeDecisions) yield line({ nodeDecision })
  for (const entry of journal) yield noted(lineOf(entry))
  yield JSON.stringify({ end: { lines, sha256: sum.digest('hex') } })
}

/** JSON has no word for a time that never ends. */
function infinityAsText(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'Infinity' : value
}

/** Why a snapshot cannot be read. */
export interface SnapshotProblem {
  /** From 1. */
  readonly line: number
  readonly message: string
}

export type ReadSnapshot = { readonly ok: Snapshot } | { readonly problem: SnapshotProblem }

/** Reads the text of a file. */
export function readSnapshotText(text: string): ReadSnapshot {
  const reader = new SnapshotReader()
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf('\n', start)
    const problem = reader.take(text.slice(start, end === -1 ? undefined : end))
    if (problem !== undefined) return { problem }
    if (end === -1) break
    start = end + 1
  }
  return reader.end()
}

/** Takes the lines of a snapshot one after the other. */
class SnapshotReader {
  readonly #objects: KubeObject[] = []
  readonly #catalogues: SnapshotCatalogue[] = []
  readonly #nodeDecisions: NodeDecision[] = []
  readonly #journal: JournalEntry[] = []
  readonly #sum = createHash('sha256')
  #head: SnapshotHead | undefined
  #lines = 0
  #isComplete = false

  /** @returns what is wrong with the line. */
  take(text: string): SnapshotProblem | undefined {
    const line = ++this.#lines
    const message = this.#read(text)
    return message === undefined ? undefined : { line, message }
  }

  /** Call it once there are no more lines. */
  end(): ReadSnapshot {
    const line = this.#lines
    if (this.#head === undefined) return { problem: { line: 1, message: 'the file is empty' } }
    if (!this.#isComplete)
      return { problem: { line, message: `the file ends after line ${line}; the rest is missing` } }
    return {
      ok: {
        ...this.#head,
        objects: this.#objects,
        catalogues: this.#catalogues,
        nodeDecisions: this.#nodeDecisions,
        journal: this.#journal,
      },
    }
  }

  #read(text: string): string | undefined {
    const value = parsed(text)
    if (value === undefined) return 'the line is not a JSON object'
    if (this.#isComplete) return 'the snapshot has ended before this line'
    const { end } = value
    if (isFields(end)) return this.#readEnd(end)
    this.#sum.update(text)
    if (this.#head === undefined) return this.#readHead(value)
    const { object, catalogue, nodeDecision } = value
    if (isObject(object)) this.#objects.push(object)
    else if (isCatalogue(catalogue)) this.#catalogues.push(catalogue)
    else if (isNodeDecision(nodeDecision)) this.#nodeDecisions.push(nodeDecision)
    else return this.#readEntry(text)
    return undefined
  }

  /** Entries of the journal are as the journal has them. */
  #readEntry(text: string): string | undefined {
    const read = entryFrom(text)
    if ('problem' in read) return 'the line is not part of a snapshot'
    this.#journal.push(read.entry)
    return undefined
  }

  #readHead(value: Readonly<Record<string, unknown>>): string | undefined {
    if (value['kind'] !== kind || typeof value['version'] !== 'number')
      return `this is not a ${kind} of ${apiVersion}; make one with tenon snapshot save`
    if (value['version'] > snapshotVersion)
      return `the snapshot has version ${value['version']}, and this program reads versions up to ${snapshotVersion}; use the program that wrote it, or a later one`
    const problem = headProblem(value)
    if (problem !== undefined) return problem
    this.#head = readHead(value)
    return undefined
  }

  #readEnd({ lines, sha256 }: Readonly<Record<string, unknown>>): string | undefined {
    if (lines !== this.#lines) return `the snapshot should have ${String(lines)} lines and has ${this.#lines}`
    if (sha256 !== undefined && sha256 !== this.#sum.digest('hex'))
      return 'the snapshot was changed after it was written; if that was on purpose, remove "sha256" from this line'
    this.#isComplete = true
    return undefined
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Whatever else it holds: those who read it check that. */
function isObject(value: unknown): value is KubeObject {
  return (
    isFields(value) &&
    typeof value['apiVersion'] === 'string' &&
    typeof value['kind'] === 'string' &&
    isFields(value['metadata']) &&
    typeof value['metadata']['name'] === 'string'
  )
}

function isCatalogue(value: unknown): value is SnapshotCatalogue {
  if (!isFields(value) || !Array.isArray(value['nodePools'])) return false
  const { instanceTypes } = value
  return instanceTypes === undefined || (Array.isArray(instanceTypes) && instanceTypes.every(isInstanceType))
}

function isInstanceType(value: unknown): boolean {
  return (
    isFields(value) &&
    typeof value['name'] === 'string' &&
    Array.isArray(value['requirements']) &&
    Array.isArray(value['offerings']) &&
    isFields(value['capacity']) &&
    isFields(value['overhead'])
  )
}

function isNodeDecision(value: unknown): value is NodeDecision {
  return (
    isFields(value) &&
    ['nodeClaim', 'nodePool', 'cause', 'message', 'at'].every(
      (name) => typeof ownValue(value, name) === 'string',
    )
  )
}
