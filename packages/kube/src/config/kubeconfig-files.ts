/** Reads and merges kubeconfig files as kubectl does: the first file that sets a value wins. */
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import type { Cluster, Context, User } from '@kubernetes/client-node'
import { newClusters, newContexts, newUsers } from '@kubernetes/client-node/dist/config_types.js'
import { load as loadYaml } from 'js-yaml'
import { KubeConfigError } from './kubeconfig-errors.ts'

/** The merged content of one or more files. */
export interface KubeConfigContent {
  readonly clusters: readonly Cluster[]
  readonly users: readonly User[]
  readonly contexts: readonly Context[]
  readonly currentContext: string | undefined
  /** The files, for messages. */
  readonly source: string
  /** Paths of the files; empty if there are none. */
  readonly files: readonly string[]
}

/** The parts of a file that are changed before the client library reads it. */
interface RawKubeConfig {
  readonly clusters?: readonly { readonly name?: string; readonly cluster?: RawCluster }[] | null
  readonly users?: readonly { readonly name?: string; readonly user?: RawUser | null }[] | null
  readonly contexts?: unknown
  readonly 'current-context'?: string
}

interface RawCluster {
  readonly server?: string
}

interface RawUser {
  readonly tokenFile?: string
  readonly exec?: RawExec
}

interface RawExec {
  readonly apiVersion?: string
  readonly command?: string
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null
}

/**
 * @param paths one path, or several separated as in `KUBECONFIG`.
 * @param isListed whether paths may be missing as long as one file exists.
 */
export function readKubeConfigFiles(paths: string, isListed: boolean): KubeConfigContent {
  const files = paths.split(delimiter).filter((path) => path !== '')
  const present = isListed && files.length > 1 ? files.filter((file) => existsSync(file)) : files
  if (present.length === 0)
    throw new KubeConfigError(
      `none of the kubeconfig files ${paths} exists: create one or correct KUBECONFIG`,
    )
  const configs = present.map(readOne)
  return {
    clusters: firstOfEachName(configs.flatMap((config) => config.clusters)),
    users: firstOfEachName(configs.flatMap((config) => config.users)),
    contexts: firstOfEachName(configs.flatMap((config) => config.contexts)),
    currentContext: configs.map((config) => config.currentContext).find((name) => (name ?? '') !== ''),
    source: present.join(', '),
    files: present,
  }
}

function readOne(file: string): Omit<KubeConfigContent, 'source' | 'files'> {
  const raw = parse(file, readText(file))
  const folder = dirname(file)
  try {
    const users = raw.users?.map((user) => withUser(user, folder))
    return {
      clusters: newClusters(raw.clusters).map((cluster) => withAbsolute(cluster, ['caFile'], folder)),
      users: newUsers(users).map((user) => withAbsolute(user, ['certFile', 'keyFile'], folder)),
      contexts: newContexts(raw.contexts),
      currentContext: raw['current-context'],
    }
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause)
    throw new KubeConfigError(`kubeconfig ${file} is not valid: ${text}`, cause)
  }
}

/** Paths in a file are relative to the file. */
function withAbsolute<T extends object>(entry: T, fields: readonly (keyof T)[], folder: string): T {
  const copy = { ...entry }
  for (const field of fields) {
    const path = copy[field]
    if (typeof path === 'string' && path !== '') copy[field] = absolute(path, folder) as T[keyof T]
  }
  return copy
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    const why = code === 'ENOENT' ? 'does not exist' : `cannot be read (${code ?? String(cause)})`
    throw new KubeConfigError(`kubeconfig ${file} ${why}: check --kubeconfig or KUBECONFIG`, cause)
  }
}

function parse(file: string, text: string): RawKubeConfig {
  let parsed: unknown
  try {
    parsed = loadYaml(text)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split('\n')[0] : String(cause)
    throw new KubeConfigError(`kubeconfig ${file} is not YAML: ${why}`, cause)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new KubeConfigError(`kubeconfig ${file} is empty or not a map: write clusters, users and contexts`)
  return parsed
}

/** Handles what the client library does not: token files, relative plugin paths, and plugin input. */
function withUser(
  entry: NonNullable<RawKubeConfig['users']>[number],
  folder: string,
): { readonly name?: string; readonly user?: unknown } {
  const { user } = entry
  if (user === undefined || user === null) return entry
  const { tokenFile, exec, ...rest } = user
  return {
    ...entry,
    user: {
      ...rest,
      ...(tokenFile !== undefined && {
        'auth-provider': { name: 'tokenFile', config: { tokenFile: absolute(tokenFile, folder) } },
      }),
      ...(exec !== undefined && { exec: withExec(exec, folder) }),
    },
  }
}

function withExec(exec: RawExec, folder: string): RawExec {
  const { command } = exec
  const info = 'KUBERNETES_EXEC_INFO'
  const env = exec.env ?? []
  const input = {
    apiVersion: exec.apiVersion ?? 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: { interactive: false },
  }
  return {
    ...exec,
    ...(command !== undefined && /[/\\]/.test(command) && { command: absolute(command, folder) }),
    env: env.some(({ name }) => name === info) ? env : [...env, { name: info, value: JSON.stringify(input) }],
  }
}

function absolute(path: string, folder: string): string {
  return isAbsolute(path) ? path : join(folder, path)
}

function firstOfEachName<T extends { readonly name: string }>(items: readonly T[]): T[] {
  const byName = new Map<string, T>()
  for (const item of items) if (!byName.has(item.name)) byName.set(item.name, item)
  return [...byName.values()]
}
