/**
 * How requests reach a cluster and authenticate. Uses parts of the official client; the whole client, with a thousand
 * generated modules, is only loaded for configurations that need it.
 */
import { readFileSync } from 'node:fs'
import type https from 'node:https'
import type { Cluster, KubeConfig, User } from '@kubernetes/client-node'
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js'
import { FileAuth } from '@kubernetes/client-node/dist/file_auth.js'

/** Certificates and credentials of one context; caches tokens until they expire. */
export interface ClusterAccess {
  /** The agent in the options connects through a proxy. */
  readonly isProxied: boolean
  /** Reads files and runs plugins if necessary. */
  applyToHTTPSOptions(options: https.RequestOptions): Promise<void>
}

/** Without cached tokens of an earlier access. */
export function newClusterAccess(cluster: Cluster, user: User | undefined): ClusterAccess {
  return isProxied(cluster) || needsSignIn(user)
    ? new WholeClientAccess(cluster, user)
    : new PlainAccess(cluster, user)
}

/** Certificates, tokens, token files, passwords and plugins. */
class PlainAccess implements ClusterAccess {
  readonly isProxied = false
  readonly #cluster: Cluster
  readonly #user: User | undefined
  readonly #authenticators = [new FileAuth(), new ExecAuth()] as const

  constructor(cluster: Cluster, user: User | undefined) {
    this.#cluster = cluster
    this.#user = user
  }

  async applyToHTTPSOptions(options: https.RequestOptions): Promise<void> {
    this.#applyCluster(options)
    if (this.#user !== undefined) await this.#applyUser(options, this.#user)
  }

  #applyCluster(options: https.RequestOptions): void {
    const { skipTLSVerify, tlsServerName, caFile, caData } = this.#cluster
    const authority = fromFileOrData(caFile, caData)
    if (skipTLSVerify) options.rejectUnauthorized = false
    if (isGiven(tlsServerName)) options.servername = tlsServerName
    if (authority !== undefined) options.ca = authority
  }

  async #applyUser(options: https.RequestOptions, user: User): Promise<void> {
    const certificate = fromFileOrData(user.certFile, user.certData)
    const key = fromFileOrData(user.keyFile, user.keyData)
    if (certificate !== undefined) options.cert = certificate
    if (key !== undefined) options.key = key
    const headers: Record<string, string> = {}
    if (isGiven(user.impersonateUser)) headers['Impersonate-User'] = user.impersonateUser
    options.headers = headers
    await this.#authenticators.find((each) => each.isAuthProvider(user))?.applyAuthentication(user, options)
    if (isGiven(user.token)) headers['Authorization'] = `Bearer ${user.token}`
    if (isGiven(user.username)) options.auth = `${user.username}:${user.password}`
  }
}

/** Proxies, and users of OpenID Connect or a cloud's auth provider. */
class WholeClientAccess implements ClusterAccess {
  readonly isProxied: boolean
  readonly #cluster: Cluster
  readonly #user: User | undefined
  #config: Promise<KubeConfig> | undefined

  constructor(cluster: Cluster, user: User | undefined) {
    this.isProxied = isProxied(cluster)
    this.#cluster = cluster
    this.#user = user
  }

  async applyToHTTPSOptions(options: https.RequestOptions): Promise<void> {
    this.#config ??= this.#load()
    await (await this.#config).applyToHTTPSOptions(options)
  }

  async #load(): Promise<KubeConfig> {
    const client = await import('@kubernetes/client-node')
    const config = new client.KubeConfig()
    const name = this.#cluster.name
    const user = this.#user ?? { name }
    config.loadFromOptions({
      clusters: [this.#cluster],
      users: [user],
      contexts: [{ name, cluster: name, user: user.name }],
      currentContext: name,
    })
    return config
  }
}

function isProxied({ proxyUrl }: Cluster): boolean {
  return isGiven(proxyUrl)
}

/** Whether the user's tokens come neither from a file nor from a plugin. */
function needsSignIn(user: User | undefined): boolean {
  const provider = user?.authProvider as
    | { readonly name?: string; readonly config?: { readonly tokenFile?: string; readonly exec?: unknown } }
    | null
    | undefined
  if (provider === undefined || provider === null || provider.name === 'exec') return false
  const { tokenFile, exec } = provider.config ?? {}
  return !isGiven(tokenFile) && (exec === undefined || exec === null)
}

function fromFileOrData(
  file: string | null | undefined,
  data: string | null | undefined,
): Buffer | undefined {
  if (isGiven(file)) return readFileSync(file)
  return isGiven(data) ? Buffer.from(data, 'base64') : undefined
}

/** Kubeconfigs use null and empty text for absent values too. */
function isGiven(text: string | null | undefined): text is string {
  return text !== undefined && text !== null && text !== ''
}
