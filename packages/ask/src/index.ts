export { readSnapshot, writeSnapshot } from './snapshot/file.ts'
export { readSnapshotText, snapshotLines, type ReadSnapshot, type SnapshotProblem } from './snapshot/lines.ts'
export type {
  Snapshot,
  SnapshotCatalogue,
  SnapshotCloud,
  SnapshotOrigin,
} from './snapshot/snapshot.ts'
export { type SnapshotSource, takeSnapshot } from './snapshot/take.ts'
export { Study } from './study/study.ts'
