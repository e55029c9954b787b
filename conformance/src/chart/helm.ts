/** Runs the pinned helm on the charts of this repository. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { loadAllYaml } from '@kubernetes/client-node'
import { SystemClock } from '@tenon/runtime'
import { ensureBinaries } from '../binaries.ts'

/** The folder with the charts. */
export const chartsFolder: string = fileURLToPath(new URL('../../../charts/', import.meta.url))

export interface HelmResult {
  /** 0 on success. */
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Values of a chart, as in a values file. */
export type Values = Readonly<Record<string, unknown>>

const runLimitMs = 60_000

export class Helm {
  readonly #program: string
  readonly #folder: string
  readonly #kubeconfigPath: string | undefined

  private constructor(program: string, folder: string, kubeconfigPath: string | undefined) {
    this.#program = program
    this.#folder = folder
    this.#kubeconfigPath = kubeconfigPath
  }

  /**
   * Builds helm if necessary.
   * @param folder replaces the user's home for helm's files.
   * @throws GoMissingError, BuildFailedError
   */
  static async open(folder: string, kubeconfigPath?: string): Promise<Helm> {
    const binaries = await ensureBinaries(['helm'], {
      environment: process.env,
      clock: new SystemClock(),
      progress: (line) => process.stderr.write(`${line}\n`),
    })
    return new Helm(binaries.helm ?? '', folder, kubeconfigPath)
  }

  /** Runs helm; `values` are passed as a file. */
  run(args: readonly string[], values?: Values): Promise<HelmResult> {
    const all = [
      ...args,
      ...(this.#kubeconfigPath === undefined ? [] : ['--kubeconfig', this.#kubeconfigPath]),
      ...(values === undefined ? [] : ['--values', '-']),
    ]
    const env = {
      PATH: process.env['PATH'],
      HOME: this.#folder,
      HELM_CACHE_HOME: this.#folder,
      HELM_CONFIG_HOME: this.#folder,
      HELM_DATA_HOME: this.#folder,
    }
    return new Promise((resolve) => {
      const options = { env, timeout: runLimitMs, maxBuffer: 64 * 1024 * 1024 }
      const child = execFile(this.#program, all, options, (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err })
      })
      child.stdin?.end(values === undefined ? '' : JSON.stringify(values))
    })
  }

  /**
   * Runs helm and returns its output.
   * @throws Error with helm's message.
   */
  async must(args: readonly string[], values?: Values): Promise<string> {
    const { code, out, err } = await this.run(args, values)
    if (code !== 0) throw new Error(`helm ${args.join(' ')}: ${err}`)
    return out
  }

  /**
   * The rendered text of a chart.
   * @throws Error with helm's message.
   */
  template(chart: string, values: Values = {}, release = 'karpenter'): Promise<string> {
    return this.must(['template', release, chart, '--namespace', 'kube-system'], values)
  }

  /** The rendered objects. */
  async objects<T>(chart: string, values: Values = {}, release = 'karpenter'): Promise<readonly T[]> {
    const objects = loadAllYaml(await this.template(chart, values, release))
    // Converts the library's class instances to plain objects.
    const plain = JSON.parse(JSON.stringify(objects)) as readonly (T | null)[]
    return plain.filter((object): object is T & {} => object !== null)
  }
}
