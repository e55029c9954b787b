/** How `tenon cluster-autoscaler` reaches the API server (cluster-autoscaler.md 2.1). */
import type { KubernetesConnection, ProcessOptions } from '@tenon/cluster-autoscaler'
import { directKubeConfig, KubeConfigError, type LoadedKubeConfig, loadKubeConfig } from '@tenon/kube'
import { CliError } from '../errors.ts'

type Env = Readonly<Record<string, string | undefined>>

/**
 * Two ways to the server of the options, one of them for the lease.
 * @throws CliError naming the file or flag and the fix.
 */
export function connectionOf(options: ProcessOptions, env: Env): KubernetesConnection {
  try {
    const { transport, server } = load(options, env)
    return { transport, leaseTransport: load(options, env).transport, server }
  } catch (cause) {
    if (!(cause instanceof KubeConfigError)) throw cause
    throw new CliError(cause.message, { cause })
  }
}

function load({ kubeconfig, kubernetes }: ProcessOptions, env: Env): LoadedKubeConfig {
  if (kubeconfig !== '') return loadKubeConfig({ env, kubeconfig })
  if (kubernetes?.kubeconfig !== undefined) return loadKubeConfig({ env, kubeconfig: kubernetes.kubeconfig })
  const server = kubernetes?.server
  if (server === undefined) return loadKubeConfig({ env })
  const url = new URL(server)
  const hasAccount = kubernetes?.isInCluster === true || kubernetes?.usesServiceAccount === true
  // The pod's own credentials, sent to the address that is named; never over plain HTTP.
  if (hasAccount && url.protocol === 'https:') return loadKubeConfig({ env: podEnv(url) })
  return directKubeConfig({ url: server, source: '--kubernetes' })
}

/** What a pod is given, for another address of the server. */
function podEnv({ hostname, port }: URL): Env {
  return {
    KUBERNETES_SERVICE_HOST: hostname.replace(/^\[(.*)\]$/, '$1'),
    KUBERNETES_SERVICE_PORT: port === '' ? '443' : port,
  }
}
