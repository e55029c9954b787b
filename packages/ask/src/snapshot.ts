/** Snapshots: how they are taken, read and written; nothing of the engine or the embedded cluster is loaded with it. */
export { readSnapshot, writeSnapshot } from './snapshot/file.ts'
export {
  readSnapshotText,
  snapshotLines,
  SnapshotReader,
  type ReadSnapshot,
  type SnapshotProblem,
} from './snapshot/lines.ts'
export type {
  Snapshot,
  SnapshotCatalogue,
  SnapshotCloud,
  SnapshotOrigin,
} from './snapshot/snapshot.ts'
export {
  type CatalogueSource,
  type SnapshotSource,
  takeCatalogues,
  type TakenCatalogues,
  takeSnapshot,
} from './snapshot/take.ts'
export { typesOfNodes } from './snapshot/types-of-nodes.ts'
export { CatalogueProvider } from './study/catalogue-provider.ts'
export { redacted, Redactor } from './snapshot/redact.ts'
