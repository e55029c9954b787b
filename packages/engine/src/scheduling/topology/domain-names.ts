/** The domains of one label key as numbers, in the order in which they became known. */
import { has, type ValueSet } from '../../requirements/requirement.ts'

interface Bits {
  readonly bits: Uint8Array
  readonly known: number
}

export class DomainNames {
  readonly #names: string[] = []
  readonly #ids = new Map<string, number>()
  readonly #allowed = new WeakMap<ValueSet, Bits>()

  get size(): number {
    return this.#names.length
  }

  idOf(name: string): number {
    let id = this.#ids.get(name)
    if (id === undefined) {
      id = this.#names.length
      this.#names.push(name)
      this.#ids.set(name, id)
    }
    return id
  }

  name(id: number): string {
    return this.#names[id] as string
  }

  /** 1 for each domain the set allows; undefined stands for all of them. */
  allowedBy(set: ValueSet | undefined): Uint8Array | undefined {
    if (set === undefined) return undefined
    const known = this.#allowed.get(set)
    if (known !== undefined && known.known === this.#names.length) return known.bits
    const bits = new Uint8Array(this.#names.length)
    for (const [id, name] of this.#names.entries()) if (has(set, name)) bits[id] = 1
    this.#allowed.set(set, { bits, known: this.#names.length })
    return bits
  }
}
