import { apiVersionOf, type KubeObject, type OwnerReference } from '@tenon/api'
import type { ResourceDefinition } from '../../contract.ts'
import type { ControllerContext } from '../context.ts'
import type { Outcome, Steps, WorkQueue } from '../loop/reconcile-loop.ts'
import { withoutOwner } from '../objects/owners.ts'
import { workloads } from '../objects/workloads.ts'
import { type Dependent, idOf, OwnershipGraph } from './ownership-graph.ts'

const foregroundFinalizer = 'foregroundDeletion'
const orphanFinalizer = 'orphan'

const writesPerStep = 16
/** How long after an owner's deletion its dependents may still arrive. */
const settleMs = 50
/** Kinds that never own anything and are numerous. */
const ignoredPlurals = new Set(['events'])

/** Deletes objects without a remaining owner, and finishes foreground and orphaning deletions. */
export function garbageCollection(context: ControllerContext): { stop(): void } {
  const collector = new GarbageCollector(context)
  const definitions = context.store.cache(workloads.customResourceDefinition)
  const follow = context.loop.queue('garbage-collector-kinds', () => collector.followKinds())
  definitions.onChange(() => follow.add('all'))
  follow.add('all')
  return collector
}

type OwnerState = 'solid' | 'dangling' | 'waiting'

class GarbageCollector {
  readonly #context: ControllerContext
  readonly #graph = new OwnershipGraph()
  /** Followed kinds, by group and plural. */
  readonly #followed = new Map<string, { readonly version: string; readonly stop: () => void }>()
  #kinds = new Map<string, ResourceDefinition>()
  readonly #dependents: WorkQueue
  readonly #owners: WorkQueue
  /** Owners in foreground or orphaning deletion, by uid. */
  readonly #ending = new Map<string, string>()
  /** Those of them that were processed once. */
  readonly #settled = new Set<string>()
  readonly #definitionOf = new Map<string, ResourceDefinition>()

  constructor(context: ControllerContext) {
    this.#context = context
    this.#dependents = context.loop.queue('garbage-collector', (id) => this.#collect(id))
    this.#owners = context.loop.queue('garbage-collector-owners', (id) => this.#finish(id))
  }

