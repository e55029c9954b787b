/**
 * Runs all tests of packages and checks, or those whose paths contain one of the given words. Most files share
 * a process: loading and warming up the code costs more than most tests. Arguments with a dash are passed to
 * Node's test runner. Prints one report, and exits 1 if a test fails. With TENON_RUN_AGAIN=1 a few files that failed
 * run once more with nothing beside them, and only what fails again counts: where a change lands, a busy host must not
 * stop it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { spec, type TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'
import type { ToldError } from './test-events.ts'

const root = resolve(import.meta.dirname, '..')
const testProcess = join(import.meta.dirname, 'test-process.ts')
/** Simulated clouds validate requests in every test file, through modules that are preloaded. */
const watchers = globSync('simulators/*/src/**/watch.test-support.ts', { cwd: root })
const filesPerProcess = 32
/** More processes than processors: those of the first batches mostly wait. */
const waitingLanes = 2
const lanes = Number(process.env['TENON_TEST_PROCESSES'] ?? availableParallelism() + waitingLanes)
const slowestTold = 10
/** More than these failed because of the change, not because of the host. */
const mostRunAgain = 4
/** For a process that does not end, for example because of a pending timer. */
const processLimitMs = 20 * 60_000
/** The slowest files start first, each in its own process. */
const longestFirst = [
  'packages/cli/src/install',
  'packages/cli/src/restart',
  'packages/cli/src/up',
  'packages/cli/src/guide',
  'packages/cli/src/ask-pages',
  'test/world/src/simulation/simulation',
  'test/world/src/bad-objects/bad-objects',
  'test/world/src/lifecycle/large-drain',
  'test/world/src/simulation/regressions',
  'packages/engine/src/testing/checker/property',
].map((name) => `${name}.test.ts`)
/** Root hooks would apply to other files of the process, and measurements would include them. */
const needsOwnProcess =
  /^(before|after)(Each)?\(|process\.(cpuUsage|threadCpuUsage|memoryUsage|chdir|exitCode)/m
/** Imported by tests of commands that start processes, and wait for them, for sockets and for real time. */
const startsProcesses = /'node:child_process'|\/(tenon-process|screen)\.test-support\.ts'/

/** The files of one process. */
interface Batch {
  readonly name: string
  readonly files: readonly string[]
}

/** Batches by what they mostly do, slowest first. */
interface Batches {
  readonly waiting: Batch[]
  readonly working: Batch[]
}

interface Outcome {
  readonly events: readonly TestEvent[]
  readonly output: string
  /** Undefined if it was killed. */
  readonly code: number | undefined
}

function batchesOf(files: readonly string[]): Batches {
  const rank = (file: string) =>
    longestFirst.includes(file) ? longestFirst.indexOf(file) : longestFirst.length
  const alone = files.filter((file) => isAlone(file)).sort((a, b) => rank(a) - rank(b))
  const shared = Object.groupBy(
    files.filter((file) => !alone.includes(file)),
    (file) => file.split('/').slice(0, 2).join('/'),
  )
  const single = (file: string): Batch => ({ name: file, files: [file] })
  const working = alone.filter((file) => !isWaiting(file))
  return {
    waiting: alone.filter(isWaiting).map(single),
    working: [
      ...working.filter((file) => longestFirst.includes(file)).map(single),
      ...Object.entries(shared)
        .flatMap(([folder, group = []]) => spread(folder, group))
        .sort((a, b) => b.files.length - a.files.length),
      ...working.filter((file) => !longestFirst.includes(file)).map(single),
    ],
  }
}

function isWaiting(file: string): boolean {
  return file.startsWith('packages/cli/') && startsProcesses.test(textOf(file))
}

function isAlone(file: string): boolean {
  return isWaiting(file) || longestFirst.includes(file) || needsOwnProcess.test(textOf(file))
}

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** Neighbouring files take similar time, so they go to different processes. */
function spread(folder: string, files: readonly string[]): readonly Batch[] {
  const count = Math.ceil(files.length / filesPerProcess)
  return Array.from({ length: count }, (_, index) => ({
    name: `${folder}, part ${index + 1} of ${count}`,
    files: files.filter((_file, at) => at % count === index),
  }))
}

function runBatch({ files }: Batch, options: readonly string[], events: string): Promise<Outcome> {
  const args = [
    '--test-timeout=180000',
    `--test-reporter=${new URL('test-events.ts', import.meta.url).href}`,
    `--test-reporter-destination=${events}`,
  ]
  const child = spawn(process.execPath, [...args, ...options, testProcess, ...watchers, ...files], {
    cwd: root,
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  const output: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => output.push(chunk))
  const limit = setTimeout(() => child.kill('SIGKILL'), processLimitMs)
  return new Promise((done) => {
    child.once('close', (code) => {
      clearTimeout(limit)
      children.delete(child)
      done({ events: readEvents(events), output: Buffer.concat(output).toString(), code: code ?? undefined })
    })
  })
}

/** A process that was killed may have left half a line. */
function readEvents(file: string): readonly TestEvent[] {
  const lines = readFileSync(file, { encoding: 'utf8', flag: 'a+' }).split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line, withText) as TestEvent)
}

