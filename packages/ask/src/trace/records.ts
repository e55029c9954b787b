/** What a recording says, record by record (ask.md 6). */
import type { KubeObject, Pod, PricePerHour } from '@tenon/api'
import type { SnapshotCatalogue } from '../snapshot/snapshot.ts'

/** Version of the format; a recording of a later one is refused. */
export const traceVersion = 1

/** A recorder began, or began again. */
interface SessionRecord {
  readonly kind: 'session'
  readonly atMs: number
  /** Name and version of the program that wrote it. */
  readonly program: string
  /** Where the facts come from, as a person would say it. */
  readonly source: string
}

/** A pod as its workload asks for it; pods refer to it by number. */
interface ShapeRecord {
  readonly kind: 'shape'
  readonly shape: number
  /** Without name, uid and node. */
  readonly pod: Pod
}

/** A pod came. Its number stays when it is evicted and put back by its controller. */
interface PodCameRecord {
  readonly kind: 'podCame'
  /** Its creation, which may be long before the recording began. */
  readonly atMs: number
  readonly pod: number
  readonly shape: number
  readonly name: string
  /** Digest of its uid, by which a later session knows it again. */
  readonly id: string
  /** Where it runs, of pods that were there when the session began. */
  readonly node?: string
}

/** A pod was evicted, and its controller has put this one in its place. */
interface PodMovedRecord {
  readonly kind: 'podMoved'
  readonly atMs: number
  readonly pod: number
  readonly id: string
}

/** A pod was no longer wanted, or had done its work. */
interface PodEndedRecord {
  readonly kind: 'podEnded'
  readonly atMs: number
  readonly pod: number
}

/** A node came, with what it is and costs. */
export interface NodeCameRecord {
  readonly kind: 'nodeCame'
  readonly atMs: number
  readonly node: string
  readonly id: string
  readonly labels: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  readonly capacity: Readonly<Record<string, string>>
  /** Absent: not known. */
  readonly pricePerHour?: PricePerHour
}

interface NodeGoneRecord {
  readonly kind: 'nodeGone'
  readonly atMs: number
  readonly node: string
}

/** Any other object that decisions read is now as it says. */
interface ObjectRecord {
  readonly kind: 'object'
  readonly atMs: number
  readonly object: KubeObject
}

interface ObjectGoneRecord {
  readonly kind: 'objectGone'
  readonly atMs: number
  readonly apiVersion: string
  readonly objectKind: string
  readonly namespace?: string
  readonly name: string
}

/** What could be bought from now on. */
interface CatalogueRecord {
  readonly kind: 'catalogue'
  readonly atMs: number
  readonly catalogues: readonly SnapshotCatalogue[]
}

/** What happened in this time is not known, but for what was there before and after. */
interface GapRecord {
  readonly kind: 'gap'
  readonly atMs: number
  readonly fromMs: number
  readonly because: string
}

/** The recording goes on; nothing else may have happened. */
interface AliveRecord {
  readonly kind: 'alive'
  readonly atMs: number
}

export type TraceRecord =
  | SessionRecord
  | ShapeRecord
  | PodCameRecord
  | PodMovedRecord
  | PodEndedRecord
  | NodeCameRecord
  | NodeGoneRecord
  | ObjectRecord
  | ObjectGoneRecord
  | CatalogueRecord
  | GapRecord
  | AliveRecord
