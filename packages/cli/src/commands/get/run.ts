/** `tenon get`: lists nodes, NodeClaims, NodePools and pods as kubectl does, with prices and reasons (ask.md 11). */
import type { KubeObject } from '@tenon/api'
import { KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { paintFor } from '../../kubectl/color.ts'
import { onCluster } from '../../kubectl/connection.ts'
import type { ListFlags, SelectionFlags, SourceFlags, WatchFlags } from '../../kubectl/flags.ts'
import {
  bufferKind,
  listedKinds,
  type NamedKind,
  nodeKind,
  nodePoolKind,
  notFound,
  podKind,
  qualifiedName,
  quotaKind,
} from '../../kubectl/kinds.ts'
import { type Format, formatOf } from '../../kubectl/output/format.ts'
import { printObjects } from '../../kubectl/output/objects.ts'
import { sortedBy } from '../../kubectl/output/sort.ts'
import { type Column, tableLines, TableWriter } from '../../kubectl/output/table.ts'
import { type Targets, targetsOf } from '../../kubectl/targets.ts'
import { type ClusterObjects, objectsOfCluster, objectsOfSnapshot } from '../../source/cluster-objects.ts'
import { snapshotFile } from '../../source/snapshot-file.ts'
import { type Facts, liveFacts, snapshotFacts } from './facts.ts'
import { bufferTable, claimTable, nodeTable, podTable, poolTable, quotaTable } from './tables.ts'

export interface GetFlags extends SourceFlags, SelectionFlags, ListFlags, WatchFlags {}

interface Found {
  readonly kind: NamedKind
  readonly objects: readonly KubeObject[]
}

/** @throws KubectlError as kubectl would, after printing what was found. */
export async function runGet(io: Io, args: readonly string[], flags: GetFlags): Promise<void> {
  const format = formatOf(flags.output)
  const targets = targetsOf(args, flags, listedKinds)
  const { snapshot } = flags
  if (snapshot !== undefined) {
    const read = await snapshotFile(io, snapshot)
    await answer(io, flags, {
      format,
      targets,
      objects: objectsOfSnapshot(read, flags),
      factsFor: () => Promise.resolve(snapshotFacts(read)),
    })
  } else
    await onCluster(io, flags, (connection) =>
      answer(io, flags, {
        format,
        targets,
        objects: objectsOfCluster(connection, flags, io.interrupted),
        factsFor: (kinds) => liveFacts(io, flags, connection, kinds),
      }),
    )
}

interface Question {
  readonly format: Format
  readonly targets: Targets
  readonly objects: ClusterObjects
  /** Reads facts for tables of these kinds. */
  readonly factsFor: (kinds: ReadonlySet<NamedKind>) => Promise<Facts>
}

async function answer(io: Io, flags: GetFlags, question: Question): Promise<void> {
  const { format, targets } = question
  const { found, missing } = await gathered(question)
  const sorted = found.map(({ kind, objects }) => ({ kind, objects: inOrder(objects, flags) }))
  const isEmpty = sorted.every(({ objects }) => objects.length === 0)
  if (format.kind !== 'plain') {
    const all = sorted.flatMap(({ kind, objects }) => objects.map((object) => ({ kind, object })))
    const kindOf = new Map(all.map(({ kind, object }) => [object, kind]))
    const isList = targets.kind === 'all' || targets.targets.length > 1
    if (isList || !isEmpty)
      printObjects(io.out, format, {
        objects: all.map(({ object }) => object),
        isList,
        nameOf: (object) => qualifiedName(kindOf.get(object) ?? podKind, object.metadata.name),
        noHeaders: flags.headers === false,
      })
  } else if (isEmpty && missing.length === 0) io.err('No resources found\n')
  else await printTables(io, flags, question, sorted)
  const [first, ...others] = missing
  for (const error of others) io.err(`${error.line}\n`)
  if (first !== undefined) throw first
  if (flags.watch === true) await watch(io, flags, question)
}

/** Prints each object when it changes, until Ctrl-C. */
async function watch(
  io: Io,
  flags: GetFlags,
  { format, targets, objects, factsFor }: Question,
): Promise<void> {
  const kinds = targets.kind === 'all' ? targets.kinds : [...new Set(targets.targets.map(({ kind }) => kind))]
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1)
    throw new KubectlError('error: one type alone can be watched: leave out the others')
  const names = targets.kind === 'all' ? undefined : new Set(targets.targets.map(({ name }) => name))
  const writer = new TableWriter(io.out, paintFor(io, flags.color))
  const isWide = format.kind === 'plain' && format.isWide
  for await (const object of objects.changes(kind)) {
    if (names?.has(object.metadata.name) === false) continue
    if (format.kind === 'plain') {
      const columns = withFlags(columnsOf(kind, await factsFor(new Set([kind]))), kind, flags)
      writer.write(tableLines(columns, [object], { isWide, noHeaders: true }))
    } else
      printObjects(io.out, format, {
        objects: [object],
        isList: false,
        nameOf: ({ metadata }) => qualifiedName(kind, metadata.name),
        noHeaders: true,
      })
  }
}

