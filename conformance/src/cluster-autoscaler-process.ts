/** Runs `tenon cluster-autoscaler` as a process, with the rights of a service account. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments, stringify } from 'yaml'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const manifest = new URL('../../examples/cluster-autoscaler/regular.yaml', import.meta.url)

interface Kubeconfig {
  readonly users: readonly { readonly name: string; readonly user: object }[]
}

export interface ClusterAutoscalerOptions {
  readonly controlPlane: { readonly kubeconfigPath: string; readonly binDir: string }
  /** Folder of its log and its kubeconfig. */
  readonly folder: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /**
   * Objects that grant rights to the service account `cluster-autoscaler` of kube-system, and the account itself;
   * default: those of examples/cluster-autoscaler.
   */
  readonly rights?: readonly object[]
}

export class ClusterAutoscalerProcess {
  readonly #options: ClusterAutoscalerOptions
  readonly #kubeconfigPath: string
  #child: ChildProcess | undefined

  constructor(options: ClusterAutoscalerOptions) {
    this.#options = options
    this.#kubeconfigPath = join(options.folder, 'service-account.kubeconfig')
    this.#grant()
  }

  start(): void {
    const { args, environment, folder } = this.#options
    const output = openSync(join(folder, 'autoscaler.log'), 'a')
    this.#child = spawn(
      process.execPath,
      [main, 'cluster-autoscaler', ...args, '--kubeconfig', this.#kubeconfigPath],
      { stdio: ['ignore', output, output], env: { ...process.env, ...environment } },
    )
    closeSync(output)
  }

  /** Throws if it ended although nobody stopped it. */
  assertRunning(): void {
    const { exitCode, signalCode } = this.#child ?? {}
    if (exitCode === null && signalCode === null) return
    throw new Error(`tenon cluster-autoscaler ended (${signalCode ?? `exit code ${exitCode}`})`)
  }

  /** @returns the exit code; undefined if it is not running, null after SIGKILL. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<unknown> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return undefined
    const exit = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    return await exit
  }

  log(): string {
    return readFileSync(join(this.#options.folder, 'autoscaler.log'), 'utf8')
  }

  /** Grants the rights, and creates a kubeconfig for the service account. */
  #grant(): void {
    const { kubeconfigPath } = this.#options.controlPlane
    const { rights = exampleRights() } = this.#options
    this.#kubectl(['apply', '-f', '-'], rights.map((object) => stringify(object)).join('---\n'))
    const token = this.#kubectl(['create', 'token', 'cluster-autoscaler', '-n', 'kube-system'])
    const config = parse(readFileSync(kubeconfigPath, 'utf8')) as Kubeconfig
    const users = config.users.map(({ name }) => ({ name, user: { token: token.trim() } }))
    writeFileSync(this.#kubeconfigPath, stringify({ ...config, users }), { mode: 0o600 })
  }

  #kubectl(args: readonly string[], input = ''): string {
    const { binDir, kubeconfigPath } = this.#options.controlPlane
    return execFileSync(join(binDir, 'kubectl'), ['--kubeconfig', kubeconfigPath, ...args], {
      input,
      encoding: 'utf8',
    })
  }
}

/** Everything in the example but the Deployment. */
function exampleRights(): readonly object[] {
  const objects = parseAllDocuments(readFileSync(manifest, 'utf8')).map(
    (document) => document.toJS() as { readonly kind: string },
  )
  return objects.filter(({ kind }) => kind !== 'Deployment')
}
