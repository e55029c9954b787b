/** `tenon record`: records from a cluster what a replay needs. It only reads. */
import { randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Node, ownValue, type PricePerHour } from '@tenon/api'
import { readTraceFile, Recorder, Redactor, TraceFile, type TraceState, traceStateAfter } from '@tenon/ask'
import { silentLogger, SystemRandom } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { onCluster } from '../../kubectl/connection.ts'
import type { ClusterFlags } from '../../kubectl/flags.ts'
import { builtInProviders } from '../../providers.ts'
import { version } from '../../version.ts'

export interface RecordFlags extends ClusterFlags {
  readonly output: string
  /** Milliseconds; absent: until the user interrupts. */
  readonly for?: number
  readonly append?: true
  /** Replaces names by pseudonyms. */
  readonly redact?: true
  /** Of the pseudonyms; default: random. */
  readonly key?: string
}

/** Other tools write the price of a node per hour here. */
const priceLabel = 'eks-node-viewer/instance-price'

/**
 * Records until the time is over or the user interrupts.
 * @throws CliError if the file cannot be written, or is not a recording.
 */
export async function runRecord(io: Io, flags: RecordFlags): Promise<void> {
  const path = resolve(io.cwd, flags.output)
  const redactor = await redactorOf(io, flags)
  const { file, resume } = await openFile(path, flags)
  try {
    await onCluster(io, flags, async ({ client, config, clock }) => {
      const recorder = new Recorder(
        { client, clock, random: new SystemRandom(), logger: silentLogger, sink: file },
        {
          program: `tenon ${version}`,
          source: config.server,
          priceOf,
          ...(resume && { resume }),
          ...(redactor && { redactor }),
        },
      )
      await recorder.start(io.interrupted)
      io.err(
        `recording ${config.server} to ${flags.output}${resume ? ', after a gap' : ''}; Ctrl-C ends it\n`,
      )
      await clock.sleep(flags.for ?? longest, io.interrupted).catch(() => undefined)
      await recorder.stop()
    })
  } finally {
    await file.close()
  }
  const { size } = await stat(path)
  io.err(`${flags.output}: ${(size / 1024).toFixed(1)} KiB; see tenon replay ${flags.output}\n`)
}

/** @throws CliError if names would get other pseudonyms than in earlier sessions. */
async function redactorOf(io: Io, flags: RecordFlags): Promise<Redactor | undefined> {
  const { append, redact, key = io.env['TENON_REDACT_KEY'] } = flags
  if (redact !== true) {
    if (flags.key === undefined) return undefined
    throw new CliError('--key is of pseudonyms: give --redact as well')
  }
  if (append === true && key === undefined)
    throw new CliError(
      '--append --redact needs the key of the sessions before: give it with --key or TENON_REDACT_KEY',
    )
  const known = await Promise.all(
    builtInProviders.map(async (module) => {
      const { rules } = await module.offline({}, unreadable).catch(() => ({ rules: { wellKnownLabels: [] } }))
      return rules.wellKnownLabels
    }),
  )
  return new Redactor(known.flat(), key ?? randomBytes(32).toString('hex'))
}

const unreadable = (path: string): Promise<string> => Promise.reject(new Error(`${path} is not read here`))

/** Limit of Node's timers. */
const longest = 2 ** 31 - 1

async function openFile(
  path: string,
  { output, append }: RecordFlags,
): Promise<{ readonly file: TraceFile; readonly resume: TraceState | undefined }> {
  try {
    const isThere = await stat(path).then(
      () => true,
      () => false,
    )
    if (isThere && append === true) return await reopened(path, output)
    return { file: await TraceFile.create(path), resume: undefined }
  } catch (cause) {
    if (cause instanceof CliError) throw cause
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === 'EEXIST')
      throw new CliError(`${output} exists: go on with --append, or use another name`, { cause })
    throw new CliError(`cannot write ${output}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
}

async function reopened(
  path: string,
  output: string,
): Promise<{ readonly file: TraceFile; readonly resume: TraceState }> {
  const read = await readTraceFile(path)
  if ('message' in read) throw new CliError(`${output}: ${read.message}`)
  return { file: await TraceFile.append(path, read.wholeBytes), resume: traceStateAfter(read.records) }
}

function priceOf({ metadata }: Node): PricePerHour {
  const price = Number(ownValue(metadata.labels, priceLabel) ?? Number.NaN)
  return Number.isFinite(price) && price >= 0 ? price : undefined
}
