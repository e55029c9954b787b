/** What a controller needs to record. This entry point loads nothing of the embedded cluster. */
export { priceOfLabels } from './play/catalogue.ts'
export type { SnapshotCatalogue } from './snapshot/snapshot.ts'
export { sharedCatalogues } from './snapshot/take.ts'
export { Recorder } from './trace/recorder.ts'
export { resumedFile, TraceFile } from './trace/trace-file.ts'
