/** `tenon init`: NodePools and node classes for the node groups that a cluster has. It writes nothing but its output. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { kinds } from '@tenon/api'
import {
  createKubeClient,
  isKubeError,
  KubeConfigError,
  type LoadedKubeConfig,
  loadKubeConfig,
} from '@tenon/kube'
import { isProviderSettingError, type ProviderModule } from '@tenon/provider'
import { SystemClock } from '@tenon/runtime'
import { recognizedProvider } from '../cluster/recognize.ts'
import { CliError } from '../errors.ts'
import { manifestsOf } from '../init/manifests.ts'
import { planOf } from '../init/plan.ts'
import { seeCluster } from '../init/see-cluster.ts'
import type { Io } from '../io.ts'
import { loadProviders } from '../load-provider.ts'
import { version } from '../version.ts'

export interface InitFlags {
  readonly kubeconfig?: string
  readonly context?: string
  readonly provider?: string
  /** Milliseconds, of each request. */
  readonly requestTimeout: number
}

/**
 * Prints the manifests.
 * @throws CliError when the cluster cannot be read, or nothing tells the provider.
 */
export async function runInit(io: Io, flags: InitFlags): Promise<void> {
  const { all, chosen } = await loadProviders(flags.provider ?? io.env['TENON_PROVIDER'] ?? '', io.cwd)
  const config = configOf(io, flags)
  try {
    io.out(await manifests(io, config, flags.requestTimeout, all, chosen))
  } catch (cause) {
    if (isProviderSettingError(cause)) throw new CliError(cause.message, { cause })
    if (isKubeError(cause)) throw new CliError(`${config.server}: ${cause.message}`, { cause })
    throw cause
  } finally {
    config.close()
  }
}

async function manifests(
  io: Io,
  { transport, server }: LoadedKubeConfig,
  requestTimeoutMs: number,
  all: readonly ProviderModule[],
  chosen: ProviderModule | undefined,
): Promise<string> {
  const clock = new SystemClock()
  const kube = createKubeClient({ transport, clock, userAgent: `tenon/${version}`, requestTimeoutMs })
  const nodes = await kube.list(kinds.node, { signal: io.interrupted })
  const module = chosen ?? (await recognizedProvider(all, nodes))
  const surveyModule = await module?.survey?.()
  if (module === undefined || surveyModule === undefined)
    throw new CliError(unknownText(all, chosen, nodes.length))
  const seen = await seeCluster(
    {
      kube,
      clock,
      env: io.env,
      module,
      surveyModule,
      nodes,
      readText: (path) => readFile(resolve(io.cwd, path), 'utf8'),
    },
    io.interrupted,
  )
  const plan = planOf(seen)
  if (plan.pools.length === 0)
    throw new CliError(
      `there is no node group, no node and no pending pod to write a NodePool for${seen.remarks.map((each) => `; ${each}`).join('')}`,
    )
  return manifestsOf(plan, server)
}

function unknownText(
  all: readonly ProviderModule[],
  chosen: ProviderModule | undefined,
  nodes: number,
): string {
  const known = all.filter(({ survey }) => survey !== undefined).map(({ name }) => name)
  if (chosen !== undefined)
    return `--provider=${chosen.name}: its module lacks survey, which tells node groups; use one of ${known.join(', ')}`
  return `none of ${nodes} nodes has a provider ID of ${known.join(', ')}: name the provider with --provider`
}

function configOf(io: Io, { kubeconfig, context }: InitFlags): LoadedKubeConfig {
  try {
    return loadKubeConfig({
      env: io.env,
      ...(kubeconfig !== undefined && { kubeconfig }),
      ...(context !== undefined && { context }),
    })
  } catch (cause) {
    if (cause instanceof KubeConfigError) throw new CliError(cause.message, { cause })
    throw cause
  }
}
