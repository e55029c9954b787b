/** Loads the provider of `--provider`: a built-in one, a module file or a package. */
import { createRequire } from 'node:module'
import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isRecord, type Node, ownValue } from '@tenon/api'
import type { ProviderModule } from '@tenon/provider'
import { CliError } from './errors.ts'
import { coreOptions } from './options/definitions.ts'
import { builtInProviders } from './providers.ts'

export interface Providers {
  /** The built-in ones, and the external one if `--provider` names it. */
  readonly all: readonly ProviderModule[]
  /** The provider of `--provider`; absent without the flag. */
  readonly chosen?: ProviderModule
}

/**
 * Loads the provider.
 * @param asked the value of `--provider`; empty for none.
 * @param cwd base of relative paths and package lookups.
 * @throws CliError naming what is wrong with the value or the module, and the fix.
 */
export async function loadProviders(asked: string, cwd: string): Promise<Providers> {
  if (asked === '') return { all: builtInProviders }
  const builtIn = builtInProviders.find(({ name }) => name === asked)
  if (builtIn !== undefined) return { all: builtInProviders, chosen: builtIn }
  const chosen = moduleIn(await importModule(asked, cwd), asked)
  return { all: [...builtInProviders, chosen], chosen }
}

/** Reads `--provider` from a command line before it is parsed; the last one counts. */
export function providerAsked(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string {
  let asked = env['TENON_PROVIDER'] ?? ''
  for (const [at, arg] of args.entries()) {
    const [, attached, value] = /^--?provider(=(.*))?$/s.exec(arg) ?? []
    if (attached !== undefined) asked = value ?? ''
    else if (/^--?provider$/.test(arg)) asked = args[at + 1] ?? ''
  }
  return asked
}

async function importModule(asked: string, cwd: string): Promise<unknown> {
  const isPath = isAbsolute(asked) || /^\.{1,2}[/\\]/.test(asked)
  let path: string
  try {
    path = isPath ? resolve(cwd, asked) : createRequire(join(cwd, 'index.js')).resolve(asked)
  } catch (cause) {
    const names = builtInProviders.map(({ name }) => name)
    const known = `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
    throw new CliError(
      `--provider=${asked}: give ${known}, the path of a provider module such as ./my-cloud.js, or an installed package`,
      { cause },
    )
  }
  try {
    return await import(pathToFileURL(path).href)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(`--provider=${asked}: cannot load it: ${why.split('\n')[0] ?? ''}`, { cause })
  }
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isFunction = (value: unknown): boolean => typeof value === 'function'
const isOptionalFunction = (value: unknown): boolean => value === undefined || isFunction(value)
const isListOf = (fields: readonly string[]) => (value: unknown) =>
  Array.isArray(value) &&
  value.every((each) => isRecord(each) && fields.every((field) => isText(ownValue(each, field))))

const optionForm = 'a list of options with flag, variable, kind, takes and meaning'
const isOptions = isListOf(['flag', 'variable', 'kind', 'takes', 'meaning'])

/** The required type of each field of a module. */
const form: readonly (readonly [keyof ProviderModule, (value: unknown) => boolean, string])[] = [
  [
    'name',
    (value) => typeof value === 'string' && /^[a-z][a-z0-9-]*$/.test(value),
    'a name in lower case such as my-cloud',
  ],
  ['title', isText, 'a text'],
  [
    'nodeClasses',
    (value) => isListOf(['group', 'version', 'kind', 'plural'])(value) && (value as unknown[]).length > 0,
    'a list of at least one kind with group, version, kind and plural',
  ],
  ['options', isOptions, optionForm],
  ['validateOptions', isOptions, optionForm],
  ['formerNodeClasses', isRecord, 'an object'],
  ['crds', isFunction, 'a function'],
  ['open', isFunction, 'a function'],
  ['offline', isFunction, 'a function'],
  ['simulator', isOptionalFunction, 'a function, or absent'],
  ['survey', isOptionalFunction, 'a function, or absent'],
  ['preflight', isOptionalFunction, 'a function, or absent'],
]

function moduleIn(exported: unknown, asked: string): ProviderModule {
  const refuse = (why: string) => new CliError(`--provider=${asked}: ${why}`)
  const found = isRecord(exported) ? (exported['provider'] ?? exported['default']) : undefined
  if (!isRecord(found))
    throw refuse('it exports no provider; write `export const provider = …` with a ProviderModule')
  for (const [field, isRight, wanted] of form)
    if (!isRight(found[field])) throw refuse(`provider.${field} must be ${wanted}`)
  const loaded = found as unknown as ProviderModule
  for (const other of builtInProviders) {
    if (other.name === loaded.name) throw refuse(`provider.name "${loaded.name}" is taken; choose another`)
    const same = loaded.nodeClasses.find(({ group, kind }) =>
      other.nodeClasses.some((own) => own.group === group && own.kind === kind),
    )
    if (same !== undefined)
      throw refuse(
        `provider.nodeClasses: ${same.kind} of ${same.group} belongs to ${other.title}; choose another`,
      )
  }
  const taken = new Set(
    [...coreOptions, ...builtInProviders.flatMap(({ options }) => options)].map(({ flag }) => flag),
  )
  const flag = loaded.options.find((option) => taken.has(option.flag))?.flag
  if (flag !== undefined) throw refuse(`provider.options: --${flag} is taken; choose another flag`)
  return loaded
}

/**
 * The provider that recognizes most nodes; one that manages them takes precedence over one whose instances they
 * are. Undefined if none recognizes any.
 */
export async function recognizedProvider(
  modules: readonly ProviderModule[],
  nodes: readonly Node[],
): Promise<ProviderModule | undefined> {
  let best: { readonly module: ProviderModule; readonly managed: number; readonly own: number } | undefined
  for (const module of modules) {
    const survey = await module.survey?.()
    if (survey === undefined) continue
    const recognitions = nodes.map((node) => survey.recognizes(node))
    const managed = recognitions.filter((each) => each === 'managed').length
    const own = recognitions.filter((each) => each === 'instance').length
    if (managed + own === 0) continue
    const isBetter =
      best === undefined || managed > best.managed || (managed === best.managed && own > best.own)
    if (isBetter) best = { module, managed, own }
  }
  return best?.module
}
