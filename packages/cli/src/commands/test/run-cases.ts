/** Runs the cases of a directory. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { CaseExpectations, CaseFailure, CaseStep, Snapshot } from '@tenon/ask'
import { changedSnapshot } from '@tenon/ask/simulate'
import { runCase } from '@tenon/ask/play'
import { karpenterKinds, type KubeObject, type NodePool, type UnstructuredObject } from '@tenon/api'
import { defaultSettings, emptyMemory } from '@tenon/operator/objects'
import type { ProviderModule } from '@tenon/provider'
import { offlineFacts } from '../../source/catalogue.ts'
import { snapshotFile } from '../../source/snapshot-file.ts'
import { objectNameOf } from '../../kubectl/object-names.ts'
import { CliError } from '../../errors.ts'
import { readManifests } from '../../manifests.ts'
import type { SchemaChecker } from '../validate/schema-check.ts'
import { type CaseGiven, CaseSyntaxError, readCase, type WrittenStep } from './read-case.ts'

/** A case and its result. */
export interface RanCase {
  readonly file: string
  readonly name: string
  readonly durationMs: number
  readonly failures: readonly CaseFailure[]
  readonly observed?: CaseExpectations
  /** Why it could not be run. */
  readonly problem?: string
}

export interface CaseRunner {
  readonly providers: readonly ProviderModule[]
  readonly schemas: SchemaChecker
  readonly monotonic: () => number
}

/** All decisions of a case use this time, so that runs are reproducible. */
const caseTimeMs = Date.parse('2026-01-01T00:00:00Z')

/** @param object a document of the file, of kind TestCase. */
export async function runWritten(
  runner: CaseRunner,
  file: string,
  object: UnstructuredObject,
): Promise<RanCase> {
  const start = runner.monotonic()
  const name = object.metadata.name ?? '(without a name)'
  const done = (outcome: Pick<RanCase, 'failures'> & Partial<RanCase>): RanCase => ({
    file,
    name,
    durationMs: runner.monotonic() - start,
    ...outcome,
  })
  try {
    const written = readCase(object)
    const folder = dirname(file)
    const steps = await Promise.all(written.when.map((step) => wholeStep(runner, folder, step)))
    const given = await givenSnapshot(runner, folder, written.given, steps)
    const result = await runCase(given, { ...written, when: steps }, (text) => objectNameOf(text))
    return 'problem' in result ? done({ failures: [], problem: result.problem }) : done(result)
  } catch (cause) {
    if (!(cause instanceof CliError) && !(cause instanceof CaseSyntaxError)) throw cause
    return done({ failures: [], problem: cause.message })
  }
}

async function wholeStep(runner: CaseRunner, folder: string, step: WrittenStep): Promise<CaseStep> {
  if (step.kind !== 'apply') return step
  return { kind: 'apply', objects: await objectsOf(runner, folder, step) }
}

/** Objects as the API server would store them. */
async function objectsOf(
  { schemas }: CaseRunner,
  folder: string,
  { files, objects }: Pick<CaseGiven, 'files' | 'objects'>,
): Promise<readonly KubeObject[]> {
  const read = files.length === 0 ? [] : await readManifests(files, folder, () => undefined)
  const inline = objects.map((object, index) => ({
    object: object as unknown as UnstructuredObject,
    source: `objects[${index}]`,
  }))
  return [...read, ...inline].map(({ object, source }) => {
    const checked = schemas.check(object)
    const [wrong] = checked?.findings.filter(({ severity }) => severity === 'error') ?? []
    if (wrong !== undefined) throw new CliError(`${source}: ${wrong.field}: ${wrong.message}`)
    const { name } = object.metadata
    if (name === undefined) throw new CliError(`${source}: metadata.name is missing`)
    const stored = checked?.stored ?? object
    return { ...stored, metadata: { ...stored.metadata, name } }
  })
}

const isPool = (object: KubeObject): object is NodePool => object.kind === karpenterKinds.nodePool.kind

async function givenSnapshot(
  runner: CaseRunner,
  folder: string,
  given: CaseGiven,
  steps: readonly CaseStep[],
): Promise<Snapshot> {
  const objects = await objectsOf(runner, folder, given)
  const base =
    given.snapshot === undefined
      ? await emptySnapshot(runner, folder, given, [
          ...objects,
          ...steps.flatMap((step) => (step.kind === 'apply' ? step.objects : [])),
        ])
      : await snapshotFile({ cwd: folder }, resolve(folder, given.snapshot))
  const ordered = [...objects.filter((object) => !isPool(object)), ...objects.filter(isPool)]
  const filled = changedSnapshot(
    base,
    ordered.map((object) => ({ kind: 'apply', object })),
  )
  if ('problem' in filled) throw new CliError(filled.problem)
  return filled.ok
}

/** @param objects those of the case, whose NodePools need types. */
async function emptySnapshot(
  { providers }: CaseRunner,
  folder: string,
  { provider, options }: CaseGiven,
  objects: readonly KubeObject[],
): Promise<Snapshot> {
  const pools = objects.filter(isPool)
  const refs = pools.map(({ spec }) => spec.template.spec.nodeClassRef)
  const module = providers.find(({ name, nodeClasses }) =>
    provider === undefined
      ? nodeClasses.some(({ group, kind }) => refs.some((ref) => ref.group === group && ref.kind === kind))
      : name === provider,
  )
  if (module === undefined)
    throw new CliError(
      `given.catalogue.provider: no provider ${provider ?? 'of these NodePools'} is known; use one of ${providers.map(({ name }) => name).join(', ')}`,
    )
  const env = Object.fromEntries(
    Object.entries(options).map(([flag, value]) => {
      const option = module.validateOptions.find((each) => each.flag === flag)
      if (option === undefined)
        throw new CliError(
          `given.catalogue.options.${flag}: unknown option; use ${module.validateOptions.map((each) => each.flag).join(', ')}`,
        )
      return [option.variable, value]
    }),
  )
  const offline = await module.offline(env, async (path) => await readFile(resolve(folder, path), 'utf8'))
  const classes = new Map(
    objects.map((object) => [
      `${object.apiVersion.replace(/\/.*$/, '')}/${object.kind}/${object.metadata.name}`,
      object,
    ]),
  )
  return {
    takenAtMs: caseTimeMs,
    program: 'tenon test',
    origin: { kind: 'objects', server: 'a test case', catalogue: module.title },
    settings: defaultSettings,
    objects: [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } }],
    memory: emptyMemory,
    nodeDecisions: [],
    journal: [],
    ...offlineFacts(module, offline, pools, classes),
  }
}
