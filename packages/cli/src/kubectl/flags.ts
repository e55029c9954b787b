/** Flags in the style of kubectl, the same for every command that has them. */
import { parseDuration } from '@tenon/api/duration'
import { type Command, InvalidArgumentError, Option } from 'commander'

/** Selects the cluster and the user. */
export interface ClusterFlags {
  readonly kubeconfig?: string
  readonly context?: string
  /** Of a user of `tenon console --serve`, in place of the credentials of the kubeconfig; not a flag. */
  readonly token?: string
  /** Milliseconds; 0: no limit. */
  readonly requestTimeout?: number
  readonly verbosity?: number
}

/** Selects the source of facts. */
export interface SourceFlags extends ClusterFlags {
  /** A file to read instead of a cluster. */
  readonly snapshot?: string
  /** A file with instance types, for a cluster without Tenon. */
  readonly catalogue?: string
  /** URL of the controller's debug port. */
  readonly controller?: string
}

export interface NamespaceFlags {
  readonly namespace?: string
  readonly allNamespaces?: true
}

export interface SelectionFlags extends NamespaceFlags {
  readonly selector?: string
  readonly fieldSelector?: string
}

export interface OutputFlags {
  readonly output?: string
  readonly color?: ColorChoice
}

export interface ListFlags extends OutputFlags {
  readonly sortBy?: string
  /** False: no column titles. */
  readonly headers?: boolean
  readonly showLabels?: true
}

export interface WatchFlags {
  readonly watch?: true
}

export type ColorChoice = 'auto' | 'always' | 'never'

export function withClusterFlags(command: Command): Command {
  return withCluster(command).addOption(
    new Option('-v, --verbosity <level>', 'detail on stderr, 0 to 9; requests are told from 6').argParser(
      verbosity,
    ),
  )
}

function withCluster(command: Command): Command {
  return command
    .option('--kubeconfig <path>', 'kubeconfig of the cluster; several as in KUBECONFIG', text)
    .option('--context <name>', 'context of the kubeconfig', text)
    .option('--request-timeout <duration>', 'limit of each request, such as 5s; 0 for none', timeout, 0)
}

/** @param hasVerbosity false for a command with its own flag `-v`. */
export function withSourceFlags(command: Command, hasVerbosity = true): Command {
  return (hasVerbosity ? withClusterFlags(command) : withCluster(command))
    .option('-s, --snapshot <file>', 'answer from a snapshot instead of a cluster', text)
    .option('--catalogue <file>', 'instance types of a cluster without Tenon', text)
    .option('--controller <url>', "address of the controller's debug port", url)
}

function withNamespaceFlags(command: Command): Command {
  return command
    .option('-n, --namespace <name>', 'namespace (default: that of the context)', text)
    .option('-A, --all-namespaces', 'objects of all namespaces')
}

export function withSelectionFlags(command: Command): Command {
  return withNamespaceFlags(command)
    .option('-l, --selector <query>', 'only objects with these labels, such as app=web,tier!=db', text)
    .option('--field-selector <query>', 'only objects with these fields, such as status.phase=Pending', text)
}

export function withOutputFlags(command: Command): Command {
  return command
    .option(
      '-o, --output <format>',
      'wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…',
      text,
    )
    .addOption(
      new Option('--color <when>', 'colours in the output: never with NO_COLOR, unless always')
        .choices(['auto', 'always', 'never'])
        .default('auto'),
    )
}

export function withListFlags(command: Command): Command {
  return withOutputFlags(command)
    .option('--sort-by <path>', 'order of objects, such as .metadata.creationTimestamp', text)
    .option('--no-headers', 'no titles above the columns')
    .option('--show-labels', 'labels as the last column')
}

export function withWatchFlag(command: Command): Command {
  return command.option('-w, --watch', 'go on with changes after the answer, until Ctrl-C')
}

/** kubectl accepts `-o=json` for `-o json`. */
function text(value: string): string {
  return value.replace(/^=/, '')
}

function timeout(value: string): number {
  const given = text(value)
  const ms = /^\d+$/.test(given) ? Number(given) * 1000 : parseDuration(given)
  if (ms === undefined || ms < 0)
    throw new InvalidArgumentError('Use a duration such as 5s or 2m, or 0 for no limit.')
  return ms
}

function verbosity(value: string): number {
  const level = Number(text(value))
  if (!Number.isInteger(level) || level < 0 || level > 9)
    throw new InvalidArgumentError('Use a level from 0 to 9.')
  return level
}

function url(value: string): string {
  const given = text(value)
  const parsed = URL.parse(given)
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol))
    throw new InvalidArgumentError('Use a URL such as http://127.0.0.1:8082.')
  return given.replace(/\/+$/, '')
}
