import type { Draw } from '../scheduling-proof/objects.ts'

/** Fields of an object. */
export type Fields = Readonly<Record<string, unknown>>

/** A value that the API server may reject. It is rare, so that most rejected objects are rejected for one reason. */
class Odd {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** Marks a value as rare. */
export const odd = (value: unknown): unknown => new Odd(value)

/** Generates a part of an object; called for each object. */
export type Make = (draw: OddDraw) => unknown

/** Possible values; a function generates its own. */
export type Choices = readonly unknown[]

export interface OddRates {
  /** Percentage of optional fields that are present. */
  readonly present: number
  /** Number of fields per 1000 possible ones that get an odd value. */
  readonly odd: number
  /** Number of fields per 1000 that are null. */
  readonly null: number
  /** Number of fields per 1000 whose value has the wrong type. */
  readonly mistyped: number
  /** Number of objects per 1000 with an unknown field. */
  readonly unknown: number
}

/** Generates objects with many fields omitted, and a few of them odd. */
export class OddDraw {
  readonly draw: Draw
  readonly #rates: OddRates

  constructor(draw: Draw, rates: OddRates) {
    this.draw = draw
    this.#rates = rates
  }

  /** The required fields, and some of the optional ones. A field without possible values is omitted. */
  record(
    required: Readonly<Record<string, Choices>>,
    optional: Readonly<Record<string, Choices>> = {},
  ): Fields {
    const fields: [string, unknown][] = []
    for (const [name, choices] of Object.entries(required)) {
      if (!this.#perMille(this.#rates.odd / 2)) fields.push([name, this.value(choices)])
    }
    for (const [name, choices] of Object.entries(optional)) {
      if (this.draw.chance(this.#rates.present)) fields.push([name, this.value(choices)])
    }
    if (this.#perMille(this.#rates.unknown)) fields.push(['nobodyKnows', 'this'])
    return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
  }

  /** One of the values. */
  value(choices: Choices): unknown {
    if (this.#perMille(this.#rates.null)) return null
    if (this.#perMille(this.#rates.mistyped)) return this.draw.pick<unknown>(['text', 7, true, {}, ['text']])
    const usual = choices.filter((choice) => !(choice instanceof Odd))
    const seldom = choices.filter((choice) => choice instanceof Odd)
    const isOdd = seldom.length > 0 && (usual.length === 0 || this.#perMille(this.#rates.odd))
    const drawn = this.draw.pick<unknown>(isOdd ? seldom : usual)
    const value = drawn instanceof Odd ? drawn.value : drawn
    return typeof value === 'function' ? (value as Make)(this) : value
  }

  /** A list of `low` to `high` items. */
  list(low: number, high: number, make: (draw: OddDraw, index: number) => unknown): unknown[] {
    return Array.from({ length: this.draw.between(low, high) }, (_, index) => make(this, index))
  }

  #perMille(rate: number): boolean {
    return this.draw.between(1, 1000) <= rate
  }
}
