/** The objects of the embedded cluster, their versions and their history. */
export type { Change, Retention } from './change-log.ts'
export { Collection, keyOf, namespacePrefix } from './collection.ts'
export { jsonOf } from './json.ts'
export { type SavedState, Store } from './store.ts'
