import type { InstanceType, OfferingRef, Unavailability } from '@tenon/api'
import { offeringRefs } from '@tenon/engine'

/** Answers that are kept per type: they differ by what is short and until when. */
const kept = 16

/** Types without some of their offerings. The same answer for the same type is the same object: decisions keep types. */
export class ReducedTypes {
  readonly #known = new WeakMap<InstanceType, Map<string, InstanceType>>()

  /** @param whyOut why an offering is not available; undefined where nothing is to be changed. */
  of(
    types: readonly InstanceType[],
    whyOut: (offering: OfferingRef) => Unavailability | undefined,
  ): readonly InstanceType[] {
    return types.map((type) => {
      const out = offeringRefs(type).map(whyOut)
      return out.some((why) => why !== undefined) ? this.#reduced(type, out) : type
    })
  }

  #reduced(type: InstanceType, out: readonly (Unavailability | undefined)[]): InstanceType {
    const known = this.#known.get(type) ?? new Map<string, InstanceType>()
    this.#known.set(type, known)
    const name = JSON.stringify(out)
    const found = known.get(name)
    if (found !== undefined) return found
    const offerings = type.offerings.map((offering, i) => {
      const unavailability = out[i]
      if (unavailability === undefined || !offering.available) return offering
      return { ...offering, available: false, unavailability }
    })
    const reduced = { ...type, offerings }
    if (known.size >= kept) known.clear()
    known.set(name, reduced)
    return reduced
  }
}
