import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cli = fileURLToPath(new URL('../../packages/cli/', import.meta.url))
const main = join(cli, 'src', 'main.ts')

/** The output of `tenon crds`. */
export function crdsYaml(): string {
  return execFileSync(process.execPath, [main, 'crds'], { encoding: 'utf8' })
}

/** Runs `tenon controller` from source as a process. */
export class Controller {
  readonly #kubeconfigPath: string
  readonly #log: string
  readonly #environment: Readonly<Record<string, string>>
  readonly #provider: string
  #process: ChildProcess | undefined

  /**
   * @param log receives the output of every run.
   * @param environment options besides those that every test needs.
   */
  constructor(
    kubeconfigPath: string,
    log: string,
    environment: Readonly<Record<string, string>> = {},
    provider = 'kwok',
  ) {
    this.#kubeconfigPath = kubeconfigPath
    this.#provider = provider
    this.#log = log
    this.#environment = environment
  }

  start(): void {
    const output = openSync(this.#log, 'a')
    const args = [main, 'controller', '--provider', this.#provider, '--kubeconfig', this.#kubeconfigPath]
    this.#process = spawn(process.execPath, args, {
      stdio: ['ignore', output, output],
      // Any free ports for probes and metrics: the defaults may be in use.
      env: {
        ...process.env,
        METRICS_PORT: '0',
        HEALTH_PROBE_PORT: '0',
        LEADER_ELECTION_NAMESPACE: 'kube-system',
        ...this.#environment,
      },
    })
    closeSync(output)
  }

  /** Throws if the controller ended although nobody stopped it. */
  assertRunning(): void {
    const { exitCode, signalCode } = this.#process ?? {}
    if (exitCode === null && signalCode === null) return
    // The file goes with the suite's folder.
    const end = readFileSync(this.#log, 'utf8').slice(-4000)
    throw new Error(`tenon controller ended (${signalCode ?? `exit code ${exitCode}`}):\n${end}`)
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }
}
