import type { Unavailability } from '@tenon/api'
import type { Clock } from '@tenon/runtime'

const rememberMs = 3 * 60_000

/** What is used up: a type, the GPU quota of a family, or the number of instances. */
export type Shortage =
  | { readonly kind: 'type'; readonly typeName: string }
  | { readonly kind: 'family'; readonly family: string }
  | { readonly kind: 'instances' }

/** Remembers shortages for some minutes, so that the next decision avoids them. */
export class UnavailableOfferings {
  readonly #clock: Clock
  readonly #untilMs = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  mark(shortage: Shortage): void {
    this.#untilMs.set(keyOf(shortage), this.#clock.now() + rememberMs)
  }

  /** The current shortages as text; equal for equal shortages. */
  fingerprint(): string {
    return [...this.#untilMs]
      .flatMap(([key, untilMs]) => (this.#isRemembered(key) ? [key, untilMs] : []))
      .join(' ')
  }

  /** Why a type is unavailable, and until when; of several reasons the one that lasts longest. */
  why(typeName: string, family: string): Unavailability | undefined {
    const shortages = [{ kind: 'instances' }, { kind: 'family', family }, { kind: 'type', typeName }] as const
    const [longest] = shortages
      .map((shortage) => ({ shortage, untilMs: this.#rememberedUntil(keyOf(shortage)) }))
      .toSorted((a, b) => b.untilMs - a.untilMs)
    if (longest === undefined || longest.untilMs === 0) return undefined
    return { because: textOf(longest.shortage), untilMs: longest.untilMs }
  }

  #rememberedUntil(key: string): number {
    return this.#isRemembered(key) ? (this.#untilMs.get(key) ?? 0) : 0
  }

  #isRemembered(key: string): boolean {
    const until = this.#untilMs.get(key)
    if (until === undefined) return false
    if (until > this.#clock.now()) return true
    this.#untilMs.delete(key)
    return false
  }
}

function textOf(shortage: Shortage): string {
  switch (shortage.kind) {
    case 'type':
      return 'the zone has no capacity for the type'
    case 'family':
      return `the quota of ${shortage.family} is used up; ask Exoscale to raise it`
    case 'instances':
      return 'the quota of instances is used up; ask Exoscale to raise it'
  }
}

function keyOf(shortage: Shortage): string {
  switch (shortage.kind) {
    case 'type':
      return `type/${shortage.typeName}`
    case 'family':
      return `family/${shortage.family}`
    case 'instances':
      return 'instances'
  }
}
