/** Facts and answers of the page, from where every command has them. */
import { type CostDimension, costReport, hoursPerMonth, pricedInstances, type Snapshot } from '@tenon/ask'
import type { ConsoleFacts } from '@tenon/console'
import { snapshotFrom } from '../ask/source.ts'
import { simulationText } from '../ask/simulation-text.ts'
import { costObject } from '../cost/print.ts'
import type { Io } from '../io.ts'
import type { SourceFlags } from '../kubectl/flags.ts'
import { replayedRecording } from './replayed.ts'
import { manifestText, nodePoolFields, readTypedManifests } from './manifests.ts'

/** Whom the page asks. */
export interface ConsoleSource extends SourceFlags {
  /** Recording that is replayed. */
  readonly trace?: string
  /** Manifests of each variant of the replay. */
  readonly variant?: readonly string[]
}

export function consoleFacts(io: Io, source: ConsoleSource): ConsoleFacts {
  // What limits an answer is in the answer; the terminal is not the place for it here.
  const quiet = { ...io, err: () => undefined }
  const { trace, variant = [] } = source
  return {
    snapshot: async (signal) =>
      await snapshotFrom({ ...quiet, interrupted: AbortSignal.any([io.interrupted, signal]) }, source),
    readManifests: async (text) => await readTypedManifests(io, text),
    fields: async () => nodePoolFields(),
    manifestText,
    cost: async (snapshot, by) => costOf(snapshot, by as CostDimension),
    simulationText,
    ...(trace !== undefined && { replay: async () => await replayedRecording(quiet, trace, variant) }),
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
