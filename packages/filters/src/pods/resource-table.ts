import { parseResource, type ResourceList } from '@tenon/api'

/** An amount of one resource: `slot` numbers the resource, `amount` is whole (CPU in thousandths). */
export interface Amount {
  readonly slot: number
  readonly amount: number
}

/** The slot of CPU in every vector. */
export const cpuSlot = 0
/** The slot of memory in every vector. */
export const memorySlot = 1

/** Numbers resources, so that totals are plain arrays. */
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

  /** All amounts of a list by slot; `pods` is left to {@link podCount}. */
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

  /** How many pods a node takes; a node that does not say takes none. */
  podCount(list: ResourceList | undefined): number {
    return list?.['pods'] === undefined ? 0 : parseResource('pods', list['pods'])
  }
}
