import { parseResource, type ResourceList } from '@tenon/api'

/** An amount of one resource: `slot` is the resource's index, `amount` an integer (CPU in thousandths). */
export interface Amount {
  readonly slot: number
  readonly amount: number
}

/** The index of CPU in every vector. */
export const cpuSlot = 0
/** The index of memory in every vector. */
export const memorySlot = 1

/** Assigns indexes to resources, so that totals are plain arrays. */
export class ResourceTable {
  readonly #names: string[] = ['cpu', 'memory', 'ephemeral-storage']
  readonly #slots = new Map(this.#names.map((name, slot) => [name, slot]))

  slotOf(name: string): number {
    let slot = this.#slots.get(name)
    if (slot === undefined) {
      slot = this.#names.push(name) - 1
      this.#slots.set(name, slot)
    }
    return slot
  }

  nameOf(slot: number): string {
    return this.#names[slot] ?? 'unknown'
  }

  /** All amounts of a list by slot, without `pods`; see {@link podCount}. */
  totals(list: ResourceList | undefined): number[] {
    const totals = [0, 0, 0]
    for (const [name, quantity] of Object.entries(list ?? {})) {
      if (name === 'pods') continue
      const slot = this.slotOf(name)
      while (totals.length <= slot) totals.push(0)
      totals[slot] = parseResource(name, quantity)
    }
    return totals
  }

  /** The pod capacity of a node; 0 if the node does not report it. */
  podCount(list: ResourceList | undefined): number {
    return list?.['pods'] === undefined ? 0 : parseResource('pods', list['pods'])
  }
}
