import type { InstanceType } from '../zone/catalogue.ts'
import type { Instance } from './instance.ts'

/** The instances of the zone in creation order, with the counts for quotas and capacity. */
export class InstanceTable {
  readonly #byId = new Map<string, Instance>()
  readonly #byFamily = new Map<string, number>()
  readonly #placedByType = new Map<string, number>()
  readonly #byAntiAffinityGroup = new Map<string, Set<Instance>>()
  readonly #byPool = new Map<string, Set<Instance>>()

  get size(): number {
    return this.#byId.size
  }

  get(id: string): Instance | undefined {
    return this.#byId.get(id)
  }

  values(): Instance[] {
    return [...this.#byId.values()]
  }

  add(instance: Instance): void {
    this.#byId.set(instance.id, instance)
    this.#count(this.#byFamily, instance.type.family, instance.type.gpus)
    for (const id of instance.antiAffinityGroupIds) groupOf(this.#byAntiAffinityGroup, id).add(instance)
    if (instance.instancePoolId !== undefined) groupOf(this.#byPool, instance.instancePoolId).add(instance)
  }

  remove(instance: Instance): void {
    if (!this.#byId.delete(instance.id)) return
    this.#count(this.#byFamily, instance.type.family, -instance.type.gpus)
    for (const id of instance.antiAffinityGroupIds) this.#byAntiAffinityGroup.get(id)?.delete(instance)
    if (instance.instancePoolId !== undefined) this.#byPool.get(instance.instancePoolId)?.delete(instance)
    if (instance.placed) this.#count(this.#placedByType, instance.type.name, -1)
    instance.placed = false
  }

  /** Counts the instance as using capacity. */
  place(instance: Instance): void {
    if (instance.placed) return
    instance.placed = true
    this.#count(this.#placedByType, instance.type.name, 1)
  }

  /** Instances of a type that use capacity. */
  placedOf(type: InstanceType): number {
    return this.#placedByType.get(type.name) ?? 0
  }

  /** GPUs in use by a family. */
  gpusOf(family: string): number {
    return this.#byFamily.get(family) ?? 0
  }

  /** Members of an anti-affinity group in creation order. */
  inAntiAffinityGroup(id: string): Instance[] {
    return [...(this.#byAntiAffinityGroup.get(id) ?? [])]
  }

  /** Members of an instance pool in creation order. */
  inPool(id: string): Instance[] {
    return [...(this.#byPool.get(id) ?? [])]
  }

  #count(counts: Map<string, number>, key: string, change: number): void {
    counts.set(key, (counts.get(key) ?? 0) + change)
  }
}

function groupOf(groups: Map<string, Set<Instance>>, id: string): Set<Instance> {
  const known = groups.get(id)
  if (known !== undefined) return known
  const members = new Set<Instance>()
  groups.set(id, members)
  return members
}
