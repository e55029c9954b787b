/** Facts and answers of the page, from the same sources as those of commands. */
import type { CostDimension, PlayReport, Snapshot } from '@tenon/ask'
import { costReport, hoursPerMonth, pricedInstances } from '@tenon/ask/cost'
import type { ConsoleFacts, ReplayAnswer, ReplayedVariant } from '@tenon/console'
import { yamlDocument } from '../../crds.ts'
import type { Io } from '../../io.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { snapshotFrom } from '../../source/snapshot.ts'
import { costObject } from '../cost/print.ts'
import { playedVariants } from '../replay/run.ts'
import { simulationText } from '../simulate/print.ts'
import { scaling } from '../simulate/run.ts'
import { simulateCommand } from './action-command.ts'
import { manifestText, nodePoolFields, readTypedManifests } from './manifests.ts'

/** Where the page gets its facts. */
export interface ConsoleSource extends SourceFlags {
  /** A recording to replay. */
  readonly trace?: string
  /** Manifests for each variant of the replay. */
  readonly variant?: readonly string[]
}

/** Environment, working directory and shutdown signal of a process that answers without a terminal. */
export type QuietIo = Pick<Io, 'cwd' | 'env' | 'interrupted'>

/** Facts that need no snapshot. */
export function manifestFacts(
  io: Pick<Io, 'cwd'>,
): Pick<ConsoleFacts, 'fields' | 'readManifests' | 'yamlText'> {
  return {
    yamlText: yamlDocument,
    readManifests: async (text) => await readTypedManifests(io, text),
    fields: async () => nodePoolFields(),
  }
}

export function consoleFacts(given: QuietIo, source: ConsoleSource): ConsoleFacts {
  const io = quiet(given)
  const { trace, variant = [] } = source
  let fromFile: Promise<Snapshot> | undefined
  const snapshot = async (signal: AbortSignal): Promise<Snapshot> => {
    const { interrupted } = io
    // A file is read once, unless reading failed.
    if (source.snapshot !== undefined) {
      fromFile ??= snapshotFrom(io, source)
      fromFile.catch(() => {
        fromFile = undefined
      })
      return await fromFile
    }
    return await snapshotFrom({ ...io, interrupted: AbortSignal.any([interrupted, signal]) }, source)
  }
  return {
    ...manifestFacts(io),
    snapshot,
    manifestText,
    cost: async (taken, by) => costOf(taken, by as CostDimension),
    simulationText,
    start: async (take, signal) => {
      const { startAnswer } = await import('./start.ts')
      const interrupted = AbortSignal.any([io.interrupted, signal])
      return await startAnswer({ ...io, interrupted }, source, take)
    },
    scaling: (text) => scaling(text, 'default'),
    simulateCommand: (changes, forMs) => simulateCommand(source, changes, forMs),
    ...(trace !== undefined && { replay: async () => await replayedRecording(io, trace, variant) }),
  }
}

/** Discards terminal output: answers contain their own limitations. */
function quiet({ cwd, env, interrupted }: QuietIo): Io {
  return {
    cwd,
    env,
    interrupted,
    out: () => undefined,
    err: () => undefined,
    input: () => Promise.resolve(''),
    isTerminal: false,
    size: () => ({ columns: 80, rows: 24 }),
  }
}

function costOf(snapshot: Snapshot, by: CostDimension): object {
  const { priceUnit } = snapshot.cloud
  return costObject(
    {
      report: costReport(pricedInstances(snapshot), by),
      atMs: snapshot.takenAtMs,
      ...(priceUnit !== undefined && { currency: priceUnit }),
    },
    hoursPerMonth,
  )
}

/**
 * Plays the recording, and once more for each file.
 * @throws CliError if a file cannot be read.
 */
async function replayedRecording(io: Io, file: string, filename: readonly string[]): Promise<ReplayAnswer> {
  const { recording, variants } = await playedVariants(io, file, {
    filename,
    priceFile: [],
    nodeBoot: 60_000,
    podStart: 5_000,
    seed: 1,
    output: 'json',
  })
  const { endMs, figures, gaps, hours, source, startMs } = recording
  return {
    source,
    fromMs: startMs,
    toMs: endMs,
    gaps,
    variants: [
      {
        name: 'as recorded',
        ...(figures.unpricedNodes === 0 && { price: figures.cost }),
        launches: figures.launches,
        evictions: figures.evictions,
        peakNodes: figures.peakNodes,
        hours,
      },
      ...variants.map(({ report, variant }) => variantOf(variant.name, report)),
    ],
  }
}

function variantOf(name: string, report: PlayReport): ReplayedVariant {
  const { cost, evictions, hours, launches, peakInstances, pending, unpricedInstances } = report
  return {
    name,
    ...(unpricedInstances === 0 && { price: cost }),
    launches,
    evictions,
    peakNodes: peakInstances,
    ...(pending.medianMs !== undefined && { pendingMedianMs: pending.medianMs }),
    ...(pending.p99Ms !== undefined && { pendingP99Ms: pending.p99Ms }),
    hours,
  }
}
