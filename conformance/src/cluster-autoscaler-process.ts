/**
 * Runs `tenon cluster-autoscaler` as a process, with the rights that the manifests of
 * examples/cluster-autoscaler grant.
 */
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

  /** Applies everything but the Deployment, and creates a kubeconfig for its service account. */
  #grant(): void {
    const { kubeconfigPath } = this.#options.controlPlane
    const objects = parseAllDocuments(readFileSync(manifest, 'utf8')).map((document): unknown =>
      document.toJS(),
    )
    const rights = objects.filter((object) => (object as { readonly kind: string }).kind !== 'Deployment')
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
