import type { StoredObject } from '../../contract.ts'

/** Fields whose names differ between `v1` and `events.k8s.io/v1`: [stored, shown]. */
const renamedFields: readonly (readonly [string, string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['reportingComponent', 'reportingController'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
]

/** Converts a stored (`v1`) event to `events.k8s.io/v1`. */
export function eventFromStored(event: StoredObject): StoredObject {
  return { ...rename(event, new Map(renamedFields)), apiVersion: 'events.k8s.io/v1' }
}

/** Converts an `events.k8s.io/v1` event to its stored form. */
export function eventToStored(event: StoredObject): StoredObject {
  const back = new Map(renamedFields.map(([stored, shown]) => [shown, stored] as const))
  return { ...rename(event, back), apiVersion: 'v1' }
}

function rename(object: StoredObject, names: ReadonlyMap<string, string>): StoredObject {
  return Object.fromEntries(
    Object.entries(object).map(([field, value]) => [names.get(field) ?? field, value]),
  ) as StoredObject
}
