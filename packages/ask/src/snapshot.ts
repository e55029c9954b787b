/** What a controller needs to answer with a snapshot; nothing of the embedded cluster is loaded with it. */
export { snapshotLines } from './snapshot/lines.ts'
export { type CatalogueSource, takeCatalogues, type TakenCatalogues, takeSnapshot } from './snapshot/take.ts'
