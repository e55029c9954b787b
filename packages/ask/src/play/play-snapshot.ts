/** What would become of a snapshot, played on virtual time (ask.md 5, `--for`). */
import type { Snapshot } from '../snapshot/snapshot.ts'
import type { Catalogue } from './catalogue.ts'
import { Play, type PlayTimes, type TimedChange } from './play.ts'
import type { PlayReport } from './report.ts'

/** How a snapshot is played. */
export interface SnapshotPlayOptions {
  readonly forMs: number
  /** Changes in order of time; those of the past come at once. Absent: workloads stay as they are. */
  readonly changes?: Iterable<TimedChange>
  /** The same seed gives the same result; 1 unless given. */
  readonly seed?: number
  readonly times?: Partial<PlayTimes>
}

/** A report with what could not be played. */
export interface SnapshotPlayReport extends PlayReport {
  /** Objects that the simulated cluster does not serve, as `KIND/NAME`. */
  readonly leftOut: readonly string[]
}

/** Plays the cluster from the time of the snapshot on. It writes nothing outside this process. */
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

/** Types of a NodePool that the snapshot does not know are those of one with the same node class, or of any. */
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
