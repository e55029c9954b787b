/** `tenon report --shadow`: what Tenon would have done beside the autoscaler that runs (adoption.md 2). */
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { KubeObject } from '@tenon/api'
import { type LeftPod, type ShadowCase, type ShadowComparison, ShadowReader } from '@tenon/ask/report'
import { Redactor } from '@tenon/ask/snapshot'
import type { JournalEntry } from '@tenon/operator'
import { rfc3339, SystemClock } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { type ClusterConnection, onCluster } from '../../kubectl/connection.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { reachController, whyNot } from '../../source/controller.ts'
import {
  entriesIn,
  journalFileName,
  linesOf,
  mostLineBytes,
  sealedEntry,
} from '../../source/journal-lines.ts'

export interface ShadowFlags extends SourceFlags {
  /** Milliseconds. */
  readonly since?: number
  /** A directory or a file of `--journal-path`. */
  readonly journal?: string
}

/** Times as RFC 3339. */
interface PrintedPeriod {
  readonly from: string
  readonly to: string
}

export interface PrintedShadow extends Omit<ShadowComparison, 'covered' | 'gaps'> {
  readonly takenAt: string
  /** Where the journal is from. */
  readonly source: string
  /** Since when was asked for; absent: everything. */
  readonly since?: string
  /** What the journal has of it; absent if it has nothing. */
  readonly covered?: PrintedPeriod & { readonly hours: number }
  readonly gaps: readonly PrintedPeriod[]
  /** Lines of files that are cut off or damaged: what they said is unknown. */
  readonly unreadableLines: number
}

/** @throws CliError if there is no journal, or flags contradict each other. */
export async function shadowReport(
  io: Io,
  flags: ShadowFlags,
  redactKey: string | undefined,
): Promise<KubeObject & PrintedShadow> {
  if (flags.snapshot !== undefined)
    throw new CliError('--shadow reads the journal of a controller: leave -s out, or give --journal')
  if (flags.journal !== undefined) return await ofFiles(io, flags, flags.journal, redactKey)
  const run = async (connection: ClusterConnection | undefined) => {
    const found = await reachController(flags, connection, io.interrupted)
    if (found.kind !== 'reached')
      throw new CliError(`--shadow reads the journal of a controller with --observe-only: ${whyNot(found)}`)
    const { reach } = found
    const nowMs = (connection?.clock ?? new SystemClock()).now()
    const entries = entriesIn(await reach.get('/debug/journal', io.interrupted))
    return await printed(entries, { flags, nowMs, source: `the controller ${reach.leader}`, redactKey })
  }
  return flags.controller === undefined ? await onCluster(io, flags, run) : await run(undefined)
}

async function ofFiles(io: Io, flags: ShadowFlags, path: string, redactKey: string | undefined) {
  const files = await filesAt(resolve(io.cwd, path)).catch((cause: unknown) => {
    throw new CliError(`--journal: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  })
  if (files.length === 0)
    throw new CliError(`--journal ${path}: no file journal-NNNNNNNN.jsonl, as --journal-path writes them`)
  const read = new FileEntries(files)
  const nowMs = new SystemClock().now()
  const report = await printed(read.all(), { flags, nowMs, source: path, redactKey })
  return { ...report, unreadableLines: read.unreadable }
}

/** Oldest first. */
async function filesAt(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path]
  const names = (await readdir(path)).filter((name) => journalFileName.test(name))
  return names.toSorted().map((name) => join(path, name))
}

/** Reads a file after the other, line by line. */
class FileEntries {
  readonly #files: readonly string[]
  unreadable = 0

  constructor(files: readonly string[]) {
    this.#files = files
  }

  async *all(): AsyncGenerator<JournalEntry, void, undefined> {
    for (const file of this.#files)
      for await (const { bytes } of linesOf(createReadStream(file), mostLineBytes)) {
        const read = sealedEntry(bytes)
        if ('entry' in read) yield read.entry
        else this.unreadable++
      }
  }
}

interface Asked {
  readonly flags: ShadowFlags
  readonly nowMs: number
  readonly source: string
  readonly redactKey: string | undefined
}

async function printed(
  entries: AsyncIterable<JournalEntry>,
  { flags, nowMs, source, redactKey }: Asked,
): Promise<KubeObject & PrintedShadow> {
  const fromMs = flags.since === undefined ? Number.NEGATIVE_INFINITY : nowMs - flags.since
  const reader = new ShadowReader({ fromMs, toMs: nowMs })
  for await (const entry of entries) reader.add(entry)
  const { covered, gaps, ...comparison } = reader.result()
  const hidden = hiding(redactKey)
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'ShadowReport',
    metadata: { name: 'shadow' },
    takenAt: rfc3339(nowMs),
    source: redactKey === undefined ? source : 'a journal',
    ...(flags.since !== undefined && { since: rfc3339(fromMs) }),
    ...(covered !== undefined && { covered: { ...periodOf(covered), hours: covered.hours } }),
    ...comparison,
    gaps: gaps.map(periodOf),
    cases: comparison.cases.map(hidden.case),
    leftPods: comparison.leftPods.map(hidden.pod),
    unreadableLines: 0,
  }
}

function periodOf({ fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }): PrintedPeriod {
  return { from: rfc3339(fromMs), to: rfc3339(toMs) }
}

/** Pseudonyms in place of names; a reason may contain any name, and is left out. */
function hiding(key: string | undefined): {
  readonly case: (each: ShadowCase) => ShadowCase
  readonly pod: (each: LeftPod) => LeftPod
} {
  if (key === undefined) return { case: (each) => each, pod: (each) => each }
  const redactor = new Redactor([], key)
  const name = (text: string) =>
    text
      .split('/')
      .map((part) => redactor.name(part))
      .join('/')
  return {
    case: (each) => ({
      ...each,
      name: each.kind === 'launch' ? each.name : name(each.name),
      ...(each.nodePool !== undefined && { nodePool: name(each.nodePool) }),
    }),
    pod: ({ at, node, pod }) => ({ at, pod: name(pod), node: name(node), why: 'redacted' }),
  }
}
