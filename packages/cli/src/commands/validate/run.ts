/** `tenon validate`: checks manifests without a cluster. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { counted, ownValue } from '@tenon/api'
import { isProviderSettingError, type ProviderModule } from '@tenon/provider'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { filesOf, type Unreadable, unreadableAt } from '../../manifests.ts'
import { loadProviders } from '../../load-provider.ts'
import type { OfflineProvider } from './offline-provider.ts'
import { type Problem, renderProblem } from './problem.ts'
import { type SourceText, validate, type Validation } from './validate.ts'
import { allCrds } from '../../crds.ts'
import { featureGates } from '../../options/feature-gates.ts'
import { nodePoolSelector } from '../../source/node-pool-selectors.ts'

/** Exit code if nothing could be checked. */
const couldNotRun = 2

export interface ValidateFlags {
  readonly provider?: string
  readonly featureGates?: string
  readonly nodePools?: readonly string[]
  readonly recursive?: true
  readonly output: 'text' | 'json'
  /** Options of the providers, in camel case. */
  readonly [option: string]: string | readonly string[] | true | undefined
}

/**
 * Prints every problem. Warnings do not count as failure.
 * @returns the exit code: 0 without errors, else 1, also if a file cannot be read.
 * @throws CliError with exit code 2 if no file can be read or an option is invalid.
 */
export async function runValidate(io: Io, paths: readonly string[], flags: ValidateFlags): Promise<0 | 1> {
  const { sources, unreadable } = await readable(() => readSources(io, paths, flags.recursive === true))
  const { gates } = await readable(() =>
    featureGates('--feature-gates', flags.featureGates ?? io.env['FEATURE_GATES'] ?? ''),
  )
  const { all, chosen } = await readable(() => loadProviders(flags.provider ?? '', io.cwd))
  const providers: OfflineProvider[] = []
  for (const module of all)
    providers.push({ module, catalogue: await readable(() => catalogueOf(module, io, flags)) })
  const found = validate(sources, {
    crds: await allCrds(all),
    gates,
    providers,
    controllers: await readable(() =>
      (flags.nodePools ?? []).map((name) => ({ name, selector: nodePoolSelector('--node-pools', name) })),
    ),
    ...(chosen !== undefined && { provider: chosen.name }),
  })
  const validation = { ...found, problems: [...unreadable.map(unreadableProblem), ...found.problems] }
  if (flags.output === 'json') io.out(`${JSON.stringify(document(sources.length, validation), null, 2)}\n`)
  else report(io, sources.length, validation)
  return validation.problems.some(({ severity }) => severity === 'error') ? 1 : 0
}

/** A flag takes precedence over its variable. */
async function catalogueOf(
  module: ProviderModule,
  io: Io,
  flags: ValidateFlags,
): Promise<OfflineProvider['catalogue']> {
  const given = module.validateOptions.flatMap(({ flag, variable }) => {
    const value = ownValue(flags, camelCase(flag))
    return typeof value === 'string' ? [{ flag, variable, value }] : []
  })
  const env = { ...io.env, ...Object.fromEntries(given.map(({ variable, value }) => [variable, value])) }
  try {
    return await module.offline(env, async (path) => (await readSource(io, path)).text)
  } catch (cause) {
    if (!isProviderSettingError(cause)) throw cause
    const { variable } = cause
    const flag = given.find((each) => each.variable === variable)?.flag
    const name = flag === undefined ? variable : `--${flag}`
    throw new CliError(name === undefined ? cause.message : `${name}: ${cause.message}`, { cause })
  }
}

function camelCase(flag: string): string {
  return flag.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

async function readable<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    if (cause instanceof CliError) throw new CliError(cause.message, { cause, exitCode: couldNotRun })
    throw cause
  }
}

/**
 * Reads all files. One that cannot be read becomes a problem.
 * @throws CliError if none could be read.
 */
async function readSources(
  io: Io,
  paths: readonly string[],
  isRecursive: boolean,
): Promise<{ readonly sources: readonly SourceText[]; readonly unreadable: readonly Unreadable[] }> {
  const sources: SourceText[] = []
  const unreadable: Unreadable[] = []
  for (const path of paths) {
    if (path === '-') {
      sources.push({ file: 'stdin', text: await io.input() })
      continue
    }
    const found = await filesOf(path, io.cwd, isRecursive)
    unreadable.push(...found.unreadable)
    for (const file of found.files) {
      const text = await readFile(resolve(io.cwd, file), 'utf8').catch((cause: unknown) => {
        unreadable.push(unreadableAt(file, cause))
        return undefined
      })
      if (text !== undefined) sources.push({ file, text })
    }
  }
  const [first] = unreadable
  if (sources.length === 0 && first !== undefined) throw new CliError(first.message)
  return { sources, unreadable }
}

function unreadableProblem({ path, message }: Unreadable): Problem {
  return { file: path, line: 1, column: 1, severity: 'error', field: '', message }
}

async function readSource({ cwd }: Io, file: string): Promise<SourceText> {
  const text = await readFile(resolve(cwd, file), 'utf8').catch((cause: Error) => {
    throw new CliError(`cannot read ${file}: ${cause.message}`, { cause })
  })
  return { file, text }
}

function count(problems: readonly Problem[], severity: Problem['severity']): number {
  return problems.filter((problem) => problem.severity === severity).length
}

export interface PrintedValidation {
  readonly files: number
  readonly objects: number
  /** Objects of kinds that are not checked. */
  readonly skipped: number
  readonly errors: number
  readonly warnings: number
  readonly problems: readonly Problem[]
}

function document(
  files: number,
  { problems, checked, skipped }: Validation,
): PrintedValidation & { readonly apiVersion: string; readonly kind: string } {
  const [errors, warnings] = [count(problems, 'error'), count(problems, 'warning')]
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'ValidationReport',
    files,
    objects: checked,
    skipped,
    errors,
    warnings,
    problems,
  }
}

function report(io: Io, files: number, { problems, checked, skipped }: Validation): void {
  for (const problem of problems) io.out(`${renderProblem(problem)}\n`)
  const amounts = [
    `${counted(checked, 'object')} in ${counted(files, 'file')} checked`,
    ...(skipped > 0 ? [`${counted(skipped, 'object')} of other kinds skipped`] : []),
    `${counted(count(problems, 'error'), 'error')}, ${counted(count(problems, 'warning'), 'warning')}`,
  ]
  io.err(`${amounts.join('; ')}\n`)
}
