/** Runs the controllers of Cluster API as processes. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createCredentials } from '@tenon/devcluster'
import type { Clock } from '@tenon/runtime'
import { ensureBinaries, manifestsOf } from '../binaries.ts'
import { freePorts, sparingCollector } from '../boot.ts'
import type { ComponentName } from '../components.ts'
import { ProcessGroup } from '../processes.ts'
import { type ManagerManifests, readManifests } from './manifests.ts'

const startTimeoutMs = 30_000
const graceMs = 5_000

interface Manager {
  readonly name: ComponentName
  readonly binary: string
  readonly webhookPort: number
  readonly healthPort: number
}

interface Setting {
  readonly managers: readonly Manager[]
  readonly kubeconfigPath: string
  /** Contains the certificate of their webhooks. */
  readonly folder: string
}

export class Managers {
  /** CRDs and webhooks of all. */
  readonly manifests: ManagerManifests
  readonly #setting: Setting
  readonly #clock: Clock
  #processes: ProcessGroup | undefined

  private constructor(setting: Setting, manifests: ManagerManifests, clock: Clock) {
    this.#setting = setting
    this.manifests = manifests
    this.#clock = clock
  }

  /**
   * Builds these managers if necessary, and generates the certificate of their webhooks.
   * @throws GoMissingError, BuildFailedError
   */
  static async prepare(
    names: readonly ComponentName[],
    kubeconfigPath: string,
    clock: Clock,
  ): Promise<Managers> {
    const binaries = await ensureBinaries(names, {
      environment: process.env,
      clock,
      progress: (line) => process.stderr.write(`${line}\n`),
    })
    const folder = mkdtempSync(join(tmpdir(), 'tenon-cluster-api-'))
    const { server, certificateAuthority } = await createCredentials(clock.now())
    writeFileSync(join(folder, 'tls.crt'), server.certificate)
    writeFileSync(join(folder, 'tls.key'), server.privateKey.reveal(), { mode: 0o600 })
    const ports = await freePorts(2 * names.length)
    const managers = names.map((name, at) => ({
      name,
      binary: binaries[name] ?? '',
      webhookPort: ports[2 * at] ?? 0,
      healthPort: ports[2 * at + 1] ?? 0,
    }))
    const manifests = managers.map(({ binary, webhookPort }) =>
      readManifests(manifestsOf(binary), {
        port: webhookPort,
        authority: certificateAuthority.certificate,
      }),
    )
    const all = {
      crds: manifests.flatMap(({ crds }) => crds),
      webhooks: manifests.flatMap(({ webhooks }) => webhooks),
    }
    return new Managers({ managers, kubeconfigPath, folder }, all, clock)
  }

  /**
   * Starts them and waits until their webhooks respond. The CRDs must be served.
   * @throws ProcessEndedError, or Error after {@link startTimeoutMs}
   */
  async start(): Promise<void> {
    const { managers, kubeconfigPath, folder } = this.#setting
    const logs = join(dirname(kubeconfigPath), 'logs')
    mkdirSync(logs, { recursive: true })
    const processes = new ProcessGroup(logs, this.#clock)
    this.#processes = processes
    for (const { name, binary, webhookPort, healthPort } of managers) {
      const args = [
        `--kubeconfig=${kubeconfigPath}`,
        `--webhook-port=${webhookPort}`,
        `--webhook-cert-dir=${folder}`,
        `--health-addr=127.0.0.1:${healthPort}`,
        '--diagnostics-address=127.0.0.1:0',
        '--insecure-diagnostics=true',
        '--feature-gates=ClusterTopology=true',
      ]
      processes.start(name, binary, args, { ...process.env, ...sparingCollector })
    }
    const ready = Promise.all(managers.map((manager) => this.#untilReady(manager)))
    await Promise.race([ready, processes.failure])
  }

  /** Stops them: immediately, or as a Deployment would. */
  async stop(signal: 'SIGKILL' | 'SIGTERM' = 'SIGTERM'): Promise<void> {
    await this.#processes?.stop(signal === 'SIGKILL' ? 0 : graceMs)
    this.#processes = undefined
  }

  /** Removes their files; they must have been stopped. */
  close(): void {
    rmSync(this.#setting.folder, { recursive: true, force: true })
  }

  async #untilReady({ name, healthPort }: Manager): Promise<void> {
    const deadline = this.#clock.monotonic() + startTimeoutMs
    const isReady = () =>
      fetch(`http://127.0.0.1:${healthPort}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      )
    while (!(await isReady())) {
      if (this.#clock.monotonic() > deadline)
        throw new Error(`${name} was not ready after ${startTimeoutMs / 1000} s`)
      await this.#clock.sleep(50)
    }
  }
}
