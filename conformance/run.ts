import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SystemClock } from '@tenon/runtime'
import { BuildFailedError, ensureBinaries, findGo, GoMissingError, missingBinaries } from './src/binaries.ts'
import { controlPlaneComponents } from './src/components.ts'
import { type ControlPlane, StartFailedError, startControlPlane } from './src/control-plane.ts'
import { ensurePrometheus } from './src/prometheus.ts'

/** What takes longest begins first, so that no lane is still at work long after the others. */
const longestFirst = [
  'drain',
  'wrong-views',
  'scale',
  'planned-placement',
  'takeover',
  'cluster-api-spoke',
  'cluster-api-launches',
  'manual-deletions',
  'upstream',
  'lifecycle',
  'chart-install',
  'leaders',
  'crds',
]
/**
 * Played before the lanes begin, one after the other: what the scheduler makes of a plan depends on how fast it is told
 * of it, and with gangs that wait it takes a processor for itself.
 */
const alone: ReadonlySet<string> = new Set(['scheduling-proof', 'gangs', 'gang-features'])
/** Those that start a control plane themselves, with features that others do without. */
const selfMade: ReadonlySet<string> = new Set(['gangs', 'gang-features'])
/**
 * Played when they are named. What is stated of Cluster API changes with the version that is pinned, and only then; gangs
 * take minutes in which nothing else can be played, requests take minutes, most of which nothing but time passes.
 */
const onDemand: ReadonlySet<string> = new Set([
  'cluster-api',
  'gangs',
  'gang-features',
  'provisioning-requests',
])
/**
 * The whole suite but for what is played on demand, or the files whose names are given, in lanes side by side: most of a test is waiting for
 * what a real cluster takes. Each lane has a control plane of its own, which is built if needed, started,
 * and stopped at the end; its files run one after the other. Arguments with a dash go on to `node --test`.
 */
async function main(): Promise<number> {
  const missing = missingBinaries(controlPlaneComponents, process.env)
  if (missing.length > 0 && findGo(process.env) === undefined) return withoutGo(new GoMissingError(missing))
  // Before the lanes begin, or each of them would build.
  await ensureBinaries(controlPlaneComponents, { environment: process.env, clock, progress: say })
  const start = clock.monotonic()
  const files = suiteFiles(process.argv.slice(2).filter((argument) => !argument.startsWith('-')))
  if (files.some((file) => basename(file) === 'monitoring.test.ts') && !hasPrometheus()) return 1
  const quiet = files.filter((file) => alone.has(nameOf(file)))
  const others = files.filter((file) => !quiet.includes(file))
  const first = await runLane(quiet)
  const count = Math.min(Number(process.env['TENON_CONFORMANCE_LANES'] ?? 3), others.length)
  const lanes = [first, ...(await Promise.all(Array.from({ length: count }, () => runLane(others))))]
  const failed = lanes.flat().filter(({ code }) => code !== 0)
  for (const { file } of failed) say(`FAILED: ${file}`)
  say(
    `suite ended, ${failed.length} of ${lanes.flat().length} files failed, after ${seconds(clock.monotonic() - start)}`,
  )
  return failed.length === 0 ? 0 : 1
}

const nameOf = (file: string): string => basename(file, '.test.ts')

interface Outcome {
  readonly file: string
  readonly code: number
}

/** Takes files from the list that all lanes share, until nothing is left. */
async function runLane(files: string[]): Promise<readonly Outcome[]> {
  let file = files.shift()
  if (file === undefined) return []
  const folder = mkdtempSync(join(tmpdir(), 'tenon-conformance-'))
  let controlPlane: ControlPlane | undefined
  const outcomes: Outcome[] = []
  let done = false
  try {
    for (; file !== undefined && !interrupted.signal.aborted; file = files.shift()) {
      if (!selfMade.has(nameOf(file))) controlPlane ??= await started(folder)
      outcomes.push({ file, code: await runFile(file, controlPlane) })
    }
    done = true
  } finally {
    if (controlPlane !== undefined) {
      if (!done || outcomes.some(({ code }) => code !== 0)) keepLogs(folder)
      await controlPlane.stop()
    }
    rmSync(folder, { recursive: true, force: true })
  }
  return outcomes
}

async function started(dir: string): Promise<ControlPlane> {
  const start = clock.monotonic()
  const controlPlane = await startControlPlane({ dir })
  say(`Kubernetes ${controlPlane.version} is ready after ${seconds(clock.monotonic() - start)}`)
  return controlPlane
}

function suiteFiles(wanted: readonly string[]): string[] {
  const folder = fileURLToPath(new URL('suite/', import.meta.url))
  const rank = (file: string): number => {
    const at = longestFirst.indexOf(nameOf(file))
    return at === -1 ? longestFirst.length : at
  }
  return readdirSync(folder)
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) =>
      wanted.length === 0 ? !onDemand.has(nameOf(file)) : wanted.some((name) => file === `${name}.test.ts`),
    )
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((file) => join(folder, file))
}

/** Elsewhere than in CI its test may be omitted: it says so itself. */
function hasPrometheus(): boolean {
  const programs = ensurePrometheus(process.env, say)
  if (!('missing' in programs)) return true
  say(programs.missing)
  return process.env['CI'] === undefined
}

/** Only where it was declared optional may the suite be omitted, and never silently. */
function withoutGo(error: GoMissingError): number {
  if (process.env['TENON_CONFORMANCE'] !== 'optional') {
    say(error.message)
    return 1
  }
  say(`SKIPPED, nothing was tested against a real control plane. ${error.message}`)
  return 0
}

/** A file's output is shown when it has ended, so that those of two lanes do not mix. */
async function runFile(file: string, controlPlane: ControlPlane | undefined): Promise<number> {
  const start = clock.monotonic()
  const name = basename(file)
  say(`${name} begins`)
  const options = ['--test', '--test-concurrency=1', '--test-timeout=180000']
  const passedOn = process.argv.slice(2).filter((argument) => argument.startsWith('-'))
  const child = spawn(process.execPath, [...options, ...passedOn, file], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ...(controlPlane !== undefined && {
        TENON_CONFORMANCE_DIR: controlPlane.folder,
        TENON_CONFORMANCE_BIN: controlPlane.binDir,
      }),
    },
  })
  children.add(child)
  const output: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => output.push(chunk))
  const code = await new Promise<number>((resolve) => {
    child.once('close', (exit) => resolve(exit ?? 1))
  })
  children.delete(child)
  process.stdout.write(Buffer.concat(output))
  say(`${name} ended with exit code ${code} after ${seconds(clock.monotonic() - start)}`)
  return code
}

/** The tests get a terminal's Ctrl-C themselves and end; what was started is still to be stopped here. */
function stopOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      interrupted.abort()
      for (const child of children) child.kill(signal)
    })
  }
}

function keepLogs(folder: string): void {
  const kept = mkdtempSync(join(tmpdir(), 'tenon-conformance-logs-'))
  cpSync(join(folder, 'logs'), kept, { recursive: true })
  say(`logs of the control plane: ${kept}`)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function say(line: string): void {
  process.stderr.write(`conformance: ${line}\n`)
}

const clock = new SystemClock()
const children = new Set<ChildProcess>()
const interrupted = new AbortController()
stopOnSignals()

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof BuildFailedError || error instanceof StartFailedError)) throw error
  say(error.message)
  process.exitCode = 1
}
