/**
 * A month of a public trace on virtual time, compared with its minimum cost:
 *
 *   npm run bench:trace -- [--apps-share 0.25] [--days 31] [--traces ../shared/data/traces]
 *                          [--compatibility none|karpenter|both] [--seed 1] [--json]
 *
 * `--apps-share` keeps that share of the applications, evenly over all sizes. Progress is printed on stderr.
 * With `--json` the results so far are printed after every day, so that a run need not be completed. Each mode
 * is played in its own process, both concurrently, while this one computes the bounds.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { PlayReport } from '@tenon/ask'
import type { Settings } from '@tenon/operator'
import { benchArguments } from './arguments.ts'
import { type BoundHour, hourlyBounds } from './trace/bound.ts'
import { playTrace } from './trace/play-trace.ts'
import { readTrace } from './trace/read-trace.ts'

type Mode = Settings['compatibility']

type Row = Readonly<Record<string, string | number>>

/** Sent by a playing process after every day. */
interface Told {
  readonly day: number
  readonly report: PlayReport
  /** Since the start. */
  readonly seconds: number
  /** CPU time since the start. */
  readonly coreSeconds: number
}

const values = benchArguments('trace', 'Plays a month of a public trace on virtual time.', {
  'apps-share': { type: 'string', default: '1', help: 'the share of the applications, from 0 to 1' },
  days: { type: 'string', default: '31', help: 'from the beginning of the trace; may be a part of one' },
  traces: { type: 'string', default: '../shared/data/traces', help: 'the folder with the trace' },
  compatibility: { type: 'string', default: 'both', help: 'none, karpenter or both' },
  seed: { type: 'string', default: '1', help: 'the same seed plays the same' },
  json: { type: 'boolean', help: 'prints what was measured after every day, as JSON' },
})
const days = Number(values.days)
const share = Number(values['apps-share'])
const allModes = ['none', 'karpenter'] as const satisfies readonly Mode[]
const modes = allModes.filter((mode) => values.compatibility === 'both' || values.compatibility === mode)
if (!(days > 0) || !(share > 0 && share <= 1) || modes.length === 0) {
  console.error(
    'trace: --days is above 0, --apps-share above 0 and at most 1, --compatibility none, karpenter or both',
  )
  process.exit(2)
}
const instances = readTrace(values.traces, share)
const [first] = modes
if (process.send !== undefined && first !== undefined) await playHere(first)
else await compareAll()

async function playHere(compatibility: Mode): Promise<void> {
  const startedMs = performance.now()
  const tell = (day: number, report: PlayReport): void => {
    const { user, system } = process.cpuUsage()
    const seconds = Math.round((performance.now() - startedMs) / 1000)
    const told: Told = { day, report, seconds, coreSeconds: Math.round((user + system) / 1e6) }
    process.send?.(told)
  }
  await playTrace({ instances, days, compatibility, seed: Number(values.seed), progress: tell })
  process.disconnect()
}

async function compareAll(): Promise<void> {
  const bounds = Promise.withResolvers<readonly BoundHour[]>()
  const playing = modes.map(async (mode) => await playedElsewhere(mode, bounds.promise))
  bounds.resolve(await hourlyBounds(instances, Math.ceil(24 * days)))
  const rows = await Promise.all(playing)
  if (values.json) return
  const bound = boundUntil(await bounds.promise, days)
  process.stdout.write(
    `${instances.length} instances, ${days} days; bound ${bound.perRole.toFixed(0)} per role, ${bound.together.toFixed(0)} together, ${bound.wholeNodes.toFixed(0)} on whole nodes\n${table(rows)}`,
  )
}

/** @returns the last report. */
async function playedElsewhere(way: Mode, bounds: Promise<readonly BoundHour[]>): Promise<Row> {
  const given = Object.entries(values).filter(([name]) => name !== 'compatibility' && name !== 'json')
  const args = given.flatMap(([name, value]) => [`--${name}`, String(value)])
  const child = fork(fileURLToPath(import.meta.url), [...args, '--compatibility', way], {
    execArgv: process.execArgv,
  })
  let last: Promise<Row> | undefined
  child.on('message', (told: Told) => {
    last = bounds.then((all) => toldRow(way, told, all))
  })
  await once(child, 'exit')
  if (last === undefined || child.exitCode !== 0)
    throw new Error(`${nameOf(way)}: the play ended without a result`)
  return await last
}

function toldRow(way: Mode, told: Told, bounds: readonly BoundHour[]): Row {
  const { day, report, seconds } = told
  const { cost, launches, evictions, instances: nodes, pending } = report
  process.stderr.write(
    `${nameOf(way)}, day ${day} of ${days}: ${(cost / boundUntil(bounds, day).perRole).toFixed(4)} of the bound, ${nodes} nodes, ${launches} launches, ${evictions} evictions, pending p99 ${(pending.p99Ms ?? 0) / 1000} s; ${seconds} s\n`,
  )
  const row = rowOf(nameOf(way), told, bounds)
  if (values.json) process.stdout.write(`${JSON.stringify(row)}\n`)
  return row
}

function nameOf(compatibility: Mode): string {
  return compatibility === 'none' ? 'defaults' : `--compatibility=${compatibility}`
}

function boundUntil(bounds: readonly BoundHour[], day: number): Record<keyof BoundHour, number> {
  const elapsed = 24 * Math.min(day, days)
  // The hour in which a run ends counts in part, like its price.
  const sumOf = (of: keyof BoundHour): number =>
    bounds.reduce((sum, hour, at) => sum + hour[of] * Math.max(0, Math.min(1, elapsed - at)), 0)
  return {
    perRole: sumOf('perRole'),
    together: sumOf('together'),
    wholeNodes: sumOf('wholeNodes'),
  }
}

function rowOf(name: string, { day, report, seconds, coreSeconds }: Told, bounds: readonly BoundHour[]): Row {
  const until = boundUntil(bounds, day)
  const { pending, podDays } = report
  const per1000 = (count: number): string => ((1000 * count) / podDays).toFixed(2)
  const inSeconds = (ms: number | undefined): string => (ms === undefined ? '-' : (ms / 1000).toFixed(1))
  return {
    settings: name,
    days: Math.min(day, days),
    price: report.cost.toFixed(0),
    'of the bound': (report.cost / until.perRole).toFixed(4),
    'of the bound together': (report.cost / until.together).toFixed(4),
    'of the bound on whole nodes': (report.cost / until.wholeNodes).toFixed(4),
    'launches/1000 pod-days': per1000(report.launches),
    'moves/1000 pod-days': per1000(report.movesTotal),
    'evictions/1000 pod-days': per1000(report.evictions),
    'pending median s': inSeconds(pending.medianMs),
    'pending p99 s': inSeconds(pending.p99Ms),
    'pending max s': inSeconds(pending.maxMs),
    'peak nodes': report.peakInstances,
    'mean nodes': (report.instanceHours / (report.elapsedMs / 3_600_000)).toFixed(0),
    'run s': seconds,
    'of a core s': coreSeconds,
  }
}

/** Measures as lines, settings as columns, as terminals are narrow. */
function table(all: readonly Row[]): string {
  const measures = Object.keys(all[0] ?? {})
  const lines = measures.map((measure) => [measure, ...all.map((row) => String(row[measure] ?? ''))])
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? '').length)),
  )
  return `${lines.map((line) => line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ')).join('\n')}\n`
}
