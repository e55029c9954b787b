/** Prevents one wrong response from removing the instance types of a cluster. */
import type { Clock } from '@tenon/runtime'

/** How long all lists must agree before a much smaller one is accepted. */
const confirmationMs = 10 * 60_000
/** When to ask again after a list was rejected. */
export const catalogueRecheckMs = 2 * 60_000

/** Whether a list of instance types is accepted. */
export type CatalogueVerdict =
  | { readonly kind: 'taken' }
  /** Rejected; the previous list stays, if there was one. */
  | { readonly kind: 'keptOut'; readonly message: string }

/**
 * Compares every list of types with the accepted one. An empty list, or one that lacks half of the types, is rejected
 * until all lists of ten minutes (at least two) agree. A rejected list causes no drift and removes no offering.
 */
export class CatalogueGate {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #inUse: () => Iterable<string>
  /** Names in the list that was accepted last. */
  #standing: ReadonlySet<string> | undefined
  /** When the first of the lists that agree was received. */
  #smallerSinceMs: number | undefined

  /** @param inUse types of existing instances, with which the first list after a start is compared. */
  constructor(clock: Pick<Clock, 'monotonic'>, inUse: () => Iterable<string> = () => []) {
    this.#clock = clock
    this.#inUse = inUse
  }

  /** @param names of the types in a new list. */
  judge(names: Iterable<string>): CatalogueVerdict {
    const listed = new Set(names)
    const now = this.#clock.monotonic()
    const before = this.#standing ?? new Set(this.#inUse())
    if (isSmaller(listed, before)) {
      this.#smallerSinceMs ??= now
      if (now - this.#smallerSinceMs < confirmationMs) {
        const { size } = before
        return {
          kind: 'keptOut',
          message: `the list has ${listed.size} instance types${size === 0 ? '' : `, and lacks at least half of the ${size} that were there`}; it is used once all lists agree for ten minutes`,
        }
      }
    }
    this.#smallerSinceMs = undefined
    this.#standing = listed
    return { kind: 'taken' }
  }
}

/** Whether half of the types are missing; of an odd number, the smaller half is enough. */
function isSmaller(listed: ReadonlySet<string>, before: ReadonlySet<string>): boolean {
  if (listed.size === 0) return true
  let left = 0
  for (const name of before) if (listed.has(name)) left++
  return left < before.size && 2 * left <= before.size + 1
}
