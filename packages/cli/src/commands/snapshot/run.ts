/** `tenon snapshot`: saves, shows and redacts snapshots (ask.md 4). */
import { counted } from '@tenon/api'
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { redacted, type Snapshot, writeSnapshot } from '@tenon/ask/snapshot'
import { originText, snapshotFrom } from '../../source/snapshot.ts'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { tableLines, TableWriter } from '../../kubectl/output/table.ts'

export async function runSnapshotSave(io: Io, file: string, flags: SourceFlags): Promise<void> {
  const snapshot = await snapshotFrom(io, flags)
  await write(io, file, snapshot)
  io.out(`${file} saved: ${counted(snapshot.objects.length, 'object')}\n`)
}

export async function runSnapshotShow(io: Io, file: string): Promise<void> {
  const snapshot = await snapshotFrom(io, { snapshot: resolve(io.cwd, file) })
  const counts = Map.groupBy(snapshot.objects, ({ kind }) => kind)
  const types = snapshot.catalogues.reduce((sum, { instanceTypes = [] }) => sum + instanceTypes.length, 0)
  io.out(`${originText(snapshot)}\n`)
  io.out(
    `Provider ${snapshot.cloud.name}, ${counted(types, 'instance type')}, written by ${snapshot.program}.\n\n`,
  )
  const rows = Array.from(counts, ([kind, objects]) => ({ kind, count: objects.length }))
  const columns = [
    { title: 'KIND', value: ({ kind }: { kind: string }) => kind },
    { title: 'COUNT', value: ({ count }: { count: number }) => String(count) },
  ]
  new TableWriter(io.out).write(
    tableLines(
      columns,
      rows.toSorted((a, b) => (a.kind < b.kind ? -1 : 1)),
    ),
  )
}

export async function runSnapshotRedact(
  io: Io,
  file: string,
  target: string,
  { key = io.env['TENON_REDACT_KEY'] }: { readonly key?: string },
): Promise<void> {
  if (resolve(io.cwd, file) === resolve(io.cwd, target))
    throw new CliError(`${target} is the file itself: name another one for the copy`)
  const snapshot = await snapshotFrom(io, { snapshot: resolve(io.cwd, file) })
  await write(io, target, redacted(snapshot, key ?? randomBytes(32).toString('hex')))
  io.out(`${target} saved\n`)
}

async function write(io: Io, file: string, snapshot: Snapshot): Promise<void> {
  await writeSnapshot(resolve(io.cwd, file), snapshot).catch((cause: unknown) => {
    throw new CliError(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  })
}
