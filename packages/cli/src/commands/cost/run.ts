/** `tenon cost`: what the cluster costs, and for whom (ask.md 11). */
import { karpenterKinds, parseDuration } from '@tenon/api'
import type { CostDimension, Snapshot } from '@tenon/ask'
import { costReport, hoursPerMonth, ofKind, pricedInstances, PriceList, spentReport } from '@tenon/ask/cost'
import type { JournalEntry } from '@tenon/operator'
import { costObject, costLines, spentLines, spentObject } from './print.ts'
import { CliError, KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { paintFor } from '../../kubectl/color.ts'
import { onCluster } from '../../kubectl/connection.ts'
import { type ControllerReach, reachController, whyNot } from '../../source/controller.ts'
import type { OutputFlags, SourceFlags } from '../../kubectl/flags.ts'
import { formatOf, type ObjectFormat } from '../../kubectl/output/format.ts'
import { printObjects } from '../../kubectl/output/objects.ts'
import { TableWriter } from '../../kubectl/output/table.ts'
import { journalOf } from '../../source/controller-pages.ts'
import { controllerSnapshot } from '../../source/snapshot.ts'
import { snapshotFile } from '../../source/snapshot-file.ts'

export interface CostFlags extends SourceFlags, OutputFlags {
  readonly by: CostDimension
  /** A duration. */
  readonly since?: string
}

/** @throws CliError if no source knows prices. */
export async function runCost(io: Io, flags: CostFlags): Promise<void> {
  const format = formatOf(flags.output)
  const table = new TableWriter(io.out, paintFor(io, flags.color))
  const sinceMs = sinceOf(flags)
  if (sinceMs !== undefined) {
    await onController(io, flags, async (reach) => {
      const snapshot = await controllerSnapshot(reach, io.interrupted)
      const entries = await journalOf(reach, io.interrupted, sinceMs)
      printSpent(io, { format, table }, spentIn(snapshot, entries, sinceMs))
    })
    return
  }
  const print = (snapshot: Snapshot) => {
    printCost(io, { format, table }, snapshot, flags.by)
  }
  if (flags.snapshot !== undefined) print(await snapshotFile(io, flags.snapshot))
  else
    await onController(io, flags, async (reach) => {
      print(await controllerSnapshot(reach, io.interrupted))
    })
}

function sinceOf({ by, since, snapshot }: CostFlags): number | undefined {
  if (since === undefined) return undefined
  const ms = parseDuration(since)
  if (ms === undefined || ms <= 0)
    throw new KubectlError(`error: --since ${since}: use a duration such as 24h or 1h30m`)
  if (by !== 'nodepool')
    throw new KubectlError(
      `error: --since adds up what the journal has, which knows NodePools and no ${by}: leave out --by, or --since`,
    )
  if (snapshot !== undefined)
    throw new KubectlError('error: a snapshot has no journal: leave out --since, or --snapshot')
  return ms
}

async function onController(
  io: Io,
  flags: CostFlags,
  work: (reach: ControllerReach) => Promise<void>,
): Promise<void> {
  const reached =
    flags.controller === undefined ? undefined : await reachController(flags, undefined, io.interrupted)
  if (reached?.kind === 'reached') return await work(reached.reach)
  if (reached !== undefined) throw new CliError(whyNot(reached))
  await onCluster(io, flags, async (connection) => {
    const found = await reachController(flags, connection, io.interrupted)
    if (found.kind !== 'reached') throw new CliError(`prices come from the controller: ${whyNot(found)}`)
    await work(found.reach)
  })
}

function spentIn(snapshot: Snapshot, entries: readonly JournalEntry[], sinceMs: number) {
  const prices = new PriceList(snapshot)
  const present = ofKind(snapshot, karpenterKinds.nodeClaim).map((claim) => ({
    claim,
    pricePerHour: prices.of(claim),
  }))
  const toMs = snapshot.takenAtMs
  return { ...currencyOf(snapshot), report: spentReport(present, entries, { fromMs: toMs - sinceMs, toMs }) }
}

function currencyOf({ cloud }: Snapshot): { readonly currency?: string } {
  return cloud.priceUnit === undefined ? {} : { currency: cloud.priceUnit }
}

interface Output {
  readonly format: ReturnType<typeof formatOf>
  readonly table: TableWriter
}

function printCost(io: Io, { format, table }: Output, snapshot: Snapshot, by: CostDimension): void {
  const spent = {
    ...currencyOf(snapshot),
    report: costReport(pricedInstances(snapshot), by),
    atMs: snapshot.takenAtMs,
  }
  if (format.kind !== 'plain') printOne(io, format, costObject(spent, hoursPerMonth))
  else {
    table.write(costLines(spent, hoursPerMonth))
    noteUnpriced(
      io,
      spent.report.unpriced.map(({ name, type }) => `${name} (${type ?? 'unknown type'})`),
    )
  }
}

function printSpent(io: Io, { format, table }: Output, spent: ReturnType<typeof spentIn>): void {
  if (format.kind !== 'plain') printOne(io, format, spentObject(spent))
  else {
    table.write(spentLines(spent))
    const { journalFromMs, fromMs, unpriced } = spent.report
    if (journalFromMs === undefined || journalFromMs > fromMs + 60_000)
      io.err(
        `note: the journal ${journalFromMs === undefined ? 'is empty' : `begins at ${new Date(journalFromMs).toISOString()}`}; instances that were gone before are not counted\n`,
      )
    noteUnpriced(io, unpriced)
  }
}

function printOne(
  io: Io,
  format: ObjectFormat,
  object: Parameters<typeof printObjects>[2]['objects'][number],
): void {
  printObjects(io.out, format, {
    objects: [object],
    isList: false,
    nameOf: ({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`,
  })
}

const shownNames = 5

function noteUnpriced(io: Io, names: readonly string[]): void {
  if (names.length === 0) return
  const more = names.length > shownNames ? ` and ${names.length - shownNames} more` : ''
  io.err(
    `note: the price of ${names.length} instance(s) is not known, and in no sum: ${names.slice(0, shownNames).join(', ')}${more}\n`,
  )
}
