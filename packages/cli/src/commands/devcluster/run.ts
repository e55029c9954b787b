import { writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { JsonLogger, SystemClock, SystemRandom } from '@tenon/runtime'
import { applyManifests } from '../../embedded/apply.ts'
import { aligned, type ClusterPorts, startCluster } from '../../embedded/cluster.ts'
import { display } from '../../embedded/display.ts'
import { figuresOf } from '../../embedded/figures.ts'
import { simulatedCloud } from '../../embedded/simulated-cloud.ts'
import type { Io } from '../../io.ts'
import { readManifests } from '../../manifests.ts'

export interface DevClusterFlags extends ClusterPorts {
  /** A built-in cloud, a module file or a package; absent: the default cloud. */
  readonly provider?: string
  readonly filename: readonly string[]
}

/** `tenon devcluster`. Runs until the process is told to stop. */
export async function runDevCluster(io: Io, options: DevClusterFlags): Promise<void> {
  const cloud = await simulatedCloud(options.provider, io.cwd)
  const warn = (message: string) => io.err(`warning: ${message}\n`)
  const manifests = await readManifests(options.filename, io.cwd, warn)
  const clock = new SystemClock()
  const logger = new JsonLogger(clock, io.err, { value: 'error' })
  const running = await startCluster(io, cloud, options, { clock, random: new SystemRandom(), logger })
  try {
    await applyManifests(running.cluster, manifests, clock, warn)
    const settings = await writeSettings(io, dirname(running.kubeconfig), {
      KUBECONFIG: resolve(io.cwd, running.kubeconfig),
      ...running.settings,
    })
    const controller = `tenon controller --provider ${cloud.asked} --disable-leader-election`
    const header = aligned([
      ['Kubernetes API', running.apiUrl],
      ['kubeconfig', running.kubeconfig],
      ...running.whereabouts,
      ['for the controller', `set -a; . ${settings}; set +a; ${controller}`],
    ])
    io.out(`${header}\n`)
    await display(
      io,
      clock,
      () => header,
      () => figuresOf(running.cluster),
      io.interrupted,
    )
  } finally {
    await running.stop()
  }
}

/** Writes the settings of a controller for this cluster, to be sourced by a shell. */
async function writeSettings(
  io: Io,
  folder: string,
  values: Readonly<Record<string, string>>,
): Promise<string> {
  const path = join(folder, 'controller.env')
  await writeFile(resolve(io.cwd, path), settingsText(values), { mode: 0o600 })
  return path
}

const plain = /^[\w@%+=:,./-]+$/

/** Lines of `NAME=value`, quoted for a shell where needed. */
export function settingsText(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${plain.test(value) ? value : quoted(value)}\n`)
    .join('')
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`
}
