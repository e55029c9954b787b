/** `tenon simulate`: shows the effect of a change (ask.md 5). It changes neither the cluster nor the cloud. */
import type { ChangedSnapshot, ObjectName, Snapshot, SnapshotChange } from '@tenon/ask'
import { changedSnapshot, simulate } from '@tenon/ask/simulate'
import type { KubeObject, UnstructuredObject } from '@tenon/api'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { chosenNamespace } from '../../kubectl/connection.ts'
import { paintedLines, paintFor } from '../../kubectl/color.ts'
import { objectKinds, objectNameOf, objectNotFound } from '../../kubectl/object-names.ts'
import { snapshotFrom } from '../../source/snapshot.ts'
import type { OutputFlags, SourceFlags } from '../../kubectl/flags.ts'
import { formatOf } from '../../kubectl/output/format.ts'
import { printObjects } from '../../kubectl/output/objects.ts'
import { readManifests } from '../../manifests.ts'
import { loadProviders } from '../../load-provider.ts'
import { type Plays, playText, simulationDiff, simulationObject, simulationText } from './print.ts'
import { SchemaChecker } from '../validate/schema-check.ts'
import { allCrds } from '../../crds.ts'

export interface SimulateFlags extends SourceFlags, OutputFlags {
  readonly filename: readonly string[]
  readonly delete: readonly string[]
  readonly scale: readonly string[]
  /** Milliseconds. */
  readonly for?: number
  readonly observe?: true
  readonly diff?: true
  readonly exitCode?: true
}

const couldNotRun = 2
/** Colours: what is added, what is removed, and the age of the facts. */
const styles = [
  ['Pods that would run: ', 'green'],
  ['Pods that would wait: ', 'red'],
  ['+ ', 'green'],
  ['- ', 'red'],
  ['Facts of ', 'dim'],
] as const
const observedMs = 3_600_000

/**
 * @returns the exit code.
 * @throws CliError if there is no answer; with exit code 2 if 1 is an answer (`--exit-code`).
 */
export async function runSimulate(io: Io, flags: SimulateFlags): Promise<0 | 1> {
  try {
    return await answer(io, flags)
  } catch (cause) {
    if (!(cause instanceof CliError) || flags.exitCode !== true) throw cause
    throw cause.exitingWith(couldNotRun)
  }
}

async function answer(io: Io, flags: SimulateFlags): Promise<0 | 1> {
  const format = formatOf(flags.output)
  const namespace = chosenNamespace(io, flags)
  const changes = [
    ...(await appliedObjects(io, flags.filename)).map((object) => ({ kind: 'apply', object }) as const),
    ...flags.delete.map((text) => ({ kind: 'delete', object: objectName(text, namespace) }) as const),
    ...flags.scale.map((text) => scaling(text, namespace)),
  ]
  const before = await snapshotFrom(io, flags)
  const after = changed(before, changes)
  const simulation = await simulate(before, after)
  const forMs = flags.for ?? (flags.observe === true ? observedMs : undefined)
  const plays = forMs === undefined ? undefined : await played(before, after, forMs)
  if (format.kind !== 'plain')
    printObjects(io.out, format, {
      objects: [simulationObject(simulation, plays)],
      isList: false,
      nameOf: ({ metadata }) => `simulation/${metadata.name}`,
    })
  else {
    const text = flags.diff === true ? simulationDiff(simulation) : simulationText(simulation)
    io.out(paintedLines(text, paintFor(io, flags.color), styles))
    if (plays !== undefined) io.out(playText(plays, before.cloud.priceUnit))
  }
  return flags.exitCode === true && !simulation.changesNothing ? 1 : 0
}

async function played(before: Snapshot, after: Snapshot, forMs: number): Promise<Plays> {
  // Without `--for`, no embedded cluster is loaded.
  const { playSnapshot } = await import('@tenon/ask/play')
  return { forMs, before: await playSnapshot(before, { forMs }), after: await playSnapshot(after, { forMs }) }
}

function changed(before: Snapshot, changes: readonly SnapshotChange[]): Snapshot {
  const result: ChangedSnapshot = changedSnapshot(before, changes)
  if ('problem' in result)
    throw result.missing === undefined ? new CliError(result.problem) : objectNotFound(result.missing)
  return result.ok
}

/**
 * Objects of manifests, as the API server would store them.
 * @throws CliError naming what it would reject.
 */
async function appliedObjects(io: Io, paths: readonly string[]): Promise<readonly KubeObject[]> {
  if (paths.length === 0) return []
  const warn = (message: string): void => {
    io.err(`Warning: ${message}\n`)
  }
  const manifests = await readManifests(paths, io.cwd, warn)
  const schemas = new SchemaChecker(await allCrds((await loadProviders('', io.cwd)).all))
  return manifests.map(({ object, source }) => {
    const checked = schemas.check(object)
    const [wrong] = checked?.findings.filter(({ severity }) => severity === 'error') ?? []
    if (wrong !== undefined)
      throw new CliError(`${source}: ${wrong.field}: ${wrong.message}; check it with tenon validate`)
    return named(checked?.stored ?? object, source)
  })
}

function named(object: UnstructuredObject, source: string): KubeObject {
  const { name } = object.metadata
  if (name === undefined) throw new CliError(`${source}: metadata.name is missing`)
  return { ...object, metadata: { ...object.metadata, name } }
}

function objectName(text: string, namespace: string): ObjectName {
  const name = objectNameOf(text, namespace)
  if (name !== undefined) return name
  throw new CliError(
    `"${text}" names no object: use KIND/NAME or KIND/NAMESPACE/NAME with one of ${objectKinds.join(', ')}`,
  )
}

/** @throws CliError if the text is no `KIND/NAME=NUMBER`. */
export function scaling(text: string, namespace: string): SnapshotChange {
  const [, object = '', count = ''] = /^(.*)=(\d+)$/.exec(text) ?? []
  if (object === '')
    throw new CliError(
      `"${text}" has no number of replicas: use KIND/NAME=NUMBER or KIND/NAMESPACE/NAME=NUMBER`,
    )
  return { kind: 'scale', object: objectName(object, namespace), replicas: Number(count) }
}
