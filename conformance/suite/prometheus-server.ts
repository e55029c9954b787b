/** Runs a Prometheus that scrapes one target every second. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { until } from './cluster.ts'

/** One series of a result, with its current value. */
interface Answer {
  readonly metric: Readonly<Record<string, string>>
  readonly value: string
}

export class PrometheusServer {
  readonly #url: string
  readonly #process: ChildProcess

  private constructor(url: string, child: ChildProcess) {
    this.#url = url
    this.#process = child
  }

  /** Resolves once it answers queries. All rules are evaluated every second. */
  static async start(
    program: string,
    options: { readonly folder: string; readonly target: string; readonly rules: readonly string[] },
  ): Promise<PrometheusServer> {
    const { folder, target, rules } = options
    const config = join(folder, 'prometheus.yaml')
    for (const [index, text] of rules.entries())
      writeFileSync(join(folder, `rules-${index}.yaml`), text.replaceAll(/interval: \d+s/g, 'interval: 1s'))
    writeFileSync(
      config,
      `global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }
rule_files: [ 'rules-*.yaml' ]
scrape_configs:
  - job_name: tenon
    static_configs: [ { targets: [ '${target}' ] } ]
`,
    )
    const port = await freePort()
    const log = openSync(join(folder, 'prometheus.log'), 'a')
    const child = spawn(
      program,
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, 'prometheus')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: ['ignore', log, log] },
    )
    closeSync(log)
    const url = `http://127.0.0.1:${port}`
    await until('Prometheus is ready', 20, async () => {
      if (child.exitCode !== null) throw new Error(`Prometheus ended, see ${folder}/prometheus.log`)
      return await fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      )
    })
    return new PrometheusServer(url, child)
  }

  /**
   * The current value of an expression.
   * @throws if Prometheus rejects it.
   */
  async query(expression: string): Promise<readonly Answer[]> {
    const response = await fetch(`${this.#url}/api/v1/query?query=${encodeURIComponent(expression)}`)
    const { data, error } = (await response.json()) as {
      readonly error?: string
      readonly data?: {
        readonly result: readonly {
          readonly metric: Answer['metric']
          readonly value: readonly [number, string]
        }[]
      }
    }
    if (data === undefined) throw new Error(`${expression}: ${error}`)
    return data.result.map(({ metric, value: [, value] }) => ({ metric, value }))
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null) return
    const ended = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGKILL')
    await ended
  }
}

/** A loopback port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(address !== null && typeof address === 'object' ? address.port : 0)
    })
  })
  await new Promise((resolve) => server.close(resolve))
  return port
}
