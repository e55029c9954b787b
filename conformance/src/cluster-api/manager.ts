/** Runs the core controllers of Cluster API as a process. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createCredentials } from '@tenon/devcluster'
import type { Clock } from '@tenon/runtime'
import { ensureBinaries, manifestsOf } from '../binaries.ts'
import { freePorts, sparingCollector } from '../boot.ts'
import { ProcessGroup } from '../processes.ts'
import { type CoreManifests, readManifests } from './manifests.ts'

const startTimeoutMs = 30_000
const graceMs = 5_000

interface Setting {
  readonly binary: string
  readonly kubeconfigPath: string
  /** Contains the certificate of its webhooks. */
  readonly folder: string
  readonly webhookPort: number
  readonly healthPort: number
}

export class CoreManager {
  readonly manifests: CoreManifests
  readonly #setting: Setting
  readonly #clock: Clock
  #processes: ProcessGroup | undefined

  private constructor(setting: Setting, manifests: CoreManifests, clock: Clock) {
    this.#setting = setting
    this.manifests = manifests
    this.#clock = clock
  }

  /**
   * Builds the manager if necessary, and generates the certificate of its webhooks.
   * @throws GoMissingError, BuildFailedError
   */
  static async prepare(kubeconfigPath: string, clock: Clock): Promise<CoreManager> {
    const binaries = await ensureBinaries(['cluster-api-manager'], {
      environment: process.env,
      clock,
      progress: (line) => process.stderr.write(`${line}\n`),
    })
    const folder = mkdtempSync(join(tmpdir(), 'tenon-cluster-api-'))
    const { server: served, certificateAuthority } = await createCredentials(clock.now())
    writeFileSync(join(folder, 'tls.crt'), served.certificate)
    writeFileSync(join(folder, 'tls.key'), served.privateKey.reveal(), { mode: 0o600 })
    const [webhookPort = 0, healthPort = 0] = await freePorts(2)
    const binary = binaries['cluster-api-manager'] ?? ''
    const server = { port: webhookPort, authority: certificateAuthority.certificate }
    const setting = { binary, kubeconfigPath, folder, webhookPort, healthPort }
    return new CoreManager(setting, readManifests(manifestsOf(binary), server), clock)
  }

  /**
   * Starts it and waits until its webhooks respond. The CRDs must be served.
   * @throws ProcessEndedError, or Error after {@link startTimeoutMs}
   */
  async start(): Promise<void> {
    const { binary, kubeconfigPath, folder, webhookPort, healthPort } = this.#setting
    const logs = join(dirname(kubeconfigPath), 'logs')
    mkdirSync(logs, { recursive: true })
    const processes = new ProcessGroup(logs, this.#clock)
    this.#processes = processes
    const args = [
      `--kubeconfig=${kubeconfigPath}`,
      `--webhook-port=${webhookPort}`,
      `--webhook-cert-dir=${folder}`,
      `--health-addr=127.0.0.1:${healthPort}`,
      '--diagnostics-address=127.0.0.1:0',
      '--insecure-diagnostics=true',
      '--feature-gates=ClusterTopology=true',
    ]
    processes.start('cluster-api-manager', binary, args, { ...process.env, ...sparingCollector })
    await Promise.race([this.#untilReady(), processes.failure])
  }

  /** Stops it: immediately, or as a Deployment would. */
  async stop(signal: 'SIGKILL' | 'SIGTERM' = 'SIGTERM'): Promise<void> {
    await this.#processes?.stop(signal === 'SIGKILL' ? 0 : graceMs)
    this.#processes = undefined
  }

  /** Removes its files; it must have been stopped. */
  close(): void {
    rmSync(this.#setting.folder, { recursive: true, force: true })
  }

  async #untilReady(): Promise<void> {
    const deadline = this.#clock.monotonic() + startTimeoutMs
    const isReady = () =>
      fetch(`http://127.0.0.1:${this.#setting.healthPort}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      )
    while (!(await isReady())) {
      if (this.#clock.monotonic() > deadline)
        throw new Error(`Cluster API's manager was not ready after ${startTimeoutMs / 1000} s`)
      await this.#clock.sleep(50)
    }
  }
}
