/** `tenon journal`: what the leading controller did (ask.md 3). */
import {
  EntrySelector,
  type JournalEntry,
  type JournalSelection,
  savingsByDay,
} from '@tenon/operator/objects'
import { SystemClock } from '@tenon/runtime'
import { KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { entryColumns, objectOf, savingsColumns } from './entry-table.ts'
import { type ClusterConnection, onCluster } from '../../kubectl/connection.ts'
import { type ControllerReach, reachController } from '../../source/controller.ts'
import { followedJournal, journalOf } from '../../source/controller-pages.ts'
import type { ListFlags, SourceFlags, WatchFlags } from '../../kubectl/flags.ts'
import { type Format, formatOf } from '../../kubectl/output/format.ts'
import { printObjects } from '../../kubectl/output/objects.ts'
import { sortedBy } from '../../kubectl/output/sort.ts'
import { TableWriter, tableLines } from '../../kubectl/output/table.ts'

export interface JournalFlags extends SourceFlags, ListFlags, WatchFlags {
  /** Milliseconds. */
  readonly since?: number
  readonly node?: string
  readonly nodepool?: string
  readonly observed?: true
  readonly savings?: true
}

interface Output {
  readonly format: Format
  readonly nowMs: () => number
  readonly out: (text: string) => void
}

/** @throws KubectlError if the controller cannot be reached, or the flags contradict each other. */
export async function runJournal(io: Io, flags: JournalFlags): Promise<void> {
  if (flags.snapshot !== undefined)
    throw new KubectlError('error: a snapshot has no journal: ask the cluster, without --snapshot')
  if (flags.savings === true && (flags.watch === true || flags.output !== undefined))
    throw new KubectlError('error: --savings prints a table only: leave -w and -o out')
  const format = formatOf(flags.output)
  const run = async (connection: ClusterConnection | undefined) => {
    const reach = await reached(flags, connection, io.interrupted)
    const clock = connection?.clock ?? new SystemClock()
    const nowMs = () => clock.now()
    await print(io, flags, { format, nowMs, out: io.out }, reach)
  }
  if (flags.controller !== undefined) await run(undefined)
  else await onCluster(io, flags, run)
}

async function reached(
  flags: JournalFlags,
  connection: ClusterConnection | undefined,
  signal: AbortSignal,
): Promise<ControllerReach> {
  const found = await reachController(flags, connection, signal)
  switch (found.kind) {
    case 'reached':
      return found.reach
    case 'noController':
      throw new KubectlError(
        'error: no Tenon leads this cluster: its journal is kept by the leading controller',
      )
    case 'forbidden':
      throw new KubectlError(
        `Error from server (Forbidden): ${found.message}: the journal is with the controller, and needs the right ${found.right}`,
      )
    case 'unreachable':
      throw new KubectlError(`error: ${found.message}`)
  }
}

async function print(io: Io, flags: JournalFlags, output: Output, reach: ControllerReach): Promise<void> {
  // The whole journal: earlier entries may have the node under its previous name.
  const known = await journalOf(reach, io.interrupted)
  if (flags.savings === true) {
    printSavings(io, known, output.nowMs(), flags)
    return
  }
  const selector = new EntrySelector(selectionOf(flags), known)
  const sinceMs = flags.since === undefined ? Number.NEGATIVE_INFINITY : output.nowMs() - flags.since
  const chosen = known.filter((entry) => selector.accepts(entry) && Date.parse(entry.at) >= sinceMs)
  const table = new TableWriter(output.out)
  printEntries(output, table, sorted(flags, chosen), { isList: true, noHeaders: flags.headers === false })
  if (flags.watch !== true) {
    if (chosen.length === 0) io.err('No resources found\n')
    return
  }
  await follow(io, { reach, selector, after: known.at(-1) }, (entry) => {
    printEntries(output, table, [entry], { isList: false, noHeaders: true })
  })
}

/** Prints new entries until the user interrupts. */
async function follow(
  io: Io,
  {
    reach,
    selector,
    after,
  }: {
    readonly reach: ControllerReach
    readonly selector: EntrySelector
    readonly after: JournalEntry | undefined
  },
  onEntry: (entry: JournalEntry) => void,
): Promise<void> {
  let isNew = after === undefined
  try {
    for await (const entry of followedJournal(reach, after, io.interrupted)) {
      if (isNew && selector.accepts(entry)) onEntry(entry)
      // Several entries may have the same time; their order is stable.
      isNew ||= entry.id === after?.id
    }
  } catch (error) {
    if (!io.interrupted.aborted) throw error
  }
}

function selectionOf({ node, nodepool, observed }: JournalFlags): JournalSelection {
  return {
    ...(node !== undefined && { node }),
    ...(nodepool !== undefined && { nodePool: nodepool }),
    ...(observed === true && { observed }),
  }
}

function sorted({ sortBy }: JournalFlags, entries: readonly JournalEntry[]): readonly JournalEntry[] {
  return sortBy === undefined ? entries : sortedBy(sortBy, entries, objectOf)
}

function printEntries(
  { format, nowMs, out }: Output,
  table: TableWriter,
  entries: readonly JournalEntry[],
  { isList, noHeaders }: { readonly isList: boolean; readonly noHeaders: boolean },
): void {
  if (format.kind !== 'plain') {
    const nameOf = ({ metadata }: { readonly metadata: { readonly name: string } }) =>
      `journalentry.tenon.sh/${metadata.name}`
    printObjects(out, format, { objects: entries.map(objectOf), isList, nameOf, noHeaders })
    return
  }
  if (entries.length === 0) return
  table.write(tableLines(entryColumns(nowMs), entries, { isWide: format.isWide, noHeaders }))
}

function printSavings(io: Io, entries: readonly JournalEntry[], nowMs: number, flags: JournalFlags): void {
  const sinceMs = flags.since === undefined ? Number.NEGATIVE_INFINITY : nowMs - flags.since
  const { observed = false } = flags
  const selector = new EntrySelector({ ...(flags.nodepool !== undefined && { nodePool: flags.nodepool }) })
  const chosen = entries.filter((entry) => Date.parse(entry.at) >= sinceMs && selector.accepts(entry))
  const days = savingsByDay(chosen, nowMs, observed)
  if (days.length === 0) {
    io.err('No moves found\n')
    return
  }
  new TableWriter(io.out).write(tableLines(savingsColumns, days, { noHeaders: flags.headers === false }))
}
