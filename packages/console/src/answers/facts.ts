/** What answers of the page are computed from. */
import type { KubeObject } from '@tenon/api'
import type { BilledHour, Simulation, Snapshot, SnapshotChange } from '@tenon/ask'

/** An error in a text; lines and columns count from 1. */
export interface TextProblem {
  readonly line: number
  readonly column: number
  readonly severity: 'error' | 'warning'
  /** Path of the field; empty if none. */
  readonly field: string
  readonly message: string
  readonly fix?: string
}

/** Manifests as the API server would store them, and what it would reject. */
export interface ReadManifests {
  readonly objects: readonly KubeObject[]
  readonly problems: readonly TextProblem[]
}

/** A NodePool to begin with, and its node class. */
export interface FirstPool {
  /** The cloud, such as `My Cloud`. */
  readonly title: string
  readonly manifest: string
  /** Creates what is in the manifest. */
  readonly command: string
  /** Name of a node class that exists, and is used. */
  readonly nodeClass?: string
}

/** One NodePool for each cloud that the cluster may be in, or why there is none. */
export type StartAnswer = { readonly pools: readonly FirstPool[] } | { readonly absent: string }

/** A field that a manifest may have. */
export interface FieldHint {
  /** Without indexes: items of lists are `[]`. */
  readonly path: string
  readonly values?: readonly string[]
  readonly description?: string
}

/** A recording, and its cost with each variant of settings. */
export interface ReplayAnswer {
  readonly source: string
  readonly fromMs: number
  readonly toMs: number
  readonly gaps: readonly { readonly fromMs: number; readonly toMs: number; readonly because: string }[]
  readonly variants: readonly ReplayedVariant[]
}

/** Prices are absent if one of them is unknown. */
export interface ReplayedVariant {
  readonly name: string
  readonly price?: number
  readonly launches: number
  readonly evictions: number
  readonly peakNodes: number
  readonly pendingMedianMs?: number
  readonly pendingP99Ms?: number
  readonly hours: readonly BilledHour[]
}

/** What to change in a copy of the cluster. */
export interface SimulatedChanges {
  /** As `--scale` takes them. */
  readonly scales: readonly string[]
  /** Of any kind and number; empty for none. */
  readonly manifests: string
}

/** Facts and answers of `tenon explain`, `simulate`, `cost` and `journal`. Nothing is cached. */
export interface ConsoleFacts {
  snapshot(signal: AbortSignal): Promise<Snapshot>
  /** As `tenon validate` parses them. */
  readManifests(text: string): Promise<ReadManifests>
  /** Fields of a NodePool. */
  fields(): Promise<readonly FieldHint[]>
  /** An object as a user would write it: without status and server-side fields. */
  manifestText(object: KubeObject): string
  yamlText(object: object): string
  /** What `tenon cost -o json` prints. */
  cost(snapshot: Snapshot, by: string): Promise<object>
  /** What `tenon simulate` prints. */
  simulationText(simulation: Simulation): string
  /** @param take takes a snapshot. */
  start?(take: () => Promise<Snapshot>, signal: AbortSignal): Promise<StartAnswer>
  /**
   * Reads a change of `--scale`, such as `deployment/shop/web=12`.
   * @throws Error for the user if it is none.
   */
  scaling(text: string): SnapshotChange
  /** The `tenon simulate` that gives the same answer, for a POSIX shell. */
  simulateCommand(changed: SimulatedChanges, forMs: number | undefined): string
  /** Plays the recording that the console was started with, if any. */
  replay?(signal: AbortSignal): Promise<ReplayAnswer>
}
