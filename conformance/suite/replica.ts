import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from './cluster.ts'

const main = join(fileURLToPath(new URL('../../packages/cli/src/', import.meta.url)), 'main.ts')

/** A line of the log. */
interface LogLine {
  readonly level: string
  readonly time: string
  readonly message: string
  readonly identity?: string
  readonly metricsPort?: number
  readonly healthProbePort?: number
  readonly debugPort?: number | 'off'
}

/** Messages that only a leader may log. */
const actions = /^(created|launched|registered|initialized|deleted) node|^(computed|disrupting|tainted)/

/** One replica of `tenon controller --provider kwok`, with the lease in kube-system. */
export class Replica {
  static #nextDebugPort = 18_082
  readonly #process: ChildProcess
  readonly #log: string
  readonly #exit: Promise<number | null>

  constructor(kubeconfigPath: string, log: string, environment: Readonly<Record<string, string>>) {
    this.#log = log
    const output = openSync(log, 'a')
    this.#process = spawn(process.execPath, [main, 'controller', '--provider=kwok'], {
      stdio: ['ignore', output, output],
      env: {
        ...process.env,
        KUBECONFIG: kubeconfigPath,
        METRICS_PORT: '0',
        HEALTH_PROBE_PORT: '0',
        DEBUG_PORT: `${Replica.#nextDebugPort++}`,
        LEADER_ELECTION_NAMESPACE: 'kube-system',
        ...environment,
      },
    })
    this.#exit = new Promise((resolve) => {
      this.#process.once('exit', resolve)
    })
    closeSync(output)
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  log(): string {
    return readFileSync(this.#log, 'utf8')
  }

  lines(): readonly LogLine[] {
    if (!existsSync(this.#log)) return []
    const complete = this.log().split('\n').slice(0, -1)
    return complete.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogLine)
  }

  /** Log lines about changes that it made. */
  actions(): readonly LogLine[] {
    return this.lines().filter(({ message }) => actions.test(message))
  }

  /** When it began to stop, according to its log. */
  stoppingSince(): number {
    return Date.parse(this.lines().findLast(({ message }) => message === 'stopping')?.time ?? '')
  }

  #start(): LogLine | undefined {
    return this.lines().find(({ message }) => message === 'starting')
  }

  /** As in the lease; undefined until it has started. */
  identity(): string | undefined {
    return this.#start()?.identity
  }

  /** Waits until it is ready, leader or not. */
  async ready(): Promise<void> {
    await until('a replica is ready', 90, async () => {
      if (!this.isRunning) throw new Error(`the replica ended: ${this.log()}`)
      return this.#start() !== undefined && (await this.readiness()) === 'ok'
    })
  }

  async readiness(): Promise<string> {
    return await this.#get(this.#start()?.healthProbePort, '/readyz')
  }

  async logLevel(): Promise<string> {
    return (await this.#get(this.#debugPort(), '/debug/log-level')).trim()
  }

  #debugPort(): number | undefined {
    const port = this.#start()?.debugPort
    return port === 'off' ? undefined : port
  }

  /** `leader_election_master_status`. */
  async master(): Promise<number> {
    const page = await this.#get(this.#start()?.metricsPort, '/metrics')
    const [, value] =
      /^leader_election_master_status\{name="karpenter-leader-election"\} (\d)$/m.exec(page) ?? []
    return Number(value)
  }

  async #get(port: number | undefined, path: string): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return await response.text()
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** Waits for its end; returns the exit code, null if a signal ended it. */
  async ended(seconds: number): Promise<number | null> {
    await until(`the replica ends, see ${this.log()}`, seconds, async () => !this.isRunning)
    return await this.#exit
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (!this.isRunning) return
    this.signal(signal)
    await this.#exit
  }
}
