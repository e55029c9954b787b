/** How `tenon cluster-autoscaler` connects to the API server (cluster-autoscaler.md 2.1). */
import type { KubernetesConnection, ProcessOptions } from '@tenon/cluster-autoscaler'
import {
  directKubeConfig,
  KubeConfigError,
  type KubeConfigOptions,
  loadKubeConfig,
  type ServerAddress,
} from '@tenon/kube'
import { CliError } from '../../errors.ts'

type Env = Readonly<Record<string, string | undefined>>

/** A connection, and what another thread needs to open the same. */
interface AutoscalerConnection extends KubernetesConnection {
  readonly config: KubeConfigOptions | ServerAddress
}

/** The cluster of the nodes, and the management cluster if it is reached in another way. */
interface AutoscalerConnections {
  readonly workload: AutoscalerConnection
  readonly management?: AutoscalerConnection
}

/** @throws CliError naming the file or flag and the fix. */
export function connectionsOf(options: ProcessOptions, env: Env): AutoscalerConnections {
  const workload = opened(workloadConfig(options, env))
  const config = managementConfig(options, env)
  return config === undefined ? { workload } : { workload, management: opened(config) }
}

function opened(config: AutoscalerConnection['config']): AutoscalerConnection {
  try {
    const { transport, server } = 'url' in config ? directKubeConfig(config) : loadKubeConfig(config)
    return { transport, server, config }
  } catch (cause) {
    if (!(cause instanceof KubeConfigError)) throw cause
    throw new CliError(cause.message, { cause })
  }
}

/** Undefined if it is the workload cluster, or the cloud needs none. */
function managementConfig(
  { management, kubeconfig, kubernetes }: ProcessOptions,
  env: Env,
): AutoscalerConnection['config'] | undefined {
  if (management === undefined) return undefined
  const file = management.kubeconfig
  if (file !== '') return file === kubeconfig ? undefined : { env, kubeconfig: file }
  const isJoined = kubeconfig === '' ? kubernetes === undefined : !management.isAuthoritative
  return isJoined ? undefined : { env }
}

function workloadConfig(
  { kubeconfig, kubernetes }: ProcessOptions,
  env: Env,
): AutoscalerConnection['config'] {
  if (kubeconfig !== '') return { env, kubeconfig }
  if (kubernetes?.kubeconfig !== undefined) return { env, kubeconfig: kubernetes.kubeconfig }
  const server = kubernetes?.server
  if (server === undefined) return { env }
  const url = new URL(server)
  const hasAccount = kubernetes?.isInCluster === true || kubernetes?.usesServiceAccount === true
  // The pod's own credentials are sent to the given address, but never over plain HTTP.
  if (hasAccount && url.protocol === 'https:') return { env: podEnv(url) }
  return { url: server, source: '--kubernetes' }
}

/** The variables that a pod gets, for another address of the server. */
function podEnv({ hostname, port }: URL): Env {
  return {
    KUBERNETES_SERVICE_HOST: hostname.replace(/^\[(.*)\]$/, '$1'),
    KUBERNETES_SERVICE_PORT: port === '' ? '443' : port,
  }
}
