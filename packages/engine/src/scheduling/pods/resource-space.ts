/** Amounts by resource as vectors, so that fitting is a comparison of numbers. */
import { type Resources, ownValue, setOwn } from '@tenon/api'

/** One amount per resource of a {@link ResourceSpace}, in the units of {@link Resources}. */
export type Amounts = Float64Array

/** The resources of a vector, in order. */
interface Layout {
  readonly key: string
}

/**
 * Caches vectors between decisions, as most nodes do not change. The key is the amounts object, so changed amounts must
 * be a new object.
 */
export class VectorCache {
  readonly #vectors = new WeakMap<Resources, { readonly layout: Layout; readonly amounts: Amounts }>()
  #layout: Layout = { key: '' }

  /** The layout of these resources; the same object as long as they do not change. */
  layoutOf(names: Iterable<string>): Layout {
    const key = JSON.stringify([...names])
    if (key !== this.#layout.key) this.#layout = { key }
    return this.#layout
  }

  /** The result must not be changed. */
  vector(resources: Resources, layout: Layout, make: () => Amounts): Amounts {
    const known = this.#vectors.get(resources)
    if (known?.layout === layout) return known.amounts
    const amounts = make()
    this.#vectors.set(resources, { layout, amounts })
    return amounts
  }
}

/** The resources of one decision, each with its index in vectors. */
export class ResourceSpace {
  readonly #index = new Map<string, number>()
  readonly #known: VectorCache | undefined
  /** Of the resources that are known now; undefined after a change. */
  #layout: Layout | undefined

  /** @param known cache of vectors from earlier decisions. */
  constructor(known?: VectorCache) {
    this.#known = known
  }

  /** Adds resources; vectors that were built before do not have them. */
  add(resources: Resources): void {
    for (const name in resources) {
      if (this.#index.has(name)) continue
      this.#index.set(name, this.#index.size)
      this.#layout = undefined
    }
  }

  get size(): number {
    return this.#index.size
  }

  /** Index of a resource in vectors; -1 if it is unknown. */
  indexOf(name: string): number {
    return this.#index.get(name) ?? -1
  }

  /** Amounts of known resources; a resource that is absent is 0. */
  vector(resources: Resources): Amounts {
    const amounts = new Float64Array(this.#index.size)
    for (const name in resources) {
      const index = this.#index.get(name)
      if (index !== undefined) amounts[index] = ownValue(resources, name) as number
    }
    return amounts
  }

  /**
   * Like {@link vector}, but cached: for immutable amounts that the next decision probably needs again. The result must
   * not be changed.
   */
  lastingVector(resources: Resources): Amounts {
    if (this.#known === undefined) return this.vector(resources)
    this.#layout ??= this.#known.layoutOf(this.#index.keys())
    return this.#known.vector(resources, this.#layout, () => this.vector(resources))
  }

  /** The amounts that are not 0, by name. */
  resources(amounts: Amounts): Resources {
    const named: Record<string, number> = {}
    for (const [name, index] of this.#index) {
      const amount = amounts[index] as number
      if (amount !== 0) setOwn(named, name, amount)
    }
    return named
  }
}

/** Whether `have` + `more` stays within `room` for every resource. */
export function sumFits(have: Amounts, more: Amounts, room: Amounts): boolean {
  for (let i = 0; i < room.length; i++)
    if ((have[i] as number) + (more[i] as number) > (room[i] as number)) return false
  return true
}

/** Whether `amounts` stays within `room` for every resource. */
export function amountsFit(amounts: Amounts, room: Amounts): boolean {
  for (let i = 0; i < room.length; i++) if ((amounts[i] as number) > (room[i] as number)) return false
  return true
}

/** Adds `more` to `amounts` in place. */
export function addTo(amounts: Amounts, more: Amounts): void {
  for (let i = 0; i < amounts.length; i++) amounts[i] = (amounts[i] as number) + (more[i] as number)
}

/** Takes `less` from `amounts` in place. */
export function takeFrom(amounts: Amounts, less: Amounts): void {
  for (let i = 0; i < amounts.length; i++) amounts[i] = (amounts[i] as number) - (less[i] as number)
}

/** Something with room for pods. */
export interface Room {
  /** Free amounts; may be negative. */
  readonly room: Amounts
}

/** The items whose room no other item contains: a pod fits some item if and only if it fits one of these. */
export function frontierOf<Offer extends Room>(offers: readonly Offer[]): readonly Offer[] {
  const frontier: Offer[] = []
  for (const offer of offers) {
    if (frontier.some((other) => amountsFit(offer.room, other.room))) continue
    let kept = 0
    for (const other of frontier) if (!amountsFit(other.room, offer.room)) frontier[kept++] = other
    frontier.length = kept
    frontier.push(offer)
  }
  return frontier
}
