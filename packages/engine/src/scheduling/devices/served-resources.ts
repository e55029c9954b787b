/** Extended resources that devices serve where a node has none of the resource itself (devices.md 3.22). */
import { ownValue, type Resources } from '@tenon/api'
import type { Amounts, ResourceSpace } from '../pods/resource-space.ts'

/** More than any pods request. Finite, so that sums and differences work. */
const unlimited = 1e9

/** The extended resources that pods of a problem request and that have a DeviceClass. */
export class ServedResources {
  readonly #space: ResourceSpace
  readonly #names: readonly string[]

  /**
   * @param classes names of DeviceClasses, by resource.
   * @param requests those of all pods of the problem.
   */
  constructor(
    classes: ReadonlyMap<string, string> | undefined,
    requests: readonly (Resources | string)[],
    space: ResourceSpace,
  ) {
    this.#space = space
    this.#names = [...(classes?.keys() ?? [])].filter((name) =>
      requests.some((each) => typeof each === 'object' && (ownValue(each, name) ?? 0) > 0),
    )
  }

  /** The names of those in `requests`. */
  within(requests: Resources): readonly string[] {
    return this.#names.filter((name) => (ownValue(requests, name) ?? 0) > 0)
  }

  /** Those that an instance type has itself: they are amounts there, and no devices serve them. */
  countedIn(allocatable: Resources): readonly string[] {
    return this.within(allocatable)
  }

  /** Those that a node has itself. */
  countedOn(available: Resources): readonly string[] {
    return this.#names.filter((name) => Object.hasOwn(available, name))
  }

  /** Removes the limits of those that devices serve: devices are looked for one by one elsewhere. */
  unlimit(room: Amounts, counted: readonly string[]): void {
    for (const name of this.#names) if (!counted.includes(name)) room[this.#space.indexOf(name)] = unlimited
  }

  /** The amounts of a claim without those that devices serve on its nodes. */
  withoutServed(amounts: Resources, allocatable: Resources): Resources {
    const counted = this.countedIn(allocatable)
    const served = this.#names.filter((name) => !counted.includes(name) && Object.hasOwn(amounts, name))
    if (served.length === 0) return amounts
    return Object.fromEntries(Object.entries(amounts).filter(([name]) => !served.includes(name)))
  }
}
