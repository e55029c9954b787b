/** Reads recordings that are named on the command line. */
import { resolve } from 'node:path'
import { type ReadTrace, readTraceFile, type TraceEnd, type TraceRecord } from '@tenon/ask'
import { CliError } from './errors.ts'
import type { Io } from './io.ts'

/** @throws CliError naming the file that cannot be read. */
export async function readTrace({ cwd }: Pick<Io, 'cwd'>, file: string): Promise<ReadTrace> {
  const read = await readTraceFile(resolve(cwd, file)).catch((cause: unknown) => {
    throw new CliError(`cannot read ${file}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  })
  if ('message' in read) throw new CliError(`${file}: ${read.message}`)
  return read
}

export function warnOfCut({ err }: Pick<Io, 'err'>, file: string, end: TraceEnd): void {
  if (end.kind === 'cut')
    err(`${file}: ${end.because} (byte ${end.atByte}); what was written before is used\n`)
}

/**
 * The records of a file with at least one session. Prints a warning if the file is truncated.
 * @throws CliError naming the file that is unreadable or empty.
 */
export async function traceRecords(
  io: Pick<Io, 'cwd' | 'err'>,
  file: string,
): Promise<readonly TraceRecord[]> {
  const { records, end } = await readTrace(io, file)
  warnOfCut(io, file, end)
  if (!records.some(({ kind }) => kind === 'session'))
    throw new CliError(`${file}: the recording has no session`)
  return records
}
