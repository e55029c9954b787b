/**
 * `tenon init`: prints NodePools and node classes for the node groups of a cluster, or values of the chart that scales
 * them. It changes nothing.
 */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { counted, kinds } from '@tenon/api'
import { isProviderSettingError, type ProviderModule } from '@tenon/provider'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { type ClusterConnection, onCluster } from '../../kubectl/connection.ts'
import type { ClusterFlags } from '../../kubectl/flags.ts'
import { loadProviders, recognizedProvider } from '../../load-provider.ts'
import { type NodeGroupFlags, withCloud } from '../../source/node-group-cloud.ts'
import { chartValuesOf } from './cluster-autoscaler.ts'
import { manifestsOf } from './manifests.ts'
import { planOf } from './plan.ts'
import { seeCluster } from './see-cluster.ts'

/** The default of `--request-timeout`. */
const usualTimeoutMs = 30_000

export interface InitFlags extends ClusterFlags, NodeGroupFlags {
  /** What will add and remove nodes. */
  readonly mode: 'nodepools' | 'cluster-autoscaler'
  readonly provider?: string
}

/**
 * Prints the manifests, or the values file.
 * @throws CliError if the cluster cannot be read, or the provider is unknown.
 */
export async function runInit(io: Io, flags: InitFlags): Promise<void> {
  const { all, chosen } = await loadProviders(flags.provider ?? io.env['TENON_PROVIDER'] ?? '', io.cwd)
  await onCluster(io, flags, async (connection) => {
    try {
      io.out(
        flags.mode === 'nodepools'
          ? await manifests(io, connection, all, chosen)
          : await chartValuesOf(io, connection, withCloud(flags), flags.requestTimeout ?? usualTimeoutMs),
      )
    } catch (cause) {
      if (isProviderSettingError(cause)) throw new CliError(cause.message, { cause })
      throw cause
    }
  })
}

async function manifests(
  io: Io,
  { client, config, clock }: ClusterConnection,
  all: readonly ProviderModule[],
  chosen: ProviderModule | undefined,
): Promise<string> {
  const nodes = await client.list(kinds.node, { signal: io.interrupted })
  const module = chosen ?? (await recognizedProvider(all, nodes))
  const surveyModule = await module?.survey?.()
  if (module === undefined || surveyModule === undefined)
    throw new CliError(unknownText(all, chosen, nodes.length))
  const seen = await seeCluster(
    {
      kube: client,
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
  return manifestsOf(plan, config.server)
}

function unknownText(
  all: readonly ProviderModule[],
  chosen: ProviderModule | undefined,
  nodes: number,
): string {
  const known = all.filter(({ survey }) => survey !== undefined).map(({ name }) => name)
  if (chosen !== undefined)
    return `--provider=${chosen.name}: its module lacks survey, which tells node groups; use one of ${known.join(', ')}`
  return `none of ${counted(nodes, 'node')} has a provider ID of ${known.join(', ')}: name the provider with --provider`
}