async function gathered({
  objects: source,
  targets,
}: Question): Promise<{ readonly found: readonly Found[]; readonly missing: readonly KubectlError[] }> {
  if (targets.kind === 'all') {
    const found: Found[] = []
    for (const kind of targets.kinds) found.push({ kind, objects: await source.list(kind) })
    return { found, missing: [] }
  }
  const byKind = new Map<NamedKind, KubeObject[]>()
  const missing: KubectlError[] = []
  for (const { kind, name } of targets.targets) {
    const object = await source.get(kind, name)
    const objects = byKind.get(kind) ?? []
    byKind.set(kind, objects)
    if (object === undefined) missing.push(notFound(kind, name))
    else objects.push(object)
  }
  return { found: [...byKind].map(([kind, objects]) => ({ kind, objects })), missing }
}

function inOrder(objects: readonly KubeObject[], { sortBy }: GetFlags): readonly KubeObject[] {
  return sortBy === undefined ? objects : sortedBy(sortBy, objects, (object) => object)
}

async function printTables(
  io: Io,
  flags: GetFlags,
  { factsFor, format }: Question,
  found: readonly Found[],
): Promise<void> {
  const isWide = format.kind === 'plain' && format.isWide
  const shown = found.filter(({ objects }) => objects.length > 0)
  const facts = await factsFor(new Set(shown.map(({ kind }) => kind)))
  for (const [at, { kind, objects }] of shown.entries()) {
    if (at > 0) io.out('\n')
    const columns = withFlags(columnsOf(kind, facts), kind, flags)
    const options = { isWide, noHeaders: flags.headers === false }
    new TableWriter(io.out, paintFor(io, flags.color)).write(tableLines(columns, objects, options))
  }
}

type AnyColumn = Column<KubeObject>

function columnsOf(kind: NamedKind, facts: Facts): readonly AnyColumn[] {
  // Each list contains objects of one kind.
  switch (kind) {
    case bufferKind:
      return bufferTable(facts) as readonly AnyColumn[]
    case quotaKind:
      return quotaTable(facts) as readonly AnyColumn[]
    case podKind:
      return podTable(facts) as readonly AnyColumn[]
    case nodeKind:
      return nodeTable(facts)
    case nodePoolKind:
      return poolTable(facts) as readonly AnyColumn[]
    default:
      return claimTable(facts) as readonly AnyColumn[]
  }
}

function withFlags(columns: readonly AnyColumn[], kind: NamedKind, flags: GetFlags): readonly AnyColumn[] {
  const isSpread = flags.allNamespaces === true && kind.type.namespaced
  const namespace: AnyColumn = { title: 'NAMESPACE', value: ({ metadata }) => metadata.namespace ?? '' }
  const shownLabels: AnyColumn = { title: 'LABELS', value: labelsText }
  return [...(isSpread ? [namespace] : []), ...columns, ...(flags.showLabels === true ? [shownLabels] : [])]
}

function labelsText({ metadata }: KubeObject): string {
  const pairs = Object.entries(metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return pairs.length === 0 ? '<none>' : pairs.toSorted().join(',')
}
