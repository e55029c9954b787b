/** Serves the embedded cluster on sockets and stores it on disk, for `tenon up` and `tenon devcluster`. */
import { chmod, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import {
  type DataDirectory,
  type DevCluster,
  kubeconfigYaml,
  openDataDirectory,
  startDevCluster,
} from '@tenon/devcluster'
import type { SimulatedProvider, SimulationPlace } from '@tenon/provider'
import {
  type Clock,
  type HttpHandler,
  type Logger,
  type Random,
  type SocketServer,
  serveHttp,
  serveHttps,
} from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { callWebhook } from './call-webhook.ts'
import { defaultPorts, imitatedVersion } from './flags.ts'
import { takeClusterFolder, type TakenFolder, takeFolder } from './folder.ts'
import type { ChosenCloud } from './simulated-cloud.ts'

const host = '127.0.0.1'

/** An embedded cluster in a simulated cloud. */
export type Cluster = DevCluster<SimulatedProvider>

export interface ClusterPorts {
  /** Absent: the default port, or a free one if it is in use. The same holds for {@link apiPort}. */
  readonly port?: number
  readonly apiPort?: number
  readonly dataDir?: string
  /** Milliseconds that every simulated instance takes to boot; absent: a few seconds, random for each. */
  readonly bootDelay?: number
  /** Absent: {@link imitatedVersion}. */
  readonly kubernetesVersion?: string
  /** See {@link SimulationPace.isHurried}. */
  readonly isHurried?: boolean
  /** See {@link SimulationPace.hasNodeGroups}. */
  readonly nodeGroups?: boolean
}

/** A label and an address or path, to be printed. */
export type Whereabouts = readonly [what: string, place: string]

/** One row per line, with aligned columns. */
export function aligned(rows: readonly Whereabouts[]): string {
  const width = Math.max(...rows.map(([what]) => what.length)) + 2
  return rows.map(([what, place]) => `${what.padEnd(width)}${place}`).join('\n')
}

/** A cluster that listens on sockets. */
export interface RunningCluster {
  readonly cluster: Cluster
  readonly apiUrl: string
  /** Where pages besides the API are served, if any. */
  readonly pagesUrl?: string
  /** Path to print for the user. */
  readonly kubeconfig: string
  /** The addresses of the cloud and of other pages. */
  readonly whereabouts: readonly Whereabouts[]
  /** Environment variables for the provider. */
  readonly settings: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/**
 * Starts the cluster, its sockets and its kubeconfig.
 * @param extra serves additional paths on the cloud's port, such as `/metrics`.
 * @throws CliError naming the port or directory that cannot be used.
 */
export async function startCluster(
  io: Io,
  { title, simulator }: Pick<ChosenCloud, 'title' | 'simulator'>,
  options: ClusterPorts,
  deps: { readonly clock: Clock; readonly random: Random; readonly logger: Logger },
  extra?: HttpHandler,
): Promise<RunningCluster> {
  const stopped: (() => Promise<void> | void)[] = []
  const stop = async () => {
    for (const end of stopped.toReversed()) await end()
  }
  try {
    const folder = await clusterFolder(io)
    stopped.push(() => folder.release())
    const dataPath = options.dataDir === undefined ? undefined : resolve(io.cwd, options.dataDir)
    if (dataPath !== undefined) stopped.push(await lockData(dataPath))
    const data = await openDataDirectory({
      ...deps,
      ...(dataPath !== undefined && { path: dataPath }),
    }).catch((cause: Error) => {
      throw new CliError(`${cause.message}; choose another with --data-dir`, { cause })
    })
    const { credentials } = data
    const cluster = startDevCluster({
      ...deps,
      credentials,
      ...(data.initial && { initial: data.initial }),
      gitVersion: options.kubernetesVersion ?? imitatedVersion,
      callWebhook,
      keepsInstances: options.dataDir !== undefined,
      simulator: simulator.cloud({
        ...(options.bootDelay !== undefined && { bootDelayMs: options.bootDelay }),
        ...(options.isHurried !== undefined && { isHurried: options.isHurried }),
        ...(options.nodeGroups !== undefined && { hasNodeGroups: options.nodeGroups }),
      }),
    })
    stopped.push(
      () => data.close(),
      () => cluster.stop(),
    )
    data.follow(cluster.server.store)
    const api = await listenApi(
      answeringWhenSaved(cluster.server.handle, data),
      credentials,
      options.apiPort,
      io,
    )
    stopped.push(() => api.close())
    cluster.announce(host, api.port)
    const what = cluster.cloud.api === undefined ? 'metrics and probes' : `simulated ${title}`
    const pages = await listenPages(pagesOf(cluster, data, extra), what, options.port, io)
    if (pages !== undefined) stopped.push(() => pages.close())
    const cloudUrl = announceCloud(cluster, pages)
    const kubeconfig = await writeKubeconfig(
      io,
      folder.path,
      kubeconfigYaml({ server: api.url, credentials }),
    )
    const place: SimulationPlace = {
      apiUrl: api.url,
      kubeconfig: resolve(io.cwd, kubeconfig),
      ...(cloudUrl !== undefined && { cloudUrl }),
    }
    return {
      cluster,
      apiUrl: api.url,
      ...(pages !== undefined && { pagesUrl: pages.url }),
      kubeconfig,
      whereabouts: whereaboutsOf(title, cloudUrl, pages),
      settings: simulator.settings(place),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A write is only confirmed once it is on disk, so that it survives if the process is killed. */
function answeringWhenSaved(handler: HttpHandler, { saved }: Pick<DataDirectory, 'saved'>): HttpHandler {
  return async (request, signal) => {
    const response = await handler(request, signal)
    if (request.method !== 'GET' && request.method !== 'HEAD') await saved()
    return response
  }
}

async function listenApi(
  handler: HttpHandler,
  credentials: Parameters<typeof startDevCluster>[0]['credentials'],
  port: number | undefined,
  io: Io,
): Promise<SocketServer> {
  const listen = (on: number) =>
    serveHttps(handler, {
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

/** The cloud's API, if it has one, and the paths of `extra`. */
function pagesOf(
  { cloud: { api } }: Cluster,
  data: Pick<DataDirectory, 'saved'>,
  extra: HttpHandler | undefined,
): HttpHandler | undefined {
  if (api === undefined) return extra
  const { handle, path } = api
  const answerCloud = answeringWhenSaved(handle, data)
  return (request, signal) => {
    const isForCloud = request.path.startsWith(`${path}/`)
    return (isForCloud ? answerCloud : (extra ?? notFound))(request, signal)
  }
}

/** One port for all pages; undefined if there are none. */
async function listenPages(
  handler: HttpHandler | undefined,
  what: string,
  port: number | undefined,
  io: Io,
): Promise<SocketServer | undefined> {
  if (handler === undefined) return undefined
  const listen = (on: number) => serveHttp(handler, { host, port: on })
  return await listenOn({ what, port, usual: defaultPorts.cloud, option: '--port' }, listen, io)
}

function announceCloud({ cloud }: Cluster, pages: SocketServer | undefined): string | undefined {
  if (cloud.api === undefined || pages === undefined) return undefined
  const url = `${pages.url}${cloud.api.path}`
  cloud.api.announce(url)
  return url
}

function whereaboutsOf(
  title: string,
  cloudUrl: string | undefined,
  pages: SocketServer | undefined,
): readonly Whereabouts[] {
  const name = `simulated ${title}`
  if (cloudUrl !== undefined) return [[name, cloudUrl]]
  const within: Whereabouts = [name, 'in the cluster itself']
  return pages === undefined ? [within] : [within, ['metrics and probes', pages.url]]
}

interface Listener {
  readonly what: string
  /** The port given by the user, if any. */
  readonly port: number | undefined
  readonly usual: number
  readonly option: string
}

/** A port given by the user must be free; the default one is replaced by a free one. */
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

/** @throws CliError if another process has the directory: both would write the same files. */
async function lockData(path: string): Promise<() => Promise<void>> {
  const folder = await takeFolder(path).catch((cause: Error) => {
    throw new CliError(`data directory ${path}: ${cause.message}; choose another with --data-dir`, { cause })
  })
  if (typeof folder === 'number')
    throw new CliError(`data directory ${path}: process ${folder} uses it; choose another with --data-dir`)
  return () => folder.release()
}

/** A second cluster in one working directory leaves the files of the first one alone. */
async function clusterFolder(io: Io): Promise<TakenFolder> {
  const folder = await takeClusterFolder(io.cwd).catch((cause: Error) => {
    throw new CliError(`cannot write ${resolve(io.cwd, '.tenon')}: ${cause.message}`, { cause })
  })
  if (folder.besides !== undefined)
    io.err(
      `note: process ${folder.besides} has a cluster in .tenon; the files of this one are in ${relative(io.cwd, folder.path)}\n`,
    )
  return folder
}

/** @returns the path to print for the user. */
async function writeKubeconfig(io: Io, folder: string, text: string): Promise<string> {
  const path = join(folder, 'kubeconfig')
  try {
    await writeFile(path, text, { mode: 0o600 })
    await chmod(path, 0o600)
  } catch (cause) {
    throw new CliError(`cannot write ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
  return relative(io.cwd, path)
}
