/** `tenon replay`: plays a recording with other settings, and compares the results. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { counted, type KubeObject } from '@tenon/api'
import {
  type PlayReport,
  type RecordedFigures,
  type Recording,
  recordingOf,
  type ReplayAssumption,
  type ReplayReport,
  type ReplayVariant,
  type TraceEnd,
} from '@tenon/ask'
import { replay } from '@tenon/ask/play'
import { defaultSettings } from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { readManifests } from '../../manifests.ts'
import { readTrace, warnOfCut } from '../../trace-file.ts'

export interface ReplayFlags {
  readonly filename: readonly string[]
  readonly compatibility?: 'karpenter'
  readonly priceFile: readonly string[]
  /** Milliseconds. */
  readonly nodeBoot: number
  /** Milliseconds. */
  readonly podStart: number
  readonly seed: number
  readonly output: 'table' | 'json'
}

/** The part of the node boot time between registration and Ready. */
const nodeReadyMs = 10_000
const podStopMs = 1_000
const hourMs = 3_600_000

/**
 * Plays the recording once for each variant.
 * @throws CliError if a file cannot be read.
 */
export async function runReplay(io: Io, file: string, flags: ReplayFlags): Promise<void> {
  const { recording, variants } = await playedVariants(io, file, flags)
  if (flags.output === 'json') io.out(`${JSON.stringify(documentOf(recording, variants), undefined, 2)}\n`)
  else io.out(tableOf(recording, variants))
}

/** @throws CliError if a file cannot be read. */
export async function playedVariants(
  io: Io,
  file: string,
  flags: ReplayFlags,
): Promise<{ readonly recording: Recording; readonly variants: readonly Played[] }> {
  const { recording, end } = await recordingIn(io, file)
  warnOfCut(io, file, end)
  const variants = await variantsOf(io, flags)
  const played: Played[] = []
  for (const variant of variants) {
    const done = await replay(recording, variant, (atMs) => {
      const hours = (atMs - recording.startMs) / hourMs
      if (io.isTerminal)
        io.err(`\r${variant.name}: ${hours.toFixed(0)} h of ${lengthOf(recording).toFixed(0)} h `)
    })
    if (io.isTerminal) io.err('\r\u001b[K')
    played.push({ variant, ...done })
  }
  return { recording, variants: played }
}

interface Played extends ReplayReport {
  readonly variant: ReplayVariant
}

async function recordingIn(
  io: Io,
  file: string,
): Promise<{ readonly recording: Recording; readonly end: TraceEnd }> {
  const { records, end } = await readTrace(io, file)
  const recording = recordingOf(records)
  if ('message' in recording) throw new CliError(`${file}: ${recording.message}`)
  return { recording, end }
}

/** The recorded cluster with Tenon's defaults, then each variant by itself. */
async function variantsOf(io: Io, flags: ReplayFlags): Promise<readonly ReplayVariant[]> {
  const times = {
    bootMs: Math.max(0, flags.nodeBoot - nodeReadyMs),
    nodeReadyMs: Math.min(flags.nodeBoot, nodeReadyMs),
    podStartMs: flags.podStart,
    podStopMs,
  }
  const same = { settings: defaultSettings, times, seed: flags.seed }
  const variants: ReplayVariant[] = [{ name: 'replayed', ...same }]
  for (const path of flags.filename)
    variants.push({ name: path, ...same, objects: await objectsIn(io, path) })
  if (flags.compatibility === 'karpenter')
    variants.push({
      name: '--compatibility=karpenter',
      ...same,
      settings: { ...defaultSettings, compatibility: 'karpenter' },
    })
  for (const path of flags.priceFile) variants.push({ name: path, ...same, prices: await pricesIn(io, path) })
  return variants
}

async function objectsIn(io: Io, path: string): Promise<readonly KubeObject[]> {
  const manifests = await readManifests([path], io.cwd, (message) => {
    io.err(`${message}\n`)
  })
  const foreign = manifests.find(({ object }) => !object.apiVersion.startsWith('karpenter.sh/'))
  if (foreign !== undefined)
    throw new CliError(
      `${foreign.source}: kind ${foreign.object.kind} cannot be replaced in a replay; use NodePools and NodeOverlays`,
    )
  return manifests.map(({ object }) => object)
}

