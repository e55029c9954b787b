/** Flags of `tenon view`, named as those of eks-node-viewer, and its defaults file (console.md 2). */
import { ownValue } from '@tenon/api'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sorting } from '@tenon/console'
import type { ActionFlags } from '../console/action-command.ts'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'

export interface ViewFlags extends Omit<SourceFlags, 'verbosity'> {
  /** True for `-v` without a value. */
  readonly verbosity?: number | true
  readonly nodeSelector?: string
  readonly extraLabels?: string
  readonly nodeSort?: string
  readonly resources?: string
  readonly style?: string
  readonly disablePricing?: boolean
  readonly attribution?: true
  readonly color?: string
  /** A recording to show. */
  readonly trace?: string
  readonly once?: true
  /** Prints one state in this format and exits. */
  readonly output?: 'json'
  readonly allowActions?: true
  /** Milliseconds. */
  readonly drainTimeout?: number
}

/** Actions only use the flags that select the cluster. */
export function actionFlagsOf({ context, drainTimeout = 60_000, kubeconfig }: ViewFlags): ActionFlags {
  return {
    drainTimeout,
    ...(context !== undefined && { context }),
    ...(kubeconfig !== undefined && { kubeconfig }),
  }
}

/** The {@link ViewFlags} that the defaults file may set, by flag name. */
const defaults: Readonly<Record<string, keyof ViewFlags>> = {
  kubeconfig: 'kubeconfig',
  context: 'context',
  'node-selector': 'nodeSelector',
  'extra-labels': 'extraLabels',
  'node-sort': 'nodeSort',
  resources: 'resources',
  style: 'style',
  'disable-pricing': 'disablePricing',
}

const fileName = '.eks-node-viewer'

/**
 * Adds the values of `~/.eks-node-viewer` for flags that were not given.
 * @throws CliError naming the invalid line.
 */
export async function withDefaultsFile({ env }: Pick<Io, 'env'>, flags: ViewFlags): Promise<ViewFlags> {
  const home = env['HOME'] ?? ''
  if (home === '') return flags
  const path = join(home, fileName)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return flags
    throw new CliError(`${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
  return { ...readDefaults(text, path), ...flags }
}

function readDefaults(text: string, path: string): ViewFlags {
  const read: [string, string | boolean][] = []
  for (const [at, line] of text.split('\n').entries()) {
    const content = line.trim()
    if (content === '' || content.startsWith('#')) continue
    const [, name = '', value = ''] = /^-{0,2}([^=\s]+)\s*=?\s*(.*)$/.exec(content) ?? []
    const member = ownValue(defaults, name)
    if (member === undefined)
      throw new CliError(
        `${path}:${at + 1}: "${name}" is unknown; possible are ${Object.keys(defaults).join(', ')}`,
      )
    if (member !== 'disablePricing') read.push([member, value])
    else if (value === '' || value === 'true') read.push([member, true])
    else if (value !== 'false')
      throw new CliError(`${path}:${at + 1}: disable-pricing is true or false, not "${value}"`)
  }
  return Object.fromEntries(read)
}

const plainResources = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods'])

/** @throws CliError for an invalid resource name. */
export function resourcesOf({ resources = 'cpu' }: ViewFlags): readonly string[] {
  const names = listOf(resources)
  for (const name of names)
    if (!plainResources.has(name) && !/^hugepages-\w+$/.test(name) && !/^[a-z0-9.-]+\/[\w.-]+$/i.test(name))
      throw new CliError(
        `--resources: "${name}" is unknown; use ${[...plainResources].join(', ')}, or a name with a domain such as nvidia.com/gpu`,
      )
  if (names.length === 0) throw new CliError('--resources: name at least one, such as cpu,memory')
  return names
}

export function listOf(text: string | undefined): readonly string[] {
  return (text ?? '').split(',').flatMap((each) => (each.trim() === '' ? [] : [each.trim()]))
}

/** @throws CliError unless it is `creation=asc` or `LABEL=dsc`. */
export function sortingOf({ nodeSort = 'creation=dsc' }: ViewFlags): Sorting {
  const [, by = '', order] = /^(.+?)(?:=(asc|dsc|desc))?$/.exec(nodeSort) ?? []
  if (by === '' || /=/.test(by))
    throw new CliError(`--node-sort: use creation or a label, with =asc or =dsc, not "${nodeSort}"`)
  const isReversed = order === 'dsc' || order === 'desc'
  return by === 'creation' ? { by: 'age', isReversed } : { by: 'label', label: by, isReversed }
}
