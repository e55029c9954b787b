/**
 * Volumes that count against attach limits, as amounts of a resource for each CSI driver: new nodes are chosen, and
 * filled, with them like with any other. A claim that several pods of a new node share counts for each of them.
 */
import { type Resources, ownValue } from '@tenon/api'
import type { AttachLimits } from '../../input/input.ts'
import type { Amounts, ResourceSpace } from './resource-space.ts'

/** No name of a resource has a space in it. */
const prefix = 'volumes of '
/** More than any node attaches; finite, so that it can be reckoned with. */
const unlimited = 1e9

/** @param counts volumes by CSI driver. */
export function attachmentAmounts(counts: Readonly<Record<string, number>>): Resources {
  return Object.fromEntries(Object.entries(counts).map(([driver, count]) => [prefix + driver, count]))
}

/** The amounts without those that stand for volumes. */
export function withoutAttachments(amounts: Resources): Resources {
  const names = Object.keys(amounts)
  if (!names.some((name) => name.startsWith(prefix))) return amounts
  return Object.fromEntries(Object.entries(amounts).filter(([name]) => !name.startsWith(prefix)))
}

/** Drivers with an attach limit, and how many volumes places attach. */
export class Attachments {
  readonly #limits: AttachLimits
  readonly #space: ResourceSpace
  readonly #drivers: readonly string[]

  /** Makes the amounts known to the space. */
  constructor(limits: AttachLimits, space: ResourceSpace) {
    this.#limits = limits
    this.#space = space
    this.#drivers = Object.keys(limits.others)
    space.add(attachmentAmounts(limits.others))
  }

  /** Lets a place take any number of volumes: those of a node that exists are counted one by one. */
  unlimit(room: Amounts): void {
    for (const driver of this.#drivers) room[this.#indexOf(driver)] = unlimited
  }

  /** Lets a new node of an instance type take as many volumes as are known to be attached there. */
  limit(room: Amounts, instanceType: string): void {
    for (const driver of this.#drivers) room[this.#indexOf(driver)] = this.#limitOf(instanceType, driver)
  }

  /** The first driver of which `amounts` are more volumes than any of the instance types attaches. */
  exceeded(
    amounts: Amounts,
    instanceTypes: readonly string[],
  ): { readonly driver: string; readonly volumes: number; readonly limit: number } | undefined {
    for (const driver of this.#drivers) {
      const volumes = amounts[this.#indexOf(driver)] as number
      const limit = Math.max(...instanceTypes.map((type) => this.#limitOf(type, driver)))
      if (instanceTypes.length > 0 && volumes > limit) return { driver, volumes, limit }
    }
    return undefined
  }

  #limitOf(instanceType: string, driver: string): number {
    const { byType, others } = this.#limits
    const own = Object.hasOwn(byType, instanceType) ? ownValue(byType, instanceType) : undefined
    return own !== undefined && Object.hasOwn(own, driver)
      ? (ownValue(own, driver) as number)
      : (ownValue(others, driver) as number)
  }

  #indexOf(driver: string): number {
    return this.#space.indexOf(prefix + driver)
  }
}