async function pricesIn(io: Io, path: string): Promise<ReadonlyMap<string, number>> {
  const text = await readFile(resolve(io.cwd, path), 'utf8').catch((cause: unknown) => {
    throw new CliError(`cannot read ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  })
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (cause) {
    throw new CliError(`${path}: no JSON: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new CliError(`${path}: use an object such as {"m.4": 0.2}, with prices per hour by instance type`)
  return new Map(
    Object.entries(document).map(([type, price]) => {
      if (typeof price !== 'number' || !(price >= 0))
        throw new CliError(
          `${path}: the price of ${type} is ${JSON.stringify(price)}; use a number from 0 on`,
        )
      return [type, price]
    }),
  )
}

const lengthOf = ({ startMs, endMs }: Recording): number => (endMs - startMs) / hourMs

interface Kinded {
  readonly apiVersion: string
  readonly kind: string
}

interface PrintedVariant extends Omit<PlayReport, 'hours' | 'moves'> {
  readonly name: string
  readonly seed?: number | undefined
  /** By reason, and by whether replacements were launched. */
  readonly moves: Readonly<Record<string, number>>
  readonly assumptions: readonly ReplayAssumption[]
}

export interface PrintedReplay {
  readonly recording: RecordedFigures & {
    readonly source: string
    readonly start: string
    readonly end: string
    readonly gaps: readonly { readonly from: string; readonly to: string; readonly because: string }[]
  }
  readonly variants: readonly PrintedVariant[]
}

function documentOf(recording: Recording, played: readonly Played[]): PrintedReplay & Kinded {
  const { startMs, endMs, source, gaps, figures } = recording
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'ReplayReport',
    recording: {
      source,
      start: rfc3339(startMs),
      end: rfc3339(endMs),
      gaps: gaps.map(({ fromMs, toMs, because }) => ({ from: rfc3339(fromMs), to: rfc3339(toMs), because })),
      ...figures,
    },
    variants: played.map(({ variant, report, assumptions }) => {
      const { hours: _hours, moves, ...rest } = report
      return {
        name: variant.name,
        seed: variant.seed,
        ...rest,
        moves: Object.fromEntries(moves),
        assumptions,
      }
    }),
  }
}

function tableOf(recording: Recording, played: readonly Played[]): string {
  const { figures, gaps } = recording
  const isPriced = figures.unpricedNodes === 0 && figures.peakNodes > 0
  const share = (cost: number): string =>
    isPriced && figures.cost > 0 ? `${((100 * cost) / figures.cost).toFixed(1)}%` : '-'
  const seconds = (ms: number | undefined): string => (ms === undefined ? '-' : `${(ms / 1000).toFixed(0)}s`)
  const rows = [
    [
      'VARIANT',
      'PRICE',
      'OF RECORDED',
      'PENDING MEDIAN',
      'PENDING P99',
      'EVICTIONS',
      'LAUNCHES',
      'PEAK NODES',
    ],
    [
      'as recorded',
      isPriced ? figures.cost.toFixed(2) : 'unknown',
      isPriced ? '100.0%' : '-',
      '-',
      '-',
      String(figures.evictions),
      String(figures.launches),
      String(figures.peakNodes),
    ],
    ...played.map(({ variant, report }) => [
      variant.name,
      // A sum without the instances of unknown price would look too cheap.
      report.unpricedInstances > 0 ? 'unknown' : report.cost.toFixed(2),
      report.unpricedInstances > 0 ? '-' : share(report.cost),
      seconds(report.pending.medianMs),
      seconds(report.pending.p99Ms),
      String(report.evictions),
      String(report.launches),
      String(report.peakInstances),
    ]),
  ]
  const notes = [
    `${lengthOf(recording).toFixed(1)} h of ${recording.source} from ${rfc3339(recording.startMs)}; prices are in the unit of the recorded catalogue.`,
    ...(figures.unpricedNodes > 0
      ? [`The price of ${figures.unpricedNodes} recorded nodes is not known.`]
      : []),
    ...played.flatMap(({ variant, report }) =>
      report.unpricedInstances > 0
        ? [
            `The price of ${counted(report.unpricedInstances, 'instance')} of ${variant.name} is not known (--price-file).`,
          ]
        : [],
    ),
    ...gaps.map(
      ({ fromMs, toMs, because }) =>
        `Nothing is known from ${rfc3339(fromMs)} to ${rfc3339(toMs)}: ${because}.`,
    ),
    ...new Set(played.flatMap(({ assumptions }) => assumptions.map(assumptionText))),
  ]
  return `${aligned(rows)}\n${notes.join('\n')}\n`
}

function assumptionText(assumption: ReplayAssumption): string {
  switch (assumption.kind) {
    case 'catalogue':
      return assumption.from === 'recorded'
        ? 'Assumed: every recorded offering can be bought at any time.'
        : 'Assumed: the types that were seen on nodes can be bought, and no others.'
    case 'times': {
      const { bootMs, nodeReadyMs: readyMs, podStartMs } = assumption.times
      return `Assumed: nodes are Ready ${(bootMs + readyMs) / 1000}s after their launch, pods ${podStartMs / 1000}s after they are bound (--node-boot, --pod-start).`
    }
    case 'foreignNodes':
      return `Assumed: ${counted(assumption.count, 'node')} of no NodePool left out, and their pods need nodes.`
  }
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('   ')
          .trimEnd()}\n`,
    )
    .join('')
}
