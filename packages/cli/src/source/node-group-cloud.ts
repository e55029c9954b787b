/** The cloud of the Cluster Autoscaler mode, for commands that look at node groups and change nothing. */
import type { Node } from '@tenon/api'
import { createAccessReviews, createKubeClient, KubeConfigError, loadKubeConfig } from '@tenon/kube'
import type {
  CheckedCluster,
  NodeGroupModule,
  NodeGroupPreflightDependencies,
  ProviderModule,
} from '@tenon/provider'
import { type Clock, silentLogger, SystemRandom } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { recognizedProvider } from '../load-provider.ts'
import { builtInProviders } from '../providers.ts'
import { version } from '../version.ts'
import type { RunningAutoscaler } from './autoscalers.ts'

/** Flags of the mode, as `tenon cluster-autoscaler` has them. */
export interface NodeGroupFlags {
  readonly cloudProvider?: string
  /** Kubeconfig of the management cluster. */
  readonly cloudConfig?: string
  readonly nodeGroupAutoDiscovery: readonly string[]
  readonly nodes: readonly string[]
  readonly allowScaleToZero?: boolean
}

/** `--provider` names the cloud too. */
export function withCloud<F extends NodeGroupFlags & { readonly provider?: string }>(flags: F): F {
  const cloudProvider = flags.cloudProvider ?? flags.provider
  return cloudProvider === undefined ? flags : { ...flags, cloudProvider }
}

export type RunningClusterAutoscaler = Extract<RunningAutoscaler, { kind: 'clusterAutoscaler' }>

/** Where node groups are looked for. */
export interface NodeGroupSources {
  readonly io: Io
  readonly flags: NodeGroupFlags
  /** Its flags are the defaults. */
  readonly running: RunningClusterAutoscaler | undefined
  readonly workload: CheckedCluster
  /** Of the workload cluster. */
  readonly nodes: readonly Node[]
  readonly clock: Clock
  /** Milliseconds. */
  readonly requestTimeoutMs: number
}

/** A cloud with node groups. */
export interface NodeGroupCloud {
  readonly module: ProviderModule
  /** As in `--cloud-provider`. */
  readonly name: string
  readonly nodeGroups: NodeGroupModule
  readonly dependencies: NodeGroupPreflightDependencies
}

/**
 * Connects to the management cluster, if there is another one, and disconnects after `work`.
 * @throws CliError if the cloud or the management cluster is not known.
 */
export async function withNodeGroupCloud<T>(
  sources: NodeGroupSources,
  work: (cloud: NodeGroupCloud) => Promise<T>,
): Promise<T> {
  const { io, flags, running, workload, clock } = sources
  const { module, name, open } = await cloudOf(sources)
  const nodeGroups = await open()
  const hub = nodeGroups.hasManagementCluster === true ? managementConfig(sources) : undefined
  try {
    const given = (own: readonly string[], flag: string) =>
      own.length > 0 ? own : (running?.flag(flag) ?? [])
    return await work({
      module,
      name,
      nodeGroups,
      dependencies: {
        env: io.env,
        clusters: { workload, management: hub === undefined ? workload : hubOf(hub, sources) },
        discoverySpecs: given(flags.nodeGroupAutoDiscovery, 'node-group-auto-discovery'),
        nodeGroupSpecs: given(flags.nodes, 'nodes'),
        allowsEmptyGroups:
          flags.allowScaleToZero ?? (running?.flag('allow-scale-to-zero') ?? []).includes('true'),
        runtime: { clock, random: new SystemRandom(), logger: silentLogger },
        userAgent: `tenon/${version}`,
      },
    })
  } finally {
    hub?.close()
  }
}

async function cloudOf({ flags, running, nodes }: NodeGroupSources): Promise<{
  readonly module: ProviderModule
  readonly name: string
  readonly open: () => Promise<NodeGroupModule>
}> {
  const asked = flags.cloudProvider ?? running?.flag('cloud-provider').at(-1)
  const module =
    asked === undefined
      ? await recognizedProvider(
          builtInProviders.filter(({ nodeGroups }) => nodeGroups !== undefined),
          nodes,
        )
      : builtInProviders.find((each) => each.name === asked || each.nodeGroupsCloud === asked)
  const clouds = builtInProviders.flatMap(({ name, nodeGroupsCloud = name, nodeGroups }) =>
    nodeGroups === undefined ? [] : [nodeGroupsCloud],
  )
  if (module?.nodeGroups === undefined)
    throw new CliError(
      asked === undefined
        ? `no Node tells which cloud has the node groups: name it with --cloud-provider, ${clouds.join(' or ')}`
        : `--cloud-provider=${asked}: it has no node groups; use ${clouds.join(' or ')}`,
    )
  const { name, nodeGroupsCloud = name, nodeGroups } = module
  return { module, name: nodeGroupsCloud, open: nodeGroups }
}

type HubConfig = ReturnType<typeof loadKubeConfig> & { readonly path: string }

/** Undefined if the workload cluster is its own management cluster. */
function managementConfig({ flags, running, clock }: NodeGroupSources): HubConfig | undefined {
  const path = flags.cloudConfig
  const inPod = running?.flag('cloud-config').at(-1) ?? ''
  if (path === undefined && running !== undefined && inPod !== '')
    throw new CliError(
      `Deployment ${running.namespace}/${running.name} reaches its management cluster by --cloud-config=${inPod}: name a kubeconfig of that cluster with --cloud-config`,
    )
  if (path === undefined) return undefined
  try {
    return { ...loadKubeConfig({ kubeconfig: path, env: {}, clock }), path }
  } catch (cause) {
    if (!(cause instanceof KubeConfigError)) throw cause
    throw new CliError(`--cloud-config: ${cause.message}`, { cause })
  }
}

function hubOf(
  { transport, server, path }: HubConfig,
  { clock, requestTimeoutMs }: NodeGroupSources,
): CheckedCluster {
  const options = { transport, clock, requestTimeoutMs, userAgent: `tenon/${version}` }
  const reviews = createAccessReviews(options)
  return {
    client: createKubeClient(options),
    server,
    who: `the user of ${path}`,
    isAllowed: (right, signal) => reviews.isAllowed(right, undefined, signal),
  }
}
