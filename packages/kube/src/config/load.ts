import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster, User } from '@kubernetes/client-node'
import { type Clock, SystemClock, type Transport } from '@tenon/runtime'
import { newClusterAccess } from './cluster-access.ts'
import { FollowedAccess, FollowedFiles } from './followed-access.ts'
import { HttpTransport } from './http-transport.ts'
import { inClusterContent } from './in-cluster.ts'
import { KubeConfigError } from './kubeconfig-errors.ts'
import { type KubeConfigContent, readKubeConfigFiles } from './kubeconfig-files.ts'
import type { UpgradeAddress } from './upgrade-address.ts'

export interface KubeConfigOptions {
  /** A file, or several separated as in `KUBECONFIG`; takes precedence over everything else. */
  readonly kubeconfig?: string
  /** Default: the current context of the files. */
  readonly context?: string
  /** The environment: `KUBECONFIG`, `HOME` and the variables of a pod. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Authenticates as the owner of this token; the credentials of the context are not read. */
  readonly token?: string
  readonly clock?: Clock
}

/** A server and how to reach it. */
export interface LoadedKubeConfig {
  /** Uses the credentials of the context, which are read again when they change. */
  readonly transport: Transport
  /** For connections that switch to another protocol, with the same credentials. */
  upgradeTo(path: string): Promise<UpgradeAddress>
  /** URL of the API server. */
  readonly server: string
  /** PEM; absent if the configuration has none. */
  readonly certificateAuthority?: string
  /** Namespace of the context, else `default`. */
  readonly namespace: string
  readonly context: string
  /** The files, or the pod; for messages. */
  readonly source: string
  /** Closes idle connections; requests in progress continue. */
  close(): void
}

/**
 * Finds the configuration like other Kubernetes tools: the given file, `KUBECONFIG`, the pod's service account, then
 * `~/.kube/config`.
 * @throws KubeConfigError that names the file, the context and the fix.
 */
export function loadKubeConfig(options: KubeConfigOptions): LoadedKubeConfig {
  return loaded(findContent(options), options, () => findContent(options))
}

/** An API server without a kubeconfig. */
export interface ServerAddress {
  /** `https://host:port`. */
  readonly url: string
  readonly token?: string
  /** PEM. */
  readonly certificateAuthority?: string
  /** Accepts any certificate. */
  readonly skipTlsVerify?: boolean
  /** Where it was configured, for messages. */
  readonly source: string
}

/**
 * Like {@link loadKubeConfig}, for a server without a kubeconfig.
 * @throws KubeConfigError for an invalid URL.
 */
export function directKubeConfig(address: ServerAddress, clock?: Clock): LoadedKubeConfig {
  const { url, token, certificateAuthority, skipTlsVerify = false, source } = address
  const name = 'server'
  const caData = certificateAuthority && Buffer.from(certificateAuthority).toString('base64')
  const content: KubeConfigContent = {
    clusters: [{ name, server: url, skipTLSVerify: skipTlsVerify, ...(caData !== undefined && { caData }) }],
    users: [{ name, ...(token !== undefined && { token }) }],
    contexts: [{ name, cluster: name, user: name }],
    currentContext: name,
    source,
    files: [],
  }
  return loaded(content, clock === undefined ? {} : { clock }, () => content)
}

/** @param read reads the content again. */
function loaded(
  content: KubeConfigContent,
  options: Pick<KubeConfigOptions, 'clock' | 'context' | 'token'>,
  read: () => KubeConfigContent,
): LoadedKubeConfig {
  const { token } = options
  const selected = selectContext(content, options.context, token)
  const { name, cluster, namespace } = selected
  const server = serverUrl(content, cluster)
  const followed = new FollowedFiles(content.files, selected, () => selectContext(read(), name, token))
  const newAccess = () =>
    new FollowedAccess(followed, (now) => newClusterAccess(withPlainHttp(now.cluster), now.user))
  const transport = new HttpTransport({ server, newAccess, clock: options.clock ?? new SystemClock() })
  const certificateAuthority = authorityOf(content, cluster)
  return {
    transport,
    upgradeTo: (path) => transport.upgradeTo(path),
    server: server.href.replace(/\/$/, ''),
    ...(certificateAuthority !== undefined && { certificateAuthority }),
    namespace: namespace ?? 'default',
    context: name,
    source: content.source,
    close: () => {
      transport.close()
    },
  }
}

