/** Snapshots as lines of JSON (ask.md 4). */
import { createHash } from 'node:crypto'
import { isRecord, type KubeObject, ownValue } from '@tenon/api'
import type { JournalEntry, NodeDecision } from '@tenon/operator'
import { entryFrom, lineOf } from '@tenon/operator/objects'
import { type PartLine, type PodLine, PodParts, PodWriter } from './pod-lines.ts'
import { headProblem, readHead, type SnapshotHead } from './head.ts'
import { type Snapshot, type SnapshotCatalogue, snapshotVersion } from './snapshot.ts'

const apiVersion = 'tenon.sh/v1alpha1'
const kind = 'Snapshot'

type Line =
  | { readonly catalogue: SnapshotCatalogue }
  | { readonly object: KubeObject }
  | { readonly nodeDecision: NodeDecision }
  | PartLine
  | PodLine

/**
 * Lines without line ends. The last one holds their number and a checksum, so that truncated or damaged files
 * are detected. A file edited by hand is accepted if its last line has no checksum.
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
  const pods = new PodWriter()
  for (const object of objects)
    if (isPod(object)) for (const each of pods.lines(object)) yield line(each)
    else yield line({ object })
  for (const nodeDecision of nodeDecisions) yield line({ nodeDecision })
  for (const entry of journal) yield noted(lineOf(entry))
  yield JSON.stringify({ end: { lines, sha256: sum.digest('hex') } })
}

/** JSON has no Infinity. */
function infinityAsText(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'Infinity' : value
}

export interface SnapshotProblem {
  /** Counts from 1. */
  readonly line: number
  readonly message: string
}

export type ReadSnapshot = { readonly ok: Snapshot } | { readonly problem: SnapshotProblem }

export function readSnapshotText(text: string): ReadSnapshot {
  const reader = new SnapshotReader()
  reader.take(Buffer.from(text))
  return reader.end()
}

const newline = 0x0a

/** Parses a snapshot from chunks. A large file never becomes one string, which would double the time. */
export class SnapshotReader {
  readonly #objects: KubeObject[] = []
  readonly #catalogues: SnapshotCatalogue[] = []
  readonly #nodeDecisions: NodeDecision[] = []
  readonly #journal: JournalEntry[] = []
  readonly #pods = new PodParts()
  readonly #sum = createHash('sha256')
  #head: SnapshotHead | undefined
  #lines = 0
  #isComplete = false
  /** The start of a line that is not complete yet. */
  #begun: readonly Buffer[] = []
  #problem: SnapshotProblem | undefined

  /** Parses the next bytes; ignores them after a problem. */
  take(bytes: Uint8Array): void {
    const part = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let start = 0
    for (let end = part.indexOf(newline); end !== -1; end = part.indexOf(newline, start)) {
      const rest = part.subarray(start, end)
      this.#line(this.#begun.length === 0 ? rest : Buffer.concat([...this.#begun, rest]))
      this.#begun = []
      start = end + 1
    }
    if (start < part.length) this.#begun = [...this.#begun, part.subarray(start)]
  }

  #line(bytes: Buffer): void {
    if (this.#problem !== undefined) return
    const line = ++this.#lines
    const message = this.#read(bytes)
    if (message !== undefined) this.#problem = { line, message }
  }

  /** Call it after the last bytes. */
  end(): ReadSnapshot {
    if (this.#begun.length > 0) this.#line(Buffer.concat(this.#begun))
    if (this.#problem !== undefined) return { problem: this.#problem }
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

  #read(bytes: Buffer): string | undefined {
    const value = parsed(bytes)
    if (value === undefined) return 'the line is not a JSON object'
    if (this.#isComplete) return 'the snapshot has ended before this line'
    const { end } = value
    if (isRecord(end)) return this.#readEnd(end)
    this.#sum.update(bytes)
    if (this.#head === undefined) return this.#readHead(value)
    const { object, part, catalogue, nodeDecision } = value
    const whole = object ?? this.#pods.whole(value['pod'], value['parts'])
    if (isObject(whole)) this.#objects.push(whole)
    else if (isRecord(part)) this.#pods.add(part)
    else if (isCatalogue(catalogue)) this.#catalogues.push(catalogue)
    else if (isNodeDecision(nodeDecision)) this.#nodeDecisions.push(nodeDecision)
    else return this.#readEntry(bytes.toString())
    return undefined
  }

  /** Returns why the entry is invalid, if it is. */
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

function parsed(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isPod = (object: KubeObject): boolean => object.apiVersion === 'v1' && object.kind === 'Pod'

/** Checks only that it is an object; readers check its fields. */
function isObject(value: unknown): value is KubeObject {
  return (
    isRecord(value) &&
    typeof value['apiVersion'] === 'string' &&
    typeof value['kind'] === 'string' &&
    isRecord(value['metadata']) &&
    typeof value['metadata']['name'] === 'string'
  )
}

function isCatalogue(value: unknown): value is SnapshotCatalogue {
  if (!isRecord(value) || !Array.isArray(value['nodePools'])) return false
  const { instanceTypes } = value
  return instanceTypes === undefined || (Array.isArray(instanceTypes) && instanceTypes.every(isInstanceType))
}

function isInstanceType(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['name'] === 'string' &&
    Array.isArray(value['requirements']) &&
    Array.isArray(value['offerings']) &&
    isRecord(value['capacity']) &&
    isRecord(value['overhead'])
  )
}

function isNodeDecision(value: unknown): value is NodeDecision {
  return (
    isRecord(value) &&
    ['nodeClaim', 'nodePool', 'cause', 'message', 'at'].every(
      (name) => typeof ownValue(value, name) === 'string',
    )
  )
}
