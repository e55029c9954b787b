/** Runs `tenon controller` as the image does, and measures its resources (Linux only). */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '@tenon/runtime'
import type { ProbeOrder } from './loop-probe.ts'

const dockerfile = new URL('../../Dockerfile', import.meta.url)
const bundler = fileURLToPath(new URL('../../build/bundle.ts', import.meta.url))
const probe = new URL('loop-probe.ts', import.meta.url).href
const pollMs = 100
/** Unit of the times in /proc; the same on every Linux host. */
const ticksPerSecond = 100

/** Resources of a process so far, over all its threads. */
export interface ProcessFigures {
  readonly cpuSeconds: number
  readonly rssMiB: number
  readonly peakRssMiB: number
}

export interface ControllerPlan {
  readonly kubeconfigPath: string
  /** File for the process's output. */
  readonly log: string
  readonly clock: Clock
  /** Options of Node, such as `--cpu-prof`. */
  readonly nodeOptions?: readonly string[]
  /** Further options of the controller. */
  readonly options?: readonly string[]
  /** The Lease to acquire; without it the controller leads at once. */
  readonly lease?: { readonly namespace: string; readonly name: string }
  /** Measures blocking of the event loop, which costs a little CPU time. */
  readonly isProbed?: boolean
}

interface Ports {
  readonly probes: number
  readonly metrics: number
}

let bundleFolder: string | undefined

/** The shipped bundle, built once; removed when this process exits. */
export function bundledMain(): string {
  if (bundleFolder === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'tenon-bench-bundle-'))
    process.once('exit', () => {
      rmSync(folder, { recursive: true, force: true })
    })
    execFileSync(process.execPath, [bundler, '--outdir', folder], { stdio: ['ignore', 'ignore', 'inherit'] })
    bundleFolder = folder
  }
  return join(bundleFolder, 'tenon.mjs')
}

/** The image's options of Node. */
function imageNodeOptions(): readonly string[] {
  const [, entrypoint = '[]'] = /^ENTRYPOINT (.*)$/m.exec(readFileSync(dockerfile, 'utf8')) ?? []
  return (JSON.parse(entrypoint) as readonly string[]).filter((each) => each.startsWith('--'))
}

/** A running controller with the provider `kwok`. */
export class ControllerProcess {
  readonly #process: ChildProcess
  readonly #plan: ControllerPlan
  readonly #ports: Ports

  private constructor(process: ChildProcess, plan: ControllerPlan, ports: Ports) {
    this.#process = process
    this.#plan = plan
    this.#ports = ports
  }

  static async start(plan: ControllerPlan): Promise<ControllerProcess> {
    const ports = { probes: await freePort(), metrics: await freePort() }
    const output = openSync(plan.log, 'w')
    const { nodeOptions = [], options = [], lease, isProbed = false } = plan
    const election =
      lease === undefined
        ? ['--disable-leader-election']
        : [`--leader-election-namespace=${lease.namespace}`, `--leader-election-name=${lease.name}`]
    const child = spawn(
      process.execPath,
      [
        ...imageNodeOptions(),
        ...nodeOptions,
        ...(isProbed ? ['--import', probe] : []),
        bundledMain(),
        'controller',
        '--provider=kwok',
        `--kubeconfig=${plan.kubeconfigPath}`,
        ...election,
        `--metrics-port=${ports.metrics}`,
        `--health-probe-port=${ports.probes}`,
        ...options,
      ],
      { stdio: ['ignore', output, output, ...(isProbed ? (['ipc'] as const) : [])] },
    )
    closeSync(output)
    return new ControllerProcess(child, plan, ports)
  }

  /** Waits until the probes respond: the program is loaded. */
  async serving(withinMs: number): Promise<void> {
    await this.#until(withinMs, this.#ports.probes, '/healthz', (text) => text === 'ok')
  }

  /** Waits until the readiness probe succeeds: every kind is listed. */
  async ready(withinMs: number): Promise<void> {
    await this.#until(withinMs, this.#ports.probes, '/readyz', (text) => text === 'ok')
  }

  /** Waits until decisions can be made: the cluster state is complete. */
  async stateSynced(withinMs: number): Promise<void> {
    await this.ready(withinMs)
    const isSynced = (text: string) => /^karpenter_cluster_state_synced 1$/m.test(text)
    await this.#until(withinMs, this.#ports.metrics, '/metrics', isSynced)
  }

  /** Asks for all metrics, as Prometheus does. */
  async scrape(): Promise<{ readonly seconds: number; readonly lines: number }> {
    const { clock } = this.#plan
    const start = clock.monotonic()
    const response = await fetch(`http://127.0.0.1:${this.#ports.metrics}/metrics`)
    const lines = (await response.text()).split('\n').length
    return { seconds: (clock.monotonic() - start) / 1000, lines }
  }

  async #until(
    withinMs: number,
    port: number,
    path: string,
    isReached: (text: string) => boolean,
  ): Promise<void> {
    const { clock, log } = this.#plan
    const giveUpMs = clock.monotonic() + withinMs
    for (;;) {
      this.assertRunning()
      const text = await fetch(`http://127.0.0.1:${port}${path}`).then(
        (response) => response.text(),
        () => '',
      )
      if (isReached(text)) return
      if (clock.monotonic() > giveUpMs) throw new Error(`${path} says nothing good in time, see ${log}`)
      await clock.sleep(pollMs)
    }
  }

  figures(): ProcessFigures {
    this.assertRunning()
    const status = readFileSync(`/proc/${this.#process.pid}/status`, 'utf8')
    const mebibytes = (field: string) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1024
    return {
      cpuSeconds: this.#cpuSeconds(),
      rssMiB: mebibytes('VmRSS'),
      peakRssMiB: mebibytes('VmHWM'),
    }
  }

  /**
   * Starts or stops measuring the event loop; initially it is measured. Measuring takes as much CPU time as
   * following a quiet cluster.
   */
  watchLoop(isOn: boolean): void {
    const order: ProbeOrder = { kind: 'watch', isOn }
    this.#process.send(order)
  }

  /** The longest time that the event loop was blocked since the last call, in milliseconds. */
  async longestHoldMs(): Promise<number> {
    const answer = once(this.#process, 'message')
    const order: ProbeOrder = { kind: 'longestHold' }
    this.#process.send(order)
    const [longestMs] = await answer
    return Number(longestMs)
  }

  assertRunning(): void {
    const { exitCode, signalCode } = this.#process
    if (exitCode === null && signalCode === null) return
    throw new Error(`the controller ended (${signalCode ?? `exit code ${exitCode}`}), see ${this.#plan.log}`)
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const ended = once(this.#process, 'exit')
    this.#process.kill('SIGTERM')
    await ended
  }

  /** User and system time: fields 14 and 15 of `stat`, counted after the name, which may contain anything. */
  #cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.#process.pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  }
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}