function findContent({ kubeconfig, env, token }: KubeConfigOptions): KubeConfigContent {
  if (kubeconfig !== undefined && kubeconfig !== '') return readKubeConfigFiles(kubeconfig, false)
  const listed = env['KUBECONFIG'] ?? ''
  if (listed !== '') return readKubeConfigFiles(listed, true)
  const inCluster = inClusterContent(env, { needsToken: token === undefined })
  if (inCluster !== undefined) return inCluster
  const home = env['HOME'] ?? env['USERPROFILE'] ?? ''
  const file = join(home, '.kube', 'config')
  if (home !== '' && existsSync(file)) return readKubeConfigFiles(file, false)
  throw new KubeConfigError(
    'no kubeconfig found: name one with --kubeconfig, set KUBECONFIG, or run inside a cluster',
  )
}

interface SelectedContext {
  readonly name: string
  readonly cluster: Cluster
  readonly user?: User
  readonly namespace?: string
}

function selectContext(
  content: KubeConfigContent,
  wanted: string | undefined,
  token: string | undefined,
): SelectedContext {
  const { source, contexts, clusters, users } = content
  const names = contexts.map((context) => context.name).join(', ')
  const name = wanted ?? content.currentContext
  if (name === undefined)
    throw new KubeConfigError(
      `kubeconfig ${source} has no current-context: run \`kubectl config use-context NAME\` (${names}) or pass --context`,
    )
  const context = contexts.find((candidate) => candidate.name === name)
  if (context === undefined)
    throw new KubeConfigError(
      `kubeconfig ${source} has no context ${name}: choose one of ${names === '' ? 'none' : names}`,
    )
  const cluster = clusters.find((candidate) => candidate.name === context.cluster)
  if (cluster === undefined)
    throw new KubeConfigError(
      `kubeconfig ${source}: context ${name} names the cluster ${context.cluster}, which is not there: add it under clusters`,
    )
  const { user: userName } = context as { readonly user?: string }
  const user =
    token === undefined ? users.find((candidate) => candidate.name === userName) : { name: 'token', token }
  if (user === undefined && userName !== undefined && userName !== '')
    throw new KubeConfigError(
      `kubeconfig ${source}: context ${name} names the user ${userName}, which is not there: add it under users`,
    )
  return {
    name,
    cluster,
    ...(user !== undefined && { user }),
    ...(context.namespace !== undefined && { namespace: context.namespace }),
  }
}

function serverUrl({ source }: KubeConfigContent, cluster: Cluster): URL {
  const text = (cluster.server as string | undefined) ?? ''
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new KubeConfigError(
      `kubeconfig ${source}: the server of cluster ${cluster.name} is ${text === '' ? 'missing' : text}: write a URL such as https://host:6443`,
    )
  return url
}

function authorityOf({ source }: KubeConfigContent, cluster: Cluster): string | undefined {
  const { caFile, caData } = cluster as { readonly caFile?: string | null; readonly caData?: string | null }
  if (caFile !== undefined && caFile !== null && caFile !== '') {
    try {
      return readFileSync(caFile, 'utf8')
    } catch (cause) {
      throw new KubeConfigError(
        `kubeconfig ${source}: the certificate authority ${caFile} of cluster ${cluster.name} cannot be read`,
        cause,
      )
    }
  }
  return caData === undefined || caData === null ? undefined : Buffer.from(caData, 'base64').toString('utf8')
}

/** The client library only accepts plain HTTP with verification turned off. */
function withPlainHttp(cluster: Cluster): Cluster {
  return (cluster.server as string | undefined)?.startsWith('http:') === true
    ? { ...cluster, skipTLSVerify: true }
    : cluster
}
