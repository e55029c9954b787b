/**
 * Volumes as amounts of a resource per CSI driver, so that new nodes are chosen by attach limits like by any other
 * resource. A claim that several pods of a new node share counts for each of them.
 */
import { type Resources, ownValue } from '@tenon/api'
import type { AttachLimits, PoolInput } from '../../input/input.ts'
import type { Amounts, ResourceSpace } from './resource-space.ts'

/** Resource names contain no space, so it cannot collide. */
const prefix = 'volumes of '
/** More than any node attaches. Finite, so that sums and differences work. */
const unlimited = 1e9

/** @param counts volumes by CSI driver. */
export function attachmentAmounts(counts: Readonly<Record<string, number>>): Resources {
  return Object.fromEntries(Object.entries(counts).map(([driver, count]) => [prefix + driver, count]))
}

/** The amounts without volumes. */
export function withoutAttachments(amounts: Resources): Resources {
  const names = Object.keys(amounts)
  if (!names.some((name) => name.startsWith(prefix))) return amounts
  return Object.fromEntries(Object.entries(amounts).filter(([name]) => !name.startsWith(prefix)))
}

/** CSI drivers whose volumes are counted on new nodes. */
export function countedDrivers(
  limits: AttachLimits | undefined,
  pools: readonly PoolInput[],
): ReadonlySet<string> {
  const missing = pools.flatMap(({ missingDrivers = {} }) => Object.values(missingDrivers).flat())
  return new Set([...Object.keys(limits?.others ?? {}), ...missing])
}

/** CSI drivers that a new node of the pool and the instance type lacks. */
function missingOn({ missingDrivers }: PoolInput, instanceType: string): readonly string[] {
  return ownValue(missingDrivers, instanceType) ?? []
}

/** Attach limits of new nodes. A driver that nodes lack attaches none. */
export class Attachments {
  readonly #limits: AttachLimits
  readonly #space: ResourceSpace
  readonly #drivers: readonly string[]

  /** Adds the drivers to the space. */
  constructor(limits: AttachLimits, pools: readonly PoolInput[], space: ResourceSpace) {
    this.#limits = limits
    this.#space = space
    this.#drivers = [...countedDrivers(limits, pools)]
    space.add(attachmentAmounts(Object.fromEntries(this.#drivers.map((driver) => [driver, 0]))))
  }

  /** Removes the limits of a room: volumes of existing nodes are counted one by one elsewhere. */
  unlimit(room: Amounts): void {
    for (const driver of this.#drivers) room[this.#indexOf(driver)] = unlimited
  }

  /** Sets the attach limits of a new node of the pool and the instance type. */
  limit(room: Amounts, pool: PoolInput, instanceType: string): void {
    for (const driver of this.#drivers) room[this.#indexOf(driver)] = this.#limitOf(instanceType, driver)
    for (const driver of missingOn(pool, instanceType)) room[this.#indexOf(driver)] = 0
  }

  /** The first driver with volumes in `amounts` that new nodes of all the instance types lack. */
  missing(amounts: Amounts, pool: PoolInput, instanceTypes: readonly string[]): string | undefined {
    const [first, ...others] = instanceTypes
    if (first === undefined) return undefined
    return missingOn(pool, first).find(
      (driver) =>
        (amounts[this.#indexOf(driver)] as number) > 0 &&
        others.every((type) => missingOn(pool, type).includes(driver)),
    )
  }

  /** The first driver whose volumes in `amounts` exceed the limits of all the instance types. */
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
      : (ownValue(others, driver) ?? unlimited)
  }

  #indexOf(driver: string): number {
    return this.#space.indexOf(prefix + driver)
  }
}
