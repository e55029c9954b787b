/** `tenon` and `kubectl` as real processes in a directory of their own. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

const main = join(import.meta.dirname, '../main.ts')
/** Holds calls to the simulated cloud against the API document; a call that does not fit ends the process. */
const watch = new URL('../../../../simulators/exoscale/src/document/watch.test-support.ts', import.meta.url)
  .href
const source: readonly string[] = ['--import', watch, main]

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A running `tenon`. */
export interface TenonProcess {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  out(): string
  err(): string
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Ended>
}

export interface Finished extends Ended {
  readonly out: string
  readonly err: string
}

type Env = Readonly<Record<string, string>>

const runningOf = new WeakMap<TestContext, (() => Promise<Ended>)[]>()

async function endAll(t: TestContext): Promise<void> {
  await Promise.all(runningOf.get(t)?.map((kill) => kill()) ?? [])
}

/** A directory that goes when the test ends, after the processes that may still write to it. */
export async function temporaryDirectory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tenon-test-'))
  t.after(async () => {
    // Hooks run in the order in which they were added: this one comes before those of the processes.
    await endAll(t)
    await rm(path, { recursive: true, force: true })
  })
  return path
}

/**
 * Starts `tenon`; it is killed when the test ends, if it still runs.
 * @param program what is run by Node; by default the source.
 */
export function startTenon(
  t: TestContext,
  cwd: string,
  args: readonly string[],
  env: Env = {},
  program: readonly string[] = source,
): TenonProcess {
  // What tests have compiled is there for the same source, and not for a program that is to start without.
  const { PATH, NODE_COMPILE_CACHE: compiled } = process.env
  const cache = program === source && compiled !== undefined ? { NODE_COMPILE_CACHE: compiled } : {}
  const child = spawn(process.execPath, [...program, ...args], {
    cwd,
    env: { PATH, HOME: cwd, ...cache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal }))
  })
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    return await ended
  }
  const running = runningOf.get(t)
  const kill = () => end('SIGKILL')
  if (running === undefined) {
    runningOf.set(t, [kill])
    t.after(() => endAll(t))
  } else running.push(kill)
  return { child, ended, out: () => out, err: () => err, end }
}

/** Runs `tenon` to its end. */
export async function runTenon(
  t: TestContext,
  cwd: string,
  args: readonly string[],
  env: Env = {},
): Promise<Finished> {
  const running = startTenon(t, cwd, args, env)
  return { ...(await running.ended), out: running.out(), err: running.err() }
}

/** A busy host is many times slower; what must be quick is measured in processor time. */
const patienceMs = 180_000

/**
 * Waits until `answer` answers something, asking again and again.
 * @throws Error with the text of `otherwise` if it never does.
 */
export async function eventually<T>(
  answer: () => Promise<T | undefined> | T | undefined,
  otherwise: () => string,
): Promise<T> {
  const endMs = performance.now() + patienceMs
  for (;;) {
    const value = await answer()
    if (value !== undefined) return value
    if (performance.now() > endMs) throw new Error(`not within ${patienceMs} ms: ${otherwise()}`)
    // Asking is a process in most tests, and takes time from what is waited for.
    await sleep(250)
  }
}

/** Starts `tenon up` or `tenon devcluster` on free ports and waits until it says where it is. */
export async function startCluster(
  t: TestContext,
  cwd: string,
  command: 'up' | 'devcluster',
  ...args: readonly string[]
): Promise<TenonProcess> {
  const cluster = startTenon(t, cwd, [command, '--port', '0', '--api-port', '0', ...args])
  await eventually(
    () => /^simulated .*\n/m.test(cluster.out()) || undefined,
    () => `tenon ${command} tells its addresses: ${cluster.out()}${cluster.err()}`,
  )
  return cluster
}

/** The variables that `tenon devcluster` wrote for a controller. */
export async function controllerSettings(cwd: string): Promise<Env> {
  const text = await readFile(join(cwd, '.tenon/controller.env'), 'utf8')
  return Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
  )
}

/** Runs `kubectl` with the kubeconfig in `cwd`; `input` is its stdin. */
export function kubectl(cwd: string, args: readonly string[], input = ''): Promise<Finished> {
  return new Promise((resolve) => {
    const child = execFile(
      'kubectl',
      ['--kubeconfig', '.tenon/kubeconfig', ...args],
      { cwd, maxBuffer: 64 * 1024 * 1024 },
      (error, out, err) => resolve({ code: error === null ? 0 : 1, signal: null, out, err }),
    )
    // Its own error says more when it ends before it has read.
    child.stdin?.on('error', () => undefined).end(input)
  })
}

/** Runs `kubectl` and answers its stdout. @throws Error with its stderr when it fails. */
export async function kubectlOut(cwd: string, args: readonly string[], input = ''): Promise<string> {
  const { code, out, err } = await kubectl(cwd, args, input)
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${err}`)
  return out
}

/** The objects of a kind in all namespaces. */
export async function objectsOf<T>(cwd: string, kind: string): Promise<readonly T[]> {
  const text = await kubectlOut(cwd, ['get', kind, '-A', '-o', 'json'])
  return (JSON.parse(text) as { items: readonly T[] }).items
}

/** Runs a line of bash in which `tenon` is this program. */
export function runShell(cwd: string, line: string): Promise<Finished> {
  const script = `tenon() { "${process.execPath}" "${main}" "$@"; }; ${line}`
  return new Promise((resolve) => {
    const child = execFile('bash', ['-c', script], { cwd }, (_error, out, err) =>
      resolve({ code: child.exitCode, signal: child.signalCode, out, err }),
    )
  })
}

/** CPU time of a process so far; 0 where the system does not tell. */
export async function cpuMs(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const [user = 0, system = 0] = stat.split(' ').slice(13, 15).map(Number)
  return (user + system) * 10
}

/**
 * Interrupts a process as Ctrl-C does.
 * @returns how it ended, and the wall time until then without the time that it or this test waited for a processor: a
 * busy host makes no program slow.
 */
export async function interrupted(
  running: TenonProcess,
): Promise<{ readonly ended: Ended; readonly tookMs: number }> {
  const { child } = running
  const waitedOf = async (pid: number | undefined) => {
    const [, waitedNs = 0] = (await readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => ''))
      .split(' ')
      .map(Number)
    return waitedNs / 1e6
  }
  const startMs = performance.now()
  const before = [await waitedOf(child.pid), await waitedOf(process.pid)] as const
  let [childMs] = before
  const watched = setInterval(() => {
    void waitedOf(child.pid).then((now) => (childMs = Math.max(childMs, now)))
  }, 10)
  const ended = await running.end('SIGINT')
  clearInterval(watched)
  const ownMs = await waitedOf(process.pid)
  const tookMs = performance.now() - startMs - (childMs - before[0]) - (ownMs - before[1])
  return { ended, tookMs }
}
