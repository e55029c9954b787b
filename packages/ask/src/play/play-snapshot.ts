/** Plays a snapshot into the future on virtual time (ask.md 5, `--for`). */
import type { Snapshot } from '../snapshot/snapshot.ts'
import type { Catalogue } from './catalogue.ts'
import { Play, type PlayTimes, type TimedChange } from './play.ts'
import type { PlayReport } from './report.ts'

export interface SnapshotPlayOptions {
  readonly forMs: number
  /** Changes in order of time; past ones are applied immediately. Absent: workloads do not change. */
  readonly changes?: Iterable<TimedChange>
  /** The same seed yields the same result; default 1. */
  readonly seed?: number
  readonly times?: Partial<PlayTimes>
}

export interface SnapshotPlayReport extends PlayReport {
  /** Objects that the simulated cluster does not serve, as `KIND/NAME`. */
  readonly leftOut: readonly string[]
}

/** Plays the cluster from the time of the snapshot on, in this process only. */
export async function playSnapshot(
  snapshot: Snapshot,
  { forMs, changes = [], seed = 1, times }: SnapshotPlayOptions,
): Promise<SnapshotPlayReport> {
  const { takenAtMs, settings, cloud } = snapshot
  const play = await Play.start({
    objects: snapshot.objects,
    catalogue: catalogueOf(snapshot),
    settings,
    traits: cloud,
    seed,
    startMs: takenAtMs,
    ...(times && { times }),
  })
  await play.run(changes, takenAtMs + forMs)
  const report = await play.report()
  await play.stop()
  return { ...report, leftOut: play.gaps.leftOut }
}

/** A NodePool without a catalogue gets that of a NodePool with the same node class, or of any other. */
function catalogueOf({ catalogues }: Snapshot): Catalogue {
  const byNodePool = new Map(
    catalogues.flatMap(({ nodePools, instanceTypes }) =>
      nodePools.flatMap((name) => (instanceTypes === undefined ? [] : [[name, instanceTypes] as const])),
    ),
  )
  const defaults = new Map(
    catalogues.flatMap(({ nodePools, defaults: own }) =>
      nodePools.flatMap((name) => (own === undefined ? [] : [[name, own] as const])),
    ),
  )
  const [first] = byNodePool.values()
  return { byNodePool, defaults, ...(first && { others: first }) }
}
