import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { minorOf, testedMinors } from '@tenon/api'
import { SystemClock } from '@tenon/runtime'
import { BuildFailedError, ensureBinaries, findGo, GoMissingError, missingBinaries } from './src/binaries.ts'
import { controlPlaneComponents, UnknownMinorError } from './src/components.ts'
import { type ControlPlane, StartFailedError, startControlPlane } from './src/control-plane.ts'
import { removeLeftovers } from './src/leftovers.ts'
import { ensurePrometheus } from './src/prometheus.ts'
import { recordRun } from './src/recorded-runs.ts'

const suiteFolder = fileURLToPath(new URL('suite/', import.meta.url))

/** The slowest files start first, so that no lane is still busy long after the others. */
const longestFirst = [
  'cluster-autoscaler-cluster-api',
  'wrong-views',
  'drain',
  'scale',
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
 * Run one after the other before the lanes start: what the scheduler makes of a plan depends on how soon it
 * learns of it, and with pending gangs it uses a whole processor.
 */
const alone: ReadonlySet<string> = new Set([
  'scheduling-proof',
  'planned-placement',
  'gangs',
  'gang-features',
])
/** More than these failed because of the change, not because of the host. */
const mostRunAgain = 6
/** Of a test or describe block; the slowest takes half of it on a quiet host. */
const testLimitMs = 15 * 60_000
/** These start their own control plane, with features that others do without. */
const selfMade: ReadonlySet<string> = new Set([
  'gangs',
  'gang-features',
  'gates',
  'scheduler-profile',
  'upgrade',
])
/**
 * Run only if they are named. The results for Cluster API change only with its pinned version; gangs take minutes in
 * which nothing else can run; requests take minutes of mere waiting, as do what users have asked for and takeovers,
 * where a lease runs out after each step; an upgrade needs two versions; a release needs Debian 12; what depends on
 * versions is played every night.
 */
const onDemand: ReadonlySet<string> = new Set([
  'cluster-api',
  'gangs',
  'gang-features',
  'gates',
  'provisioning-requests',
  'release',
  'takeover-guides',
  'upgrade',
  'versions',
  'wanted',
])

/** What a minor other than the default and the newest plays when no file is named, and since when (docs/design/0012). */
const onOlderMinors: Readonly<Record<string, number>> = {
  crds: 33,
  preflight: 33,
  'can-i': 33,
  'chart-install': 33,
  lifecycle: 33,
  drain: 33,
  takeover: 33,
  leaders: 33,
  placement: 33,
  'scheduling-proof': 33,
  versions: 33,
  'planned-placement': 35,
  devices: 34,
}

function isPlayed(name: string): boolean {
  const minor = minorOf(process.env['TENON_KUBERNETES'] ?? '')
  if (minor === undefined) return !onDemand.has(name)
  const isCore = (onOlderMinors[name] ?? Number.POSITIVE_INFINITY) <= minor
  return isCore || (minor >= testedMinors.newest && !onDemand.has(name))
}

const usage = `Usage: npm run conformance -- [--kubernetes MINOR|newest|oldest] [--record] [--test-name-pattern PATTERN] [FILE ...]

  FILE          a file of conformance/suite without .test.ts; without any: all but those that are on demand, and what
                concerns versions on older ones
  --kubernetes  a minor version with pinned modules, such as 1.37; TENON_KUBERNETES does the same. With newest or oldest
                the ends of the tested range, if they are built; otherwise the default, or nothing
  --record      writes the result into docs/versions.md
`

interface Arguments {
  readonly files: readonly string[]
  readonly isSkipped: boolean
  readonly isRecorded: boolean
  /** Passed to `node --test`. */
  readonly ofTests: readonly string[]
}

/**
 * Runs the whole suite except on-demand files, or the given files, in parallel lanes: most of a test is waiting
 * for the real cluster. Each lane has its own control plane, which is built if necessary, started, and stopped
 * at the end; its files run one after the other.
 */
async function main(): Promise<number> {
  const given = readArguments()
  if (given === undefined) return 2
  if (given.isSkipped) return 0
  const missing = missingBinaries(controlPlaneComponents, process.env)
  if (missing.length > 0 && findGo(process.env) === undefined) return withoutGo(new GoMissingError(missing))
  // Before the lanes start, or each of them would build.
  await ensureBinaries(controlPlaneComponents, { environment: process.env, clock, progress: say })
  const start = clock.monotonic()
  const files = suiteFiles(given.files)
  if (files.some((file) => basename(file) === 'monitoring.test.ts') && !hasPrometheus()) return 1
  const quiet = files.filter((file) => alone.has(nameOf(file)))
  const others = files.filter((file) => !quiet.includes(file))
  const first = await runLane(quiet, given)
  const count = Math.min(Number(process.env['TENON_CONFORMANCE_LANES'] ?? 4), others.length)
  const lanes = [first, ...(await Promise.all(Array.from({ length: count }, () => runLane(others, given))))]
  const failedFirst = lanes.flat().filter(({ code }) => code !== 0)
  const failed = await againAlone(failedFirst, given)
  for (const { file } of failed) say(`FAILED: ${file}`)
  const [version = ''] = versions
  if (given.isRecorded && version !== '' && !interrupted.signal.aborted)
    recordRun({
      version,
      date: new Date(clock.now()).toISOString().slice(0, 10),
      commit: execFileSync('git', ['rev-parse', '--short=9', 'HEAD'], { encoding: 'utf8' }).trim(),
      seconds: Math.round((clock.monotonic() - start) / 1000),
      files: Object.fromEntries(
        lanes.flat().map(({ file }) => [nameOf(file), failed.every((each) => each.file !== file)]),
      ),
    })
  say(
    `suite ended, ${failed.length} of ${lanes.flat().length} files failed, after ${seconds(clock.monotonic() - start)}`,
  )
  return failed.length === 0 ? 0 : 1
}

/**
 * With TENON_RUN_AGAIN=1 a few files that failed run once more, one after the other on a control plane of their own:
 * where a change lands, four lanes on a busy host must not stop it.
 * @returns those that still fail.
 */
async function againAlone(failed: readonly Outcome[], given: Arguments): Promise<readonly Outcome[]> {
  if (process.env['TENON_RUN_AGAIN'] !== '1' || failed.length > mostRunAgain) return failed
  const still: Outcome[] = []
  for (const outcome of failed) {
    say(`FAILED among others, run again alone: ${outcome.file}`)
    const [again] = await runLane([outcome.file], given)
    // Undefined if it was interrupted.
    if (again?.code !== 0) still.push(outcome)
  }
  return still
}

const nameOf = (file: string): string => basename(file, '.test.ts')

interface Outcome {
  readonly file: string
  readonly code: number
}

/** Takes files from the list that all lanes share, until it is empty. */
async function runLane(files: string[], given: Arguments): Promise<readonly Outcome[]> {
  let file = files.shift()
  if (file === undefined) return []
  const folder = mkdtempSync(join(tmpdir(), 'tenon-conformance-'))
  let controlPlane: ControlPlane | undefined
  const outcomes: Outcome[] = []
  let done = false
  try {
    for (; file !== undefined && !interrupted.signal.aborted; file = files.shift()) {
      if (!selfMade.has(nameOf(file))) controlPlane ??= await started(folder)
      outcomes.push({ file, code: await runFile(file, controlPlane, given) })
      if (controlPlane !== undefined) await clear(controlPlane, basename(file))
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

/** An API server that does not answer any more fails the next file, not the whole lane. */
async function clear({ kubeconfigPath }: ControlPlane, after: string): Promise<void> {
  const left = await removeLeftovers(kubeconfigPath, clock).catch((error: unknown) => [String(error)])
  if (left.length > 0) say(`${after} left behind, now removed: ${left.join(', ')}`)
}

async function started(dir: string): Promise<ControlPlane> {
  const start = clock.monotonic()
  const controlPlane = await startControlPlane({ dir })
  versions.add(controlPlane.version)
  say(`Kubernetes ${controlPlane.version} is ready after ${seconds(clock.monotonic() - start)}`)
  return controlPlane
}

/** Undefined after an error, which is printed. Chooses the version of Kubernetes for this process and its children. */
function readArguments(): Arguments | undefined {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        kubernetes: { type: 'string' },
        record: { type: 'boolean' },
        'test-name-pattern': { type: 'string' },
      },
    })
    const strange = positionals.find((name) => !existsSync(join(suiteFolder, `${name}.test.ts`)))
    if (strange !== undefined) throw new Error(`there is no file ${strange}.test.ts in conformance/suite`)
    if (values.record === true && positionals.length > 0)
      throw new Error('--record is for the whole suite, without names of files')
    const isSkipped = values.kubernetes !== undefined && !chooseMinor(values.kubernetes)
    const pattern = values['test-name-pattern']
    return {
      files: positionals,
      isSkipped,
      isRecorded: values.record === true,
      ofTests: pattern === undefined ? [] : [`--test-name-pattern=${pattern}`],
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
    return undefined
  }
}

/** A build takes ten minutes, for which no change waits. @returns whether anything is played. */
function chooseMinor(given: string): boolean {
  const minor = given === 'newest' || given === 'oldest' ? `1.${testedMinors[given]}` : given
  const environment = { ...process.env, TENON_KUBERNETES: minor }
  if (minor !== given && missingBinaries(controlPlaneComponents, environment).length > 0) {
    const instead = given === 'newest' ? 'the default is played instead' : 'nothing is played'
    say(`Kubernetes ${minor} is not built (npm run conformance -- --kubernetes ${minor}): ${instead}`)
    return given === 'newest'
  }
  process.env['TENON_KUBERNETES'] = minor
  return true
}

function suiteFiles(wanted: readonly string[]): string[] {
  const rank = (file: string): number => {
    const at = longestFirst.indexOf(nameOf(file))
    return at === -1 ? longestFirst.length : at
  }
  return readdirSync(suiteFolder)
    .filter((file) => file.endsWith('.test.ts'))
    .filter((file) =>
      wanted.length === 0 ? isPlayed(nameOf(file)) : wanted.some((name) => file === `${name}.test.ts`),
    )
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((file) => join(suiteFolder, file))
}

/** Outside of CI its test may be skipped: it prints so itself. */
function hasPrometheus(): boolean {
  const programs = ensurePrometheus(process.env, say)
  if (!('missing' in programs)) return true
  say(programs.missing)
  return process.env['CI'] === undefined
}

/** The suite is only skipped if it was declared optional, and never silently. */
function withoutGo(error: GoMissingError): number {
  if (process.env['TENON_CONFORMANCE'] !== 'optional') {
    say(error.message)
    return 1
  }
  say(`SKIPPED, nothing was tested against a real control plane. ${error.message}`)
  return 0
}

/** The output of a file is printed when it has ended, so that the lanes' outputs do not mix. */
async function runFile(
  file: string,
  controlPlane: ControlPlane | undefined,
  { ofTests }: Arguments,
): Promise<number> {
  const start = clock.monotonic()
  const name = basename(file)
  say(`${name} begins`)
  const options = ['--test', '--test-concurrency=1', `--test-timeout=${testLimitMs}`]
  const child = spawn(process.execPath, [...options, ...ofTests, file], {
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

/** Ctrl-C in a terminal reaches the tests too, and they end; what was started here has to be stopped here. */
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
/** Of the control planes that were started. */
const versions = new Set<string>()
const interrupted = new AbortController()
stopOnSignals()

try {
  process.exitCode = await main()
} catch (error) {
  const isExpected = [BuildFailedError, StartFailedError, UnknownMinorError].some(
    (kind) => error instanceof kind,
  )
  if (!(isExpected && error instanceof Error)) throw error
  say(error.message)
  process.exitCode = 1
}
