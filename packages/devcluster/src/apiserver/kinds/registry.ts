import { apiVersionOf } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import type { ResourceDefinition, StoredObject } from '../../contract.ts'
import { autoscalerFromStored, autoscalerToStored } from './autoscaler-versions.ts'

/** A served resource version, and its conversion from and to storage. */
export interface Served {
  readonly definition: ResourceDefinition
  readonly apiVersion: string
  /** Storage collection, shared by all versions of a resource. */
  readonly collection: string
  /** Name of its CRD; absent for built-in kinds. */
  readonly crdName?: string
  /** Converts a stored object to this version; returns the same result for the same object. */
  readonly view: (stored: StoredObject) => StoredObject
  /** Converts an object of this version to its stored form. */
  readonly toStored: (object: StoredObject) => StoredObject
}

export class Registry {
  readonly #byPath = new Map<string, Served>()
  readonly #custom = new Map<string, readonly string[]>()
  #generation = 0

  constructor(builtIn: readonly ResourceDefinition[]) {
    for (const definition of builtIn) this.#add(builtInServed(definition))
  }

  /** Incremented by every change, so that documents about the registry can be cached. */
  get generation(): number {
    return this.#generation
  }

  find(group: string, version: string, plural: string): Served | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`)
  }

  all(): Served[] {
    return [...this.#byPath.values()]
  }

  definitions(): readonly ResourceDefinition[] {
    return this.all().map((served) => served.definition)
  }

  hasGroup(group: string): boolean {
    return this.all().some((served) => served.definition.group === group)
  }

  /** Replaces the served versions of a CRD. */
  setCustom(crdName: string, definitions: readonly ResourceDefinition[]): void {
    this.removeCustom(crdName)
    const storage = definitions.find((definition) => definition.storage) ?? definitions[0]
    const storedVersion = storage === undefined ? '' : apiVersionOf(storage)
    const paths: string[] = []
    for (const definition of definitions)
      paths.push(this.#add(customServed(definition, storedVersion, crdName)))
    this.#custom.set(crdName, paths)
  }

  removeCustom(crdName: string): void {
    for (const path of this.#custom.get(crdName) ?? []) this.#byPath.delete(path)
    this.#custom.delete(crdName)
    this.#generation++
  }

  #add(served: Served): string {
    const { group, version, plural } = served.definition
    const path = `${group}/${version}/${plural}`
    this.#byPath.set(path, served)
    this.#generation++
    return path
  }
}

/** `pods`, `deployments.apps`. */
export function collectionId(group: string, plural: string): string {
  return group === '' ? plural : `${plural}.${group}`
}

function builtInServed(definition: ResourceDefinition): Served {
  const apiVersion = apiVersionOf(definition)
  if (definition.group === 'events.k8s.io') {
    const toStored = (object: StoredObject) => eventToStored(object)
    return { definition, apiVersion, collection: 'events', view: perObject(eventFromStored), toStored }
  }
  if (apiVersion === 'autoscaling/v1') {
    const collection = collectionId(definition.group, definition.plural)
    const toStored = (object: StoredObject) => autoscalerToStored(object)
    return { definition, apiVersion, collection, view: perObject(autoscalerFromStored), toStored }
  }
  return {
    definition,
    apiVersion,
    collection: collectionId(definition.group, definition.plural),
    ...renaming(apiVersion, apiVersion),
  }
}

function customServed(definition: ResourceDefinition, storedVersion: string, crdName: string): Served {
  const apiVersion = apiVersionOf(definition)
  const collection = collectionId(definition.group, definition.plural)
  return { definition, apiVersion, collection, crdName, ...renaming(apiVersion, storedVersion) }
}

/** Versions that only differ in their name (conversion strategy None). */
function renaming(shown: string, stored: string): Pick<Served, 'view' | 'toStored'> {
  const renamed = perObject((object: StoredObject): StoredObject => ({ ...object, apiVersion: shown }))
  return {
    view: (object) => (object.apiVersion === shown ? object : renamed(object)),
    toStored: (object) => (object.apiVersion === stored ? object : { ...object, apiVersion: stored }),
  }
}

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
function eventFromStored(event: StoredObject): StoredObject {
  return { ...rename(event, new Map(renamedFields)), apiVersion: 'events.k8s.io/v1' }
}

/** Converts an `events.k8s.io/v1` event to its stored form. */
function eventToStored(event: StoredObject): StoredObject {
  const back = new Map(renamedFields.map(([stored, shown]) => [shown, stored] as const))
  return { ...rename(event, back), apiVersion: 'v1' }
}

function rename(object: StoredObject, names: ReadonlyMap<string, string>): StoredObject {
  return Object.fromEntries(
    Object.entries(object).map(([field, value]) => [names.get(field) ?? field, value]),
  ) as StoredObject
}
