/** Puts objects of another cluster into this one as they are: uid, times and status included. */
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
 * Neither admitted nor validated: an API server has accepted them before. Their kinds have to be served.
 * Only `metadata.resourceVersion` is this server's.
 */
export function restoreObjects({ store }: Pick<ApiServer, 'store'>, objects: Iterable<RestoredObject>): void {
  for (const { type, object } of objects) {
    const { namespace, name } = object.metadata
    const key = keyOf(type.namespaced ? (namespace ?? 'default') : undefined, name)
    store.put(store.collection(collectionId(type.group, type.plural)), key, { ...object })
  }
}
