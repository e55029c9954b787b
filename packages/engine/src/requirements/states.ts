/** Interns sets of requirements: equal sets have the same number, and intersections are cached. */
import { oneOf, type ValueSet } from './requirement.ts'
import { merged, type Requirements } from './requirements.ts'

/** The number of a set of requirements in {@link RequirementStates}. */
export type StateId = number

export const anything: StateId = 0

export class RequirementStates {
  readonly #states: Requirements[] = []
  readonly #ids = new Map<string, StateId>()
  readonly #merged = new Map<number, StateId>()
  readonly #narrowed = new Map<string, StateId>()
  readonly #keys = new WeakMap<ValueSet, string>()
  #large = 0

  constructor() {
    this.idOf(new Map())
  }

  idOf(requirements: Requirements): StateId {
    const key = this.#stateKey(requirements)
    const known = this.#ids.get(key)
    if (known !== undefined) return known
    const id = this.#states.length
    this.#states.push(requirements)
    this.#ids.set(key, id)
    return id
  }

  get(id: StateId): Requirements {
    return this.#states[id] as Requirements
  }

  /** The intersection. */
  merge(a: StateId, b: StateId): StateId {
    if (a === b || b === anything) return a
    if (a === anything) return b
    const pair = a * 0x400_0000 + b
    let id = this.#merged.get(pair)
    if (id === undefined) {
      id = this.idOf(merged(this.get(a), this.get(b)))
      this.#merged.set(pair, id)
    }
    return id
  }

  /** The state with one key restricted to these values. */
  narrow(state: StateId, key: string, values: readonly string[]): StateId {
    const name = `${state}\n${key}\n${values.join('\n')}`
    let id = this.#narrowed.get(name)
    if (id === undefined) {
      id = this.merge(state, this.idOf(new Map([[key, oneOf(key, ...values)]])))
      this.#narrowed.set(name, id)
    }
    return id
  }

  #stateKey(requirements: Requirements): string {
    return [...requirements.values()]
      .map((set) => this.#keyOf(set))
      .toSorted()
      .join('\n')
  }

  #keyOf(set: ValueSet): string {
    let key = this.#keys.get(set)
    if (key === undefined) {
      key = set.values.size > mostCompared ? `large ${this.#large++}` : valueSetKey(set)
      this.#keys.set(set, key)
    }
    return key
  }
}

/** Longer lists of values are only equal if they are the same object, as comparing them takes too long. */
const mostCompared = 64

function valueSetKey({ key, complement, values, gte, lte, minValues, required }: ValueSet): string {
  const listed = values.size > 1 ? [...values].toSorted() : [...values]
  return JSON.stringify([key, complement, listed, `${gte}`, `${lte}`, minValues, required])
}
