/** Brings the embedded cluster onto sockets and disk for `tenon up` and `tenon devcluster`. */
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'
import { kubeconfigYaml, openDataDirectory, startDevCluster } from '@tenon/devcluster'
import {
  type ExoscaleCluster,
  type ExoscaleSettings,
  exoscaleSimulator,
} from '@tenon/provider-exoscale/simulator'
import {
  type Clock,
  type HttpHandler,
  type Logger,
  type Random,
  Secret,
  type SocketServer,
  serveHttp,
  serveHttps,
} from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { callWebhook } from './call-webhook.ts'
import { defaultPorts } from './default-ports.ts'
import { removeLostMachines } from './lost-machines.ts'

/** Fixed names of the simulated organisation: nothing here is worth protecting. */
export const demoCloud = {
  zone: 'ch-gva-2',
  clusterId: 'f1b5a3c2-6d0e-4c57-9a8b-2f4e6d8c0a11',
  key: 'EXOtenon0000000000000000001',
  secret: 'simulated-secret-of-the-embedded-cluster',
} as const

/** What the manifests of `examples/exoscale` refer to by name or id. */
const exampleResources = {
  securityGroups: [{ name: 'sks-nodes' }],
  antiAffinityGroups: [{ name: 'spread-hypervisors' }],
  privateNetworks: [{ name: 'backend' }],
  templates: [
    { id: '20000000-0000-4000-8000-000000000001', version: '1.34.0', variant: 'standard' as const },
  ],
}

const host = '127.0.0.1'

export interface ClusterPorts {
  /** Absent: the usual port, or a free one when it is taken; so for {@link apiPort}. */
  readonly port?: number
  readonly apiPort?: number
  readonly dataDir?: string
  /** Milliseconds that every simulated instance takes to boot; some seconds, drawn anew, when absent. */
  readonly bootDelay?: number
  /** Where the simulated cloud behaves otherwise than usual; {@link bootDelay} wins. */
  readonly cloudSettings?: Partial<ExoscaleSettings>
}

/** A cluster that answers on sockets. */
export interface RunningCluster {
  readonly cluster: ExoscaleCluster
  readonly apiUrl: string
  readonly cloudUrl: string
  readonly certificateAuthority: string
  readonly kubeconfig: string
  readonly adminToken: Secret
  stop(): Promise<void>
}

/**
 * Starts the cluster, its sockets and its kubeconfig.
 * @param extra answers paths besides the cloud's on the same port, such as `/metrics`.
 * @throws CliError naming the port or the directory that cannot be used.
 */
export async function startCluster(
  io: Io,
  options: ClusterPorts,
  deps: { readonly clock: Clock; readonly random: Random; readonly logger: Logger },
  extra: HttpHandler = notFound,
): Promise<RunningCluster> {
  const stopped: (() => Promise<void> | void)[] = []
  const stop = async () => {
    for (const end of stopped.toReversed()) await end()
  }
  try {
    const data = await openDataDirectory({
      ...deps,
      ...(options.dataDir !== undefined && { path: resolve(io.cwd, options.dataDir) }),
    }).catch((cause: Error) => {
      throw new CliError(`${cause.message}; choose another with --data-dir`, { cause })
    })
    const { credentials } = data
    const cluster = startDevCluster({
      ...deps,
      credentials,
      ...(data.initial && { initial: data.initial }),
      callWebhook,
      keepsMachines: options.dataDir !== undefined,
      simulator: exoscaleSimulator({
        zone: demoCloud.zone,
        clusterId: demoCloud.clusterId,
        key: demoCloud.key,
        secret: new Secret(demoCloud.secret),
        settings: {
          ...options.cloudSettings,
          ...(options.bootDelay !== undefined && {
            bootDelay: { minMs: options.bootDelay, maxMs: options.bootDelay },
          }),
        },
      }),
    })
    cluster.cloud.add(exampleResources)
    stopped.push(
      () => data.close(),
      () => cluster.stop(),
    )
    data.follow(cluster.server.store)
    removeLostMachines(cluster)
    const api = await listenApi(cluster, credentials, options.apiPort, io)
    stopped.push(() => api.close())
    cluster.announce(host, api.port)
    const cloud = await listenCloud(cluster, options.port, extra, io)
    stopped.push(() => cloud.close())
    cluster.cloud.setBaseUrl(`${cloud.url}/v2`)
    const kubeconfig = await writeKubeconfig(io, kubeconfigYaml({ server: api.url, credentials }))
    return {
      cluster,
      apiUrl: api.url,
      cloudUrl: `${cloud.url}/v2`,
      certificateAuthority: credentials.certificateAuthority.certificate,
      kubeconfig,
      adminToken: credentials.adminToken,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function listenApi(
  cluster: ExoscaleCluster,
  credentials: Parameters<typeof startDevCluster>[0]['credentials'],
  port: number | undefined,
  io: Io,
): Promise<SocketServer> {
  const listen = (on: number) =>
    serveHttps(cluster.server.handle, {
      host,
      port: on,
      certificate: credentials.server.certificate,
      privateKey: credentials.server.privateKey,
      certificateAuthority: credentials.certificateAuthority.certificate,
    })
  return await listenOn(
    { what: 'Kubernetes API', port, usual: defaultPorts.api, option: '--api-port' },
    listen,
    io,
  )
}

async function listenCloud(
  cluster: ExoscaleCluster,
  port: number | undefined,
  extra: HttpHandler,
  io: Io,
): Promise<SocketServer> {
  const handler: HttpHandler = (request, signal) =>
    (request.path.startsWith('/v2/') ? cluster.cloud.handle : extra)(request, signal)
  const listen = (on: number) => serveHttp(handler, { host, port: on })
  return await listenOn(
    { what: 'simulated Exoscale', port, usual: defaultPorts.cloud, option: '--port' },
    listen,
    io,
  )
}

interface Listener {
  readonly what: string
  /** The port asked for, if any. */
  readonly port: number | undefined
  readonly usual: number
  readonly option: string
}

/** A port that was asked for has to be free; in place of the usual one a free one is taken. */
async function listenOn(
  { what, port, usual, option }: Listener,
  listen: (port: number) => Promise<SocketServer>,
  io: Io,
): Promise<SocketServer> {
  try {
    try {
      return await listen(port ?? usual)
    } catch (cause) {
      if (port !== undefined || !isTaken(cause)) throw cause
      const server = await listen(0)
      io.err(
        `note: port ${usual} is in use; the ${what} listens on port ${server.port} (choose with ${option})\n`,
      )
      return server
    }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(`${what}: ${why}; choose another with ${option}`, { cause })
  }
}

function isTaken(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: string } }
  return cause?.code === 'EADDRINUSE'
}

const notFound: HttpHandler = () =>
  Promise.resolve({ status: 404, headers: {}, body: (async function* () {})() })

/** @returns the path to show to the user. */
async function writeKubeconfig(io: Io, text: string): Promise<string> {
  const path = resolve(io.cwd, '.tenon', 'kubeconfig')
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text, { mode: 0o600 })
    await chmod(path, 0o600)
  } catch (cause) {
    throw new CliError(`cannot write ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
  return relative(io.cwd, path)
}
