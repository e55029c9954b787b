/** Takes, reads and writes snapshots. This entry point loads neither the engine nor the embedded cluster. */
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
export { unchanging } from './study/snapshot-client.ts'
export { redacted, Redactor } from './snapshot/redact.ts'
