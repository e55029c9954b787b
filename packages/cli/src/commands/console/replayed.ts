/** A recording for the page: played as it was, and once for each file of other rules (ask.md 6). */
import type { ReplayAnswer, ReplayedVariant } from '@tenon/console'
import type { PlayReport } from '@tenon/ask'
import { playedVariants } from '../replay/run.ts'
import type { Io } from '../../io.ts'

/**
 * Plays the recording, and once more for each file.
 * @throws CliError when a file cannot be read.
 */
export async function replayedRecording(
  io: Io,
  file: string,
  filename: readonly string[],
): Promise<ReplayAnswer> {
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
