/** Stores simulated instances with the objects of the cluster, so that both are saved in one order. */
import type { StoredObject } from './contract.ts'
import type { Collection } from './storage/collection.ts'
import type { Store } from './storage/store.ts'

/** An instance as it is stored: plain JSON data. */
export interface InstanceRecord {
  readonly id: string
  readonly name: string
}

/** Where the instances of a simulated cloud are stored. */
export interface KeptInstances<R extends InstanceRecord> {
  /** The records of an earlier run, in any order. */
  all(): readonly R[]
  save(record: R): void
  remove(id: string): void
}

/** No served kind has this id. */
const collectionId = 'simulated-cloud/instances'
const endpointsId = 'simulated-cloud/endpoints'

/** Both are in one store, so that after a crash no saved object refers to an instance that was not saved. */
export function keptInstances<R extends InstanceRecord>(store: Store): KeptInstances<R> {
  const collection = store.collection(collectionId)
  return {
    all: () => recordsOf(collection),
    save(record) {
      const { id, name } = record
      const text = JSON.stringify(record)
      if (collection.get(id)?.['record'] === text) return
      const object: StoredObject = { apiVersion: 'v1', kind: 'Instance', metadata: { name }, record: text }
      store.put(collection, id, object)
    },
    remove(id) {
      if (collection.get(id) !== undefined) store.remove(collection, id)
    },
  }
}

/** Addresses of the API server in this run and earlier ones. */
export interface KeptEndpoints {
  has(url: string): boolean
  add(url: string): void
}

/**
 * Instances follow the API server to another port after a restart, as if it had a DNS name: the endpoint in their user
 * data stays valid.
 */
export function keptEndpoints(store: Store): KeptEndpoints {
  const collection = store.collection(endpointsId)
  return {
    has: (url) => collection.get(url) !== undefined,
    add(url) {
      if (collection.get(url) !== undefined) return
      store.put(collection, url, { apiVersion: 'v1', kind: 'Endpoint', metadata: { name: url } })
    },
  }
}

function recordsOf<R extends InstanceRecord>(collection: Collection): R[] {
  const records: R[] = []
  collection.scan({}, (object) => {
    records.push(JSON.parse(String(object['record'])) as R)
    return true
  })
  return records
}
