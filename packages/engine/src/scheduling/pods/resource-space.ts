/** Amounts by resource as vectors, so that fitting is a comparison of numbers. */
import { type Resources, ownValue, setOwn } from '@tenon/api'

/** One amount per resource of a {@link ResourceSpace}, in the units of {@link Resources}. */
export type Amounts = Float64Array

/** The resources that matter to one decision, each with its place in a vector. */
export class ResourceSpace {
  readonly #index = new Map<string, number>()

  /** Makes resources known; vectors made before do not have them. */
  add(resources: Resources): void {
    for (const name in resources) if (!this.#index.has(name)) this.#index.set(name, this.#index.size)
  }

  get size(): number {
    return this.#index.size
  }

  /** Place of a resource in vectors; -1 while it is not known. */
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

/** Something that offers room to pods. */
export interface Room {
  /** What pods may take; may be negative. */
  readonly room: Amounts
}

/** Those that no other surpasses in room: a pod fits some of all exactly if it fits one of these. */
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