  stop(): void {
    for (const { stop } of this.#followed.values()) stop()
  }

  /** Follows new kinds, and forgets removed ones. */
  followKinds(): Outcome {
    const definitions = this.#context.store.api.definitions()
    this.#kinds = new Map(definitions.map((each) => [`${apiVersionOf(each)}/${each.kind}`, each]))
    const served = new Map<string, ResourceDefinition>()
    for (const definition of definitions) {
      if (!definition.storage || ignoredPlurals.has(definition.plural)) continue
      served.set(`${definition.group}/${definition.plural}`, definition)
    }
    for (const [id, { version, stop }] of this.#followed) {
      if (served.get(id)?.version === version) continue
      stop()
      this.#followed.delete(id)
    }
    for (const [id, definition] of served) {
      this.#definitionOf.set(id, definition)
      if (!this.#followed.has(id)) this.#follow(id, definition)
    }
    return undefined
  }

  #follow(id: string, definition: ResourceDefinition): void {
    const stop = this.#context.store.api.subscribe<KubeObject>(definition, {
      added: (object) => this.#seen(definition, object),
      updated: (object, old) => {
        const { ownerReferences, deletionTimestamp } = object.metadata
        // The usual case, which changes nothing.
        if (ownerReferences === old.metadata.ownerReferences && deletionTimestamp === undefined) return
        this.#seen(definition, object)
      },
      deleted: (object) => this.#gone(definition, object),
    })
    this.#followed.set(id, { version: definition.version, stop })
  }

  #seen(definition: ResourceDefinition, object: KubeObject): void {
    const before = this.#graph.set(definition, object)
    const { ownerReferences = [], deletionTimestamp, finalizers = [] } = object.metadata
    const id = idOf(definition, object)
    if (ownerReferences !== before) {
      if (ownerReferences.length > 0) this.#dependents.add(id)
      for (const { uid } of before) this.#recheckOwner(uid)
    }
    if (deletionTimestamp === undefined) return
    const ending = finalizers.includes(foregroundFinalizer) || finalizers.includes(orphanFinalizer)
    if (ending && object.metadata.uid !== undefined) {
      this.#ending.set(object.metadata.uid, id)
      this.#owners.add(id)
    }
    for (const { uid } of ownerReferences) this.#recheckOwner(uid)
  }

  #gone(definition: ResourceDefinition, object: KubeObject): void {
    const id = idOf(definition, object)
    const { uid = '' } = object.metadata
    this.#ending.delete(uid)
    this.#settled.delete(uid)
    // The name may be in use again; only the deleted object is forgotten.
    const present = this.#context.store.get(definition, object.metadata.namespace, object.metadata.name)
    const owners = present === undefined ? this.#graph.remove(id) : (object.metadata.ownerReferences ?? [])
    for (const owner of owners) this.#recheckOwner(owner.uid)
    for (const dependent of this.#graph.dependentsOf(uid)) this.#dependents.add(dependent.id)
  }

  #recheckOwner(uid: string): void {
    const id = this.#ending.get(uid)
    if (id !== undefined) this.#owners.add(id)
  }

  /** Deletes one dependent without a remaining owner, or removes its references to deleted owners. */
  #collect(id: string): Outcome {
    const entry = this.#graph.get(id)
    const object = entry && this.#context.store.get(entry.definition, entry.namespace, entry.name)
    if (entry === undefined || object === undefined) return undefined
    const { deletionTimestamp, finalizers = [], ownerReferences = [] } = object.metadata
    if (deletionTimestamp !== undefined && !finalizers.includes(foregroundFinalizer)) return undefined
    if (deletionTimestamp !== undefined || ownerReferences.length === 0) return undefined
    const states = ownerReferences.map((owner) => this.#stateOf(entry, owner))
    if (states.includes('solid')) {
      const lost = new Set(ownerReferences.filter((_, i) => states[i] !== 'solid').map((owner) => owner.uid))
      if (lost.size > 0) this.#dropOwners(entry, object, lost)
      return undefined
    }
    this.#delete(entry, object, states.includes('waiting'))
    return undefined
  }

  #dropOwners(entry: Dependent, object: KubeObject, lost: ReadonlySet<string>): void {
    this.#context.store.modify(entry.definition, object, (latest) =>
      [...lost].reduce((changed, uid) => withoutOwner(changed, uid), latest),
    )
  }

  #delete(entry: Dependent, object: KubeObject, ownerWaits: boolean): void {
    const { uid = '', finalizers = [] } = object.metadata
    const policy = finalizers.includes(orphanFinalizer)
      ? 'Orphan'
      : finalizers.includes(foregroundFinalizer) || (ownerWaits && this.#graph.hasDependents(uid))
        ? 'Foreground'
        : 'Background'
    this.#context.store.delete(entry.definition, object, { propagationPolicy: policy, preconditionUid: uid })
  }

  #stateOf(dependent: Dependent, owner: OwnerReference): OwnerState {
    const definition = this.#kinds.get(`${owner.apiVersion}/${owner.kind}`)
    // If the kind is not served, or a reference crosses namespaces, nothing is known about the owner: keep
    // the object.
    if (definition === undefined) return 'solid'
    if (definition.namespaced && dependent.namespace === undefined) return 'solid'
    const namespace = definition.namespaced ? dependent.namespace : undefined
    const object = this.#context.store.get(definition, namespace, owner.name)
    if (object === undefined || object.metadata.uid !== owner.uid) return 'dangling'
    const { deletionTimestamp, finalizers = [] } = object.metadata
    return deletionTimestamp !== undefined && finalizers.includes(foregroundFinalizer) ? 'waiting' : 'solid'
  }

  /** Continues a foreground or orphaning deletion, and ends it when nothing is left to do. */
  *#finish(id: string): Steps {
    const bar = id.indexOf('|')
    const definition = this.#definitionOf.get(id.slice(0, bar))
    const key = id.slice(bar + 1)
    const slash = key.indexOf('/')
    const [namespace, name] = slash < 0 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)]
    const owner = definition && this.#context.store.get<KubeObject>(definition, namespace, name)
    if (definition === undefined || owner?.metadata.deletionTimestamp === undefined) return undefined
    const { uid = '', finalizers = [] } = owner.metadata
    const trusted = this.#settled.has(uid)
    this.#settled.add(uid)
    if (finalizers.includes(orphanFinalizer)) {
      yield* this.#orphan(uid)
      if (!trusted) return { afterMs: settleMs }
      this.#removeFinalizer(definition, owner, orphanFinalizer)
      return undefined
    }
    if (!finalizers.includes(foregroundFinalizer)) return undefined
    const dependents = this.#graph.dependentsOf(uid)
    for (const dependent of dependents) this.#dependents.add(dependent.id)
    const blocking = dependents.some((dependent) => this.#blocks(dependent, uid))
    if (blocking) return { touched: dependents.length }
    if (!trusted) return { afterMs: settleMs }
    this.#removeFinalizer(definition, owner, foregroundFinalizer)
    return undefined
  }

  /** Whether a dependent must be deleted first, and still exists. */
  #blocks(dependent: Dependent, uid: string): boolean {
    const blocking = dependent.owners.some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true)
    if (!blocking) return false
    const { definition, namespace, name } = dependent
    return this.#context.store.get(definition, namespace, name) !== undefined
  }

  *#orphan(uid: string): Generator<undefined, void, undefined> {
    let writes = 0
    for (const dependent of this.#graph.dependentsOf(uid)) {
      const object = this.#context.store.get<KubeObject>(
        dependent.definition,
        dependent.namespace,
        dependent.name,
      )
      if (object === undefined) continue
      this.#dropOwners(dependent, object, new Set([uid]))
      if (++writes % writesPerStep === 0) yield
    }
  }

  #removeFinalizer(definition: ResourceDefinition, object: KubeObject, finalizer: string): void {
    this.#context.store.modify(definition, object, (latest) => ({
      ...latest,
      metadata: {
        ...latest.metadata,
        finalizers: (latest.metadata.finalizers ?? []).filter((each) => each !== finalizer),
      },
    }))
  }
}
