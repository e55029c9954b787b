/** Prevents one wrong response from removing the instance types of a cluster. */
import type { Clock } from '@tenon/runtime'

/** How long a much smaller list must be the only one told. */
const confirmationMs = 10 * 60_000
/** When to ask again for a list that was kept out. */
export const catalogueRecheckMs = 2 * 60_000

/** Whether a list of instance types is taken. */
export type CatalogueVerdict =
  | { readonly kind: 'taken' }
  /** Kept out; the list before stands, if there was one. */
  | { readonly kind: 'keptOut'; readonly message: string }

/**
 * Holds every list of types against the one that stands. One that is empty, or lacks half of what stands, is kept out
 * until every list of ten minutes, two at the least, has said the same. Nothing drifts, and no offering is lost, for a
 * list that is kept out.
 */
export class CatalogueGate {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #inUse: () => Iterable<string>
  /** Names of the list that was taken last. */
  #standing: ReadonlySet<string> | undefined
  /** When the first of the lists that say the same was told. */
  #smallerSinceMs: number | undefined

  /** @param inUse types of the instances that exist, which the first list after a start is checked against. */
  constructor(clock: Pick<Clock, 'monotonic'>, inUse: () => Iterable<string> = () => []) {
    this.#clock = clock
    this.#inUse = inUse
  }

  /** @param names of the types in a list that was just told. */
  judge(names: Iterable<string>): CatalogueVerdict {
    const told = new Set(names)
    const now = this.#clock.monotonic()
    const before = this.#standing ?? new Set(this.#inUse())
    if (isSmaller(told, before)) {
      this.#smallerSinceMs ??= now
      if (now - this.#smallerSinceMs < confirmationMs) {
        const { size } = before
        return {
          kind: 'keptOut',
          message: `the list has ${told.size} instance types${size === 0 ? '' : `, and lacks at least half of the ${size} that were there`}; it is used once all lists agree for ten minutes`,
        }
      }
    }
    this.#smallerSinceMs = undefined
    this.#standing = told
    return { kind: 'taken' }
  }
}

/** Whether half of what was there is missing; of an odd number, the smaller half will do. */
function isSmaller(told: ReadonlySet<string>, before: ReadonlySet<string>): boolean {
  if (told.size === 0) return true
  let left = 0
  for (const name of before) if (told.has(name)) left++
  return left < before.size && 2 * left <= before.size + 1
}
