/** The connection of a command to its cluster. */
import {
  createKubeClient,
  isKubeError,
  KubeConfigError,
  type KubeError,
  type LoadedKubeConfig,
  loadKubeConfig,
  type WatchingKubeClient,
} from '@tenon/kube'
import { type Clock, SystemClock, type Transport } from '@tenon/runtime'
import { CliError, KubectlError } from '../errors.ts'
import type { Io } from '../io.ts'
import type { ClusterFlags, NamespaceFlags, SourceFlags } from './flags.ts'

export interface ClusterConnection {
  readonly client: WatchingKubeClient
  readonly config: LoadedKubeConfig
  readonly clock: Clock
}

/** Requests are logged from this `-v` on. */
const requestsFrom = 6
/** Milliseconds; longer than any response takes. */
const unlimitedMs = 24 * 3_600_000

/**
 * Connects to the cluster of the flags, runs `work`, and disconnects.
 * @param through wraps the transport of the client.
 * @throws KubectlError if there is no cluster, or it rejects a request.
 */
export async function onCluster<T>(
  io: Pick<Io, 'env' | 'err'>,
  flags: ClusterFlags,
  work: (connection: ClusterConnection) => Promise<T>,
  through = (transport: Transport): Transport => transport,
): Promise<T> {
  let config: LoadedKubeConfig | undefined
  try {
    config = loadKubeConfig({ env: io.env, ...flags })
    return await work(connectionOf(io, flags, config, through))
  } catch (cause) {
    throw commandError(cause, config?.server ?? 'the API server')
  } finally {
    config?.close()
  }
}

/** Whether flags or environment name a cluster. */
export function hasCluster({ env }: Pick<Io, 'env'>, flags: ClusterFlags): boolean {
  try {
    loadKubeConfig({ env, ...flags }).close()
    return true
  } catch {
    return false
  }
}

function connectionOf(
  io: Pick<Io, 'err'>,
  flags: ClusterFlags,
  config: LoadedKubeConfig,
  through: (transport: Transport) => Transport,
): ClusterConnection {
  const { requestTimeout = 0, verbosity = 0 } = flags
  const clock = new SystemClock()
  const client = createKubeClient({
    transport: through(config.transport),
    clock,
    requestTimeoutMs: requestTimeout === 0 ? unlimitedMs : requestTimeout,
    ...(verbosity >= requestsFrom && {
      onRequest: ({ method, path, status, durationMs }) => {
        const outcome = status === 0 ? 'failed' : String(status)
        io.err(`${method} ${config.server}${path} ${outcome} in ${Math.round(durationMs)} ms\n`)
      },
    }),
  })
  return { client, config, clock }
}

/** The namespace of flags and context; undefined: all namespaces. */
export function namespaceOf(
  { namespace, allNamespaces }: NamespaceFlags,
  { config }: Pick<ClusterConnection, 'config'>,
): string | undefined {
  return allNamespaces === true ? undefined : (namespace ?? config.namespace)
}

/**
 * The namespace of the flags, else that of the context; `default` if the facts do not come from a cluster.
 * @throws KubectlError if there is no kubeconfig.
 */
export function chosenNamespace(
  { env }: Pick<Io, 'env'>,
  flags: SourceFlags & Pick<NamespaceFlags, 'namespace'>,
): string {
  if (flags.namespace !== undefined) return flags.namespace
  if (flags.snapshot !== undefined || flags.controller !== undefined) return 'default'
  let config: LoadedKubeConfig | undefined
  try {
    config = loadKubeConfig({ env, ...flags })
    return config.namespace
  } catch (cause) {
    throw commandError(cause, config?.server ?? 'the API server')
  } finally {
    config?.close()
  }
}

/** The error that ends a command; bugs are rethrown as they are. */
function commandError(cause: unknown, server: string): unknown {
  if (cause instanceof CliError) return cause
  if (cause instanceof KubeConfigError) return new KubectlError(`error: ${cause.message}`, { cause })
  if (!isKubeError(cause)) return cause
  return new KubectlError(serverText(cause, server), { cause })
}

function serverText(error: KubeError, server: string): string {
  const { kind, reason, serverMessage, message } = error
  if (kind === 'transport') return `Unable to connect to the server: ${server}: ${message}`
  if (kind === 'unauthorized') return 'error: You must be logged in to the server (Unauthorized)'
  const why = reason === undefined || reason === '' ? '' : ` (${reason})`
  return `Error from server${why}: ${serverMessage ?? message}`
}
