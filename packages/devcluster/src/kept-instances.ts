/** Stores the simulated instances with the objects of the cluster, so that both are saved in one order. */
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
  /** What an earlier run left, in any order. */
  all(): readonly R[]
  save(record: R): void
  remove(id: string): void
}

/** No served kind has this id. */
const collectionId = 'simulated-cloud/instances'
const endpointsId = 'simulated-cloud/endpoints'

/**
 * After a crash the saved state is one that existed: no object tells of an instance that was not saved.
 */
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

/** Where the API server was reached, in this run and earlier ones. */
export interface KeptEndpoints {
  has(url: string): boolean
  add(url: string): void
}

/**
 * Instances follow the API server when it starts again on another port, as they would behind a name:
 * what they were told at their birth stays right.
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
