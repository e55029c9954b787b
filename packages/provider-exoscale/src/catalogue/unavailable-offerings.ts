import type { Clock } from '@tenon/runtime'

const rememberMs = 3 * 60_000

/** What ran out: one type, the GPU quota of a family, or the number of instances at all. */
export type Shortage =
  | { readonly kind: 'type'; readonly typeName: string }
  | { readonly kind: 'family'; readonly family: string }
  | { readonly kind: 'instances' }

/** Remembers for some minutes what could not be had, so that the next decision goes elsewhere. */
export class UnavailableOfferings {
  readonly #clock: Clock
  readonly #untilMs = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  mark(shortage: Shortage): void {
    this.#untilMs.set(keyOf(shortage), this.#clock.now() + rememberMs)
  }

  /** What is remembered now, as a text that is the same for the same shortages. */
  fingerprint(): string {
    return [...this.#untilMs.keys()].filter((key) => this.#isRemembered(key)).join(' ')
  }

  isUnavailable(typeName: string, family: string): boolean {
    const keys = [{ kind: 'type', typeName }, { kind: 'family', family }, { kind: 'instances' }] as const
    return keys.some((shortage) => this.#isRemembered(keyOf(shortage)))
  }

  #isRemembered(key: string): boolean {
    const until = this.#untilMs.get(key)
    if (until === undefined) return false
    if (until > this.#clock.now()) return true
    this.#untilMs.delete(key)
    return false
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
