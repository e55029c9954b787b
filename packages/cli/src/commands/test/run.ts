/** `tenon test`: tests NodePools (ask.md 7). */
import { type FSWatcher, watch } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { counted, karpenterKinds, type UnstructuredObject } from '@tenon/api'
import { parseAllDocuments } from 'yaml'
import { type CaseRunner, type RanCase, runWritten } from './run-cases.ts'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { SystemClock } from '@tenon/runtime'
import { type JunitCase, junitXml } from '../../junit/report.ts'
import { loadProviders } from '../../load-provider.ts'
import { filesOf, parseManifests, readManifests } from '../../manifests.ts'
import { SchemaChecker } from '../validate/schema-check.ts'
import { allCrds } from '../../crds.ts'

export interface TestFlags {
  readonly output: string
  readonly junit?: string
  readonly update?: true
  readonly watch?: true
}

const couldNotRun = 2
const suffix = '.tenon-test.yaml'
const kind = 'TestCase'
const formats: ReadonlySet<string> = new Set(['text', 'json', 'tap'])

/** @returns the exit code: 1 if a case failed, 2 if one could not be run. */
export async function runTest(io: Io, paths: readonly string[], flags: TestFlags): Promise<0 | 1 | 2> {
  if (paths[0] === 'init') return await writeExample(io, paths.slice(1))
  if (!formats.has(flags.output))
    throw new CliError(`-o ${flags.output} is not known: use ${[...formats].join(', ')}`, {
      exitCode: couldNotRun,
    })
  const runner = await openRunner(io)
  if (flags.watch !== true) return await runOnce(io, runner, paths, flags)
  let code: 0 | 1 | 2 = 0
  for await (const _ of changes(io, paths)) code = await runOnce(io, runner, paths, flags)
  return code
}

async function openRunner(io: Io): Promise<CaseRunner> {
  const { all } = await loadProviders('', io.cwd)
  const schemas = new SchemaChecker(await allCrds(all))
  const clock = new SystemClock()
  return { providers: all, schemas, monotonic: () => clock.monotonic() }
}

async function runOnce(
  io: Io,
  runner: CaseRunner,
  paths: readonly string[],
  flags: TestFlags,
): Promise<0 | 1 | 2> {
  const files = await caseFiles(io, paths)
  const ran: RanCase[] = []
  for (const file of files) ran.push(...(await runFile(io, runner, file, flags)))
  report(io, ran, flags.output)
  if (flags.junit !== undefined)
    await writeFile(resolve(io.cwd, flags.junit), junitXml('tenon test', ran.map(junitCase)))
  if (ran.some(({ problem }) => problem !== undefined)) return couldNotRun
  return ran.some(({ failures }) => failures.length > 0) ? 1 : 0
}

async function caseFiles(io: Io, paths: readonly string[]): Promise<readonly string[]> {
  const files: string[] = []
  for (const path of paths) {
    const found = await filesOf(path, io.cwd, true)
    const [unreadable] = found.unreadable
    if (unreadable !== undefined) throw new CliError(unreadable.message, { exitCode: couldNotRun })
    files.push(...found.files.filter((file) => file.endsWith(suffix)))
  }
  if (files.length === 0)
    throw new CliError(`no file named *${suffix} is in ${paths.join(', ')}; write one with tenon test init`, {
      exitCode: couldNotRun,
    })
  return files.map((file) => resolve(io.cwd, file))
}

async function runFile(
  io: Io,
  runner: CaseRunner,
  file: string,
  flags: TestFlags,
): Promise<readonly RanCase[]> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new CliError(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
      exitCode: couldNotRun,
    })
  })
  let objects: readonly UnstructuredObject[]
  try {
    objects = parseManifests(file, text).map(({ object }) => object)
  } catch (cause) {
    if (!(cause instanceof CliError)) throw cause
    return [{ file, name: file, durationMs: 0, failures: [], problem: cause.message }]
  }
  const ran: RanCase[] = []
  for (const object of objects)
    ran.push(
      object.kind === kind
        ? await runWritten(runner, file, object)
        : {
            file,
            name: object.metadata.name ?? '',
            durationMs: 0,
            failures: [],
            problem: `kind ${object.kind} is no ${kind}`,
          },
    )
  if (flags.update === true) await update(io, file, text, ran)
  return ran
}

/** Writes observed values into cases without expectations. */
async function update(io: Io, file: string, text: string, ran: readonly RanCase[]): Promise<void> {
  const parsed = parseAllDocuments(text)
  const documents = 'empty' in parsed ? [] : parsed
  let updated = 0
  for (const [index, document] of documents.entries()) {
    const { observed } = ran[index] ?? {}
    const expect: unknown = document.toJS().expect
    if (
      observed === undefined ||
      typeof expect !== 'object' ||
      expect === null ||
      Object.keys(expect).length > 0
    )
      continue
    document.set('expect', document.createNode(observed))
    updated++
  }
  if (updated === 0) return
  await writeFile(file, documents.map(String).join(''))
  io.err(`${file}: ${updated} updated\n`)
}

export interface PrintedTests {
  readonly cases: readonly Omit<RanCase, 'durationMs'>[]
}