function withText(key: string, value: unknown): unknown {
  return key === 'error'
    ? { ...(value as ToldError), [inspect.custom]: () => (value as ToldError).text }
    : value
}

const counted = ['tests', 'suites', 'passed', 'failed', 'cancelled', 'skipped', 'todo'] as const

async function main(): Promise<number> {
  const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'))
  const words = process.argv.slice(2).filter((argument) => !argument.startsWith('-'))
  const files = globSync(['{packages,simulators,test}/*/src/**/*.test.ts', '{checks,release}/*.test.ts'], {
    cwd: root,
  })
    .map((file) => file.replaceAll('\\', '/'))
    // checks/browser.ts runs those, in Chromium.
    .filter((file) => !file.includes('/browser/'))
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .sort()
  if (files.length === 0) {
    process.stderr.write(`no test file has ${words.join(' or ')} in its path\n`)
    return 1
  }
  const startMs = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'tenon-tests-'))
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true })
  })
  const { waiting, working } = batchesOf(files)
  const report = new spec()
  report.pipe(process.stdout)
  const totals = new Map<string, number>(counted.map((name) => [name, 0]))
  const failed: string[] = []
  const failedFiles = new Set<string>()
  const msOfFile = new Map<string, number>()
  let started = 0
  // While one of these waits, the others use the processors.
  const runLane = async (first: Batch[], second: Batch[]) => {
    for (;;) {
      const batch = first.shift() ?? second.shift()
      if (batch === undefined) return
      const { events, output, code } = await runBatch(batch, options, join(folder, `${started++}.jsonl`))
      if (output !== '') process.stdout.write(output)
      for (const event of events) {
        if (event.type === 'test:summary') add(totals, event.data.counts)
        else if (!isCount(event)) report.write(event)
        addDuration(msOfFile, event)
      }
      if (code === 0) continue
      const isTold = events.some(({ type }) => type === 'test:fail')
      for (const file of isTold ? filesOf(events) : batch.files) failedFiles.add(file)
      failed.push(
        `${batch.name} ended ${code === undefined ? 'by force' : `with exit code ${code}`}` +
          (isTold ? '' : `, while one of these ran: ${batch.files.join(' ')}`),
      )
    }
  }
  await Promise.all(
    Array.from({ length: lanes }, (_, lane) =>
      lane < waitingLanes ? runLane(waiting, working) : runLane(working, waiting),
    ),
  )
  const tell = (message: string) => {
    report.write({ type: 'test:diagnostic', data: { nesting: 0, message, level: 'info' } })
  }
  for (const [name, count] of totals) tell(`${name} ${count}`)
  tell(`seconds ${((performance.now() - startMs) / 1000).toFixed(1)}`)
  const slowest = [...msOfFile].sort(([, a], [, b]) => b - a).slice(0, slowestTold)
  for (const [file, ms] of slowest) tell(`${(ms / 1000).toFixed(1)} s in ${relative(root, file)}`)
  for (const sentence of failed) tell(sentence)
  const isRunAgain = process.env['TENON_RUN_AGAIN'] === '1' && failedFiles.size <= mostRunAgain
  let failedAgain = isRunAgain ? 0 : failed.length
  for (const file of isRunAgain ? failedFiles : []) {
    const { events, output, code } = await runBatch(
      { name: file, files: [file] },
      options,
      join(folder, `${started++}.jsonl`),
    )
    if (output !== '') process.stdout.write(output)
    if (code !== 0) {
      failedAgain++
      for (const event of events) if (!isCount(event)) report.write(event)
    }
    tell(`run again, alone: ${file} ${code === 0 ? 'passed' : 'failed'}`)
  }
  const isPrinted = new Promise((done) => report.once('end', done))
  report.end()
  await isPrinted
  return failedAgain === 0 ? 0 : 1
}

/** Files of the tests that failed. */
function filesOf(events: readonly TestEvent[]): readonly string[] {
  const failures = events.flatMap((event) => (event.type === 'test:fail' ? [event.data.file] : []))
  return failures.flatMap((file) => (file === undefined ? [] : [relative(root, file)]))
}

/** Totals of one process would be mistaken for the overall ones. */
function isCount(event: TestEvent): boolean {
  return (
    event.type === 'test:diagnostic' &&
    event.data.nesting === 0 &&
    /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/.test(event.data.message)
  )
}

function add(totals: Map<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const name of counted) totals.set(name, (totals.get(name) ?? 0) + (counts[name] ?? 0))
}

/** Tests of a file run one after the other. */
function addDuration(msOfFile: Map<string, number>, { type, data }: TestEvent): void {
  if ((type !== 'test:pass' && type !== 'test:fail') || data.nesting !== 0 || data.file === undefined) return
  msOfFile.set(data.file, (msOfFile.get(data.file) ?? 0) + data.details.duration_ms)
}

/** Stripped and compiled sources are cached for the next process. */
const compileCache = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'node-compile-cache')
const children = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const child of children) child.kill(signal)
    process.exit(1)
  })
}

process.exitCode = await main()
