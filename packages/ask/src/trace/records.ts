/** The records of a recording (ask.md 6). */
import type { KubeObject, Pod, PricePerHour } from '@tenon/api'
import type { SnapshotCatalogue } from '../snapshot/snapshot.ts'

/** Version of the format; newer ones are rejected. */
export const traceVersion = 1

/** A recorder started or restarted. */
interface SessionRecord {
  readonly kind: 'session'
  readonly atMs: number
  /** Name and version of the program that wrote it. */
  readonly program: string
  /** Where the data comes from, as text for people. */
  readonly source: string
}

/** The pod template of a workload; pods refer to it by number. */
interface ShapeRecord {
  readonly kind: 'shape'
  readonly shape: number
  /** Without name, UID and node. */
  readonly pod: Pod
}

/** A pod was created. It keeps its number when it is evicted and recreated by its controller. */
interface PodCameRecord {
  readonly kind: 'podCame'
  /** Its creation, which may be long before the recording began. */
  readonly atMs: number
  readonly pod: number
  readonly shape: number
  readonly name: string
  /** Digest of its UID, by which a later session recognizes it. */
  readonly id: string
  /** The node of a pod that existed when the session began. */
  readonly node?: string
}

/** A pod was evicted, and its controller has created this one in its place. */
interface PodMovedRecord {
  readonly kind: 'podMoved'
  readonly atMs: number
  readonly pod: number
  readonly id: string
}

/** A pod was deleted for good, or has completed. */
interface PodEndedRecord {
  readonly kind: 'podEnded'
  readonly atMs: number
  readonly pod: number
}

/** A node was added. */
export interface NodeCameRecord {
  readonly kind: 'nodeCame'
  readonly atMs: number
  readonly node: string
  readonly id: string
  readonly labels: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  readonly capacity: Readonly<Record<string, string>>
  /** Absent if unknown. */
  readonly pricePerHour?: PricePerHour
}

interface NodeGoneRecord {
  readonly kind: 'nodeGone'
  readonly atMs: number
  readonly node: string
}

/** Another object that decisions read was added or changed. */
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

/** What can be bought from now on. */
interface CatalogueRecord {
  readonly kind: 'catalogue'
  readonly atMs: number
  readonly catalogues: readonly SnapshotCatalogue[]
}

/** A period of which only the state before and after is known. */
interface GapRecord {
  readonly kind: 'gap'
  readonly atMs: number
  readonly fromMs: number
  readonly because: string
}

/** The recorder is running; nothing else may have changed. */
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