function documentOf(ran: readonly RanCase[]): PrintedTests & { apiVersion: string; kind: string } {
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'TestReport',
    cases: ran.map(({ file, name, failures, observed, problem }) => ({
      file,
      name,
      failures,
      ...(observed && { observed }),
      ...(problem !== undefined && { problem }),
    })),
  }
}

function report(io: Io, ran: readonly RanCase[], format: string): void {
  if (format === 'json') {
    io.out(`${JSON.stringify(documentOf(ran), null, 2)}\n`)
    return
  }
  if (format === 'tap') io.out(`TAP version 14\n1..${ran.length}\n`)
  for (const [index, each] of ran.entries()) {
    const isOk = each.problem === undefined && each.failures.length === 0
    const head = format === 'tap' ? `${isOk ? 'ok' : 'not ok'} ${index + 1} - ` : `${isOk ? 'ok  ' : 'FAIL'} `
    io.out(`${head}${each.name.replaceAll(/\s+/g, ' ')}\n`)
    for (const line of linesOf(each)) io.out(format === 'tap' ? `# ${line}\n` : `     ${line}\n`)
  }
  if (format !== 'text') return
  const failed = ran.filter(({ failures }) => failures.length > 0).length
  const broken = ran.filter(({ problem }) => problem !== undefined).length
  io.out(`${counted(ran.length, 'case')}, ${failed} failed, ${broken} could not be run\n`)
}

function linesOf({ failures, problem }: RanCase): readonly string[] {
  if (problem !== undefined) return [problem]
  return failures.flatMap(({ field, expected, found, explanation }) => [
    `${field}: expected ${expected}; ${found}`,
    ...(explanation?.split('\n').map((line) => `  ${line}`) ?? []),
  ])
}

function junitCase({ file, name, durationMs, failures, problem }: RanCase): JunitCase {
  const lines = linesOf({ file, name, durationMs, failures, ...(problem !== undefined && { problem }) })
  const [message = ''] = lines
  return {
    className: file,
    name,
    durationMs,
    ...(lines.length > 0 && {
      failure: { message, type: problem === undefined ? 'failed' : 'could not run', text: lines.join('\n') },
    }),
  }
}

async function writeExample(io: Io, paths: readonly string[]): Promise<0> {
  if (paths.length === 0)
    throw new CliError('name the files with the NodePools: tenon test init nodepool.yaml', {
      exitCode: couldNotRun,
    })
  const manifests = await readManifests(paths, io.cwd, (message) => {
    io.err(`Warning: ${message}\n`)
  })
  const pools = manifests.filter(({ object }) => object.kind === karpenterKinds.nodePool.kind)
  if (pools.length === 0)
    throw new CliError(`no NodePool is in ${paths.join(', ')}`, { exitCode: couldNotRun })
  io.out(
    exampleCase(
      paths,
      pools.map(({ object }) => object.metadata.name ?? ''),
    ),
  )
  return 0
}

/** Yields once, and then after each change of a file. */
async function* changes(io: Io, paths: readonly string[]): AsyncGenerator<undefined, void, undefined> {
  let wake = Promise.withResolvers<void>()
  const watchers: readonly FSWatcher[] = paths.map((path) => {
    const place = resolve(io.cwd, path)
    const folder = place.endsWith(suffix) ? dirname(place) : place
    return watch(folder, { recursive: true }, () => {
      wake.resolve()
    })
  })
  const ended = () => {
    wake.resolve()
  }
  io.interrupted.addEventListener('abort', ended)
  try {
    while (!io.interrupted.aborted) {
      wake = Promise.withResolvers<void>()
      yield
      await wake.promise
    }
  } finally {
    for (const each of watchers) each.close()
    io.interrupted.removeEventListener('abort', ended)
  }
}

/**
 * @returns a commented example to start from.
 * @param files relative to the file of the case.
 */
function exampleCase(files: readonly string[], nodePools: readonly string[]): string {
  return `# Run it with: tenon test .
apiVersion: tenon.sh/v1alpha1
kind: TestCase
metadata:
  name: ten pods of one core run
given:
  # Manifests, relative to this file. objects: takes them inline, snapshot: a file of tenon snapshot save.
  files: [${files.map((file) => JSON.stringify(file)).join(', ')}]
  # Instance types: those of the provider of the node classes, unless told otherwise.
  # catalogue: {provider: NAME, options: {zone: NAME}}
when:
  - pods: {name: web, count: 10, requests: {cpu: "1", memory: 1Gi}}
  # - scale: {workload: replicaset/default/web, replicas: 20}
  # - lose: {instanceType: NAME, zone: NAME}
  # - price: {instanceType: NAME, pricePerHour: 0.1}
  # - apply: {files: [changed.yaml]}
  # - delete: nodepool/NAME
  # - pass: 1h
expect:
  running: all
  nodePools: [${nodePools.map((name) => JSON.stringify(name)).join(', ')}]
  # instanceTypes: [NAME]
  # noInstanceTypes: [NAME]
  # nodesAtMost: 3
  # pricePerHourAtMost: 1.5
  # zonesBalanced: true
  # noDisruption: true
  # pending: [{pod: web, reason: untoleratedTaints}]
`
}
