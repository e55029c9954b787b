import type { KubeObject, OwnerReference } from '@tenon/api'
import type { ResourceDefinition } from '../../contract.ts'
import { keyOf } from '../loop/object-cache.ts'

/** An object with owners. */
export interface Dependent {
  readonly id: string
  readonly definition: ResourceDefinition
  readonly namespace: string | undefined
  readonly name: string
  readonly owners: readonly OwnerReference[]
}

export function idOf(definition: ResourceDefinition, object: KubeObject): string {
  return `${definition.group}/${definition.plural}|${keyOf(object)}`
}

const noOwners: readonly OwnerReference[] = []

/** Owner references of all kinds, by owner uid. */
export class OwnershipGraph {
  readonly #dependents = new Map<string, Dependent>()
  readonly #byOwner = new Map<string, Set<string>>()

  get(id: string): Dependent | undefined {
    return this.#dependents.get(id)
  }

  /** Objects with `uid` as an owner. */
  dependentsOf(uid: string): Dependent[] {
    return [...(this.#byOwner.get(uid) ?? [])].map((id) => this.#dependents.get(id) as Dependent)
  }

  hasDependents(uid: string): boolean {
    return this.#byOwner.has(uid)
  }

  /** Stores an object's current owners; returns its previous ones. */
  set(definition: ResourceDefinition, object: KubeObject): readonly OwnerReference[] {
    const id = idOf(definition, object)
    const before = this.#dependents.get(id)?.owners ?? noOwners
    const owners = object.metadata.ownerReferences ?? noOwners
    if (owners === before) return before
    this.#unlink(id, before)
    if (owners.length === 0) {
      this.#dependents.delete(id)
      return before
    }
    const { namespace, name } = object.metadata
    this.#dependents.set(id, { id, definition, namespace, name, owners })
    for (const { uid } of owners) {
      const ids = this.#byOwner.get(uid)
      if (ids === undefined) this.#byOwner.set(uid, new Set([id]))
      else ids.add(id)
    }
    return before
  }

  /** Removes an object; returns its owners. */
  remove(id: string): readonly OwnerReference[] {
    const owners = this.#dependents.get(id)?.owners ?? []
    this.#unlink(id, owners)
    this.#dependents.delete(id)
    return owners
  }

  #unlink(id: string, owners: readonly OwnerReference[]): void {
    for (const { uid } of owners) {
      const ids = this.#byOwner.get(uid)
      ids?.delete(id)
      if (ids?.size === 0) this.#byOwner.delete(uid)
    }
  }
}
