/** Copies objects of another cluster without changes: including uid, times and status. */
import type { KubeObject, ResourceType } from '@tenon/api'
import type { ApiServer } from './apiserver/index.ts'
import { collectionId } from './apiserver/kinds/registry.ts'
import { keyOf } from './storage/index.ts'

/** An object with its kind. */
export interface RestoredObject {
  readonly type: ResourceType
  readonly object: KubeObject
}

/**
 * Without admission and validation, as an API server has accepted them before. Their kinds must be served. Only
 * `metadata.resourceVersion` is new.
 */
export function restoreObjects({ store }: Pick<ApiServer, 'store'>, objects: Iterable<RestoredObject>): void {
  for (const { type, object } of objects) {
    const { namespace, name } = object.metadata
    const key = keyOf(type.namespaced ? (namespace ?? 'default') : undefined, name)
    store.put(store.collection(collectionId(type.group, type.plural)), key, { ...object })
  }
}
