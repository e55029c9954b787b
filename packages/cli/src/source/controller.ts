/**
 * Connects to the controller's debug port (ask.md 1): at a given address, on loopback, or through the API
 * server's port-forward with the user's rights.
 */
import { isIPv4 } from 'node:net'
import { kinds, type Lease } from '@tenon/api'
import { directKubeConfig, isKubeError, podTransport } from '@tenon/kube'
import { readText, type Transport } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import { leaderAnnotations, leaseName } from '../leader-annotations.ts'
import type { Io } from '../io.ts'
import type { ClusterConnection } from '../kubectl/connection.ts'
import type { SourceFlags } from '../kubectl/flags.ts'

/** A controller that responds. */
export interface ControllerReach {
  /**
   * Returns the body of a page.
   * @throws ControllerPageError if the status is not 200.
   */
  get(path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  /** Identity of the leader, or its address if the identity is unknown. */
  readonly leader: string
}

/** A connection, or why there is none. */
export type Reached =
  | { readonly kind: 'reached'; readonly reach: ControllerReach }
  /** Tenon does not lead in this cluster. */
  | { readonly kind: 'noController' }
  /** `right`: what the user may not do, such as `pods/portforward in namespace tenon`. */
  | { readonly kind: 'forbidden'; readonly right: string; readonly message: string }
  | { readonly kind: 'unreachable'; readonly message: string }

class ControllerPageError extends CliError {
  constructor(path: string, status: number, text: string) {
    super(`the controller answered ${status} to GET ${path}${text === '' ? '' : `: ${text}`}`)
    this.name = 'ControllerPageError'
  }
}

/** The page with everything that decisions read. */
export const snapshotPath = '/debug/snapshot'
/** A page that every controller serves quickly. */
const probePath = '/debug/waiting'
/** Namespaces to look for the lease in, if it cannot be listed in all of them. */
const usualNamespaces = ['kube-system', 'tenon', 'karpenter', 'tenon-system']

/** Tries the address of the flags, then that of a loopback cluster, then the leader's pod. */
export async function reachController(
  flags: Pick<SourceFlags, 'controller' | 'token'>,
  connection: ClusterConnection | undefined,
  signal?: AbortSignal,
): Promise<Reached> {
  const { controller: url } = flags
  if (url !== undefined) return await reachOn(url, url, signal)
  if (connection === undefined) return { kind: 'noController' }
  const found = await findLease(connection, signal)
  if (found.kind !== 'found') return found
  const { lease } = found
  const { holderIdentity: leader = '' } = lease.spec ?? {}
  const { annotations = {}, namespace = '' } = lease.metadata
  const debugUrl = annotations[leaderAnnotations.url]
  if (debugUrl !== undefined) {
    // Nobody asks there for the rights of the user; port-forward does.
    if (flags.token !== undefined)
      return {
        kind: 'unreachable',
        message: `the controller ${leader} runs outside of the cluster, where nobody knows your rights`,
      }
    if (!isLoopback(connection.config.server) || !isLoopback(debugUrl))
      return {
        kind: 'unreachable',
        message: `the controller ${leader} runs outside of the cluster, and listens at ${debugUrl} of its own host: run this command there`,
      }
    return await reachOn(debugUrl, leader, signal)
  }
  const port = Number(annotations[leaderAnnotations.port])
  if (!Number.isInteger(port) || port <= 0)
    return {
      kind: 'unreachable',
      message: `the controller ${leader} serves no debug port: start it with --debug-port`,
    }
  const pod = leader.replace(/_[^_]*$/, '')
  return await reachPod({ namespace, pod, port }, leader, { connection, signal })
}

/**
 * Connects to the controller, or prints on stderr what is missing without it.
 * @param lacking what is missing, such as `prices`.
 */
export async function reachOrNote(
  io: Pick<Io, 'err' | 'interrupted'>,
  flags: SourceFlags,
  connection: ClusterConnection,
  lacking: string,
): Promise<ControllerReach | undefined> {
  const reached = await reachController(flags, connection, io.interrupted)
  if (reached.kind === 'reached') return reached.reach
  io.err(`note: without ${lacking}: ${whyNot(reached)}\n`)
  return undefined
}

/** One sentence. */
export function whyNot(reached: Exclude<Reached, { kind: 'reached' }>): string {
  switch (reached.kind) {
    case 'noController':
      return 'no Tenon leads this cluster'
    case 'forbidden':
      return `the right is missing: ${reached.right} (${reached.message})`
    case 'unreachable':
      return reached.message
  }
}

/** The namespace of the leading controller; undefined if there is none, or it may not be listed. */
export async function controllerNamespace(connection: ClusterConnection): Promise<string | undefined> {
  const found = await findLease(connection, undefined)
  return found.kind === 'found' ? found.lease.metadata.namespace : undefined
}

type FoundLease = { readonly kind: 'found'; readonly lease: Lease } | Exclude<Reached, { kind: 'reached' }>

/** The lease that Tenon holds. The Go Karpenter uses the same name without {@link leaderAnnotations}. */
async function findLease(
  { client }: ClusterConnection,
  signal: AbortSignal | undefined,
): Promise<FoundLease> {
  let denied: string | undefined
  const options = { ...(signal !== undefined && { signal }) }
  try {
    const selected = { ...options, fieldSelector: `metadata.name=${leaseName}` }
    const held = (await client.list(kinds.lease, selected)).find(isTenons)
    const any = held ?? (await findOneOfSeveral(client, options))
    return any === undefined ? { kind: 'noController' } : { kind: 'found', lease: any }
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    denied = error.serverMessage ?? error.message
  }
  for (const namespace of usualNamespaces) {
    try {
      const lease = await client.get(kinds.lease, { namespace, name: leaseName }, options)
      if (lease !== undefined && isTenons(lease)) return { kind: 'found', lease }
    } catch (error) {
      if (!isKubeError(error, 'forbidden')) throw error
    }
  }
  return { kind: 'forbidden', right: 'list leases.coordination.k8s.io in all namespaces', message: denied }
}

/** Controllers with `--node-pools` have leases whose names end with a hash. The first by name answers. */
async function findOneOfSeveral(
  client: ClusterConnection['client'],
  options: { readonly signal?: AbortSignal },
): Promise<Lease | undefined> {
  for (const namespace of usualNamespaces) {
    // Not in all namespaces: every node has a lease.
    const leases = await client.list(kinds.lease, { ...options, namespace })
    const found = leases.find((lease) => lease.metadata.name.startsWith(`${leaseName}-`) && isTenons(lease))
    if (found !== undefined) return found
  }
  return undefined
}

/** Whether Tenon holds the lease, and not the Go Karpenter. */
export function isTenons({ metadata, spec }: Lease): boolean {
  const holder = spec?.holderIdentity ?? ''
  return holder !== '' && metadata.annotations?.[leaderAnnotations.leader] === holder
}

/** Whether a URL is on this host. */
export function isLoopback(url: string): boolean {
  const host = URL.parse(url)?.hostname.replace(/^\[|\]$/g, '')
  if (host === undefined) return false
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

async function reachOn(url: string, leader: string, signal: AbortSignal | undefined): Promise<Reached> {
  const config = directKubeConfig({ url, source: '--controller' })
  try {
    return await reachBy(config.transport, leader, signal)
  } catch (error) {
    if (signal?.aborted === true) throw error
    const why = error instanceof Error ? error.message : String(error)
    return { kind: 'unreachable', message: `the controller at ${url}: ${why}` }
  }
}

async function reachPod(
  target: Parameters<typeof podTransport>[1],
  leader: string,
  {
    connection,
    signal,
  }: { readonly connection: ClusterConnection; readonly signal: AbortSignal | undefined },
): Promise<Reached> {
  try {
    return await reachBy(podTransport(connection.config, target), leader, signal)
  } catch (error) {
    if (signal?.aborted === true) throw error
    const message = error instanceof Error ? error.message : String(error)
    if (!isKubeError(error, 'forbidden')) return { kind: 'unreachable', message }
    return {
      kind: 'forbidden',
      right: `pods/portforward in namespace ${target.namespace}`,
      message: error.serverMessage ?? message,
    }
  }
}

async function reachBy(
  transport: Transport,
  leader: string,
  signal: AbortSignal | undefined,
): Promise<Reached> {
  const reach = new TransportReach(transport, leader)
  await readText(await reach.get(probePath, signal))
  return { kind: 'reached', reach }
}

class TransportReach implements ControllerReach {
  readonly leader: string
  readonly #transport: Transport

  constructor(transport: Transport, leader: string) {
    this.#transport = transport
    this.leader = leader
  }

  async get(path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const request = { method: 'GET', path, headers: { accept: 'application/json' } }
    const { status, body } = await this.#transport.send(request, signal)
    if (status !== 200)
      throw new ControllerPageError(path, status, (await readText(body)).trim().slice(0, 200))
    return bytesOf(body)
  }
}

async function* bytesOf(body: AsyncIterable<string | Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const chunk of body) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}
