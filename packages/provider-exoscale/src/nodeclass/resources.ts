/** Resolves ids and names in a node class to existing ids. */
import type { Clock } from '@tenon/runtime'
import { isApiError } from '../api/errors.ts'
import type { NamedResource } from '../api/types.ts'
import { isUuid } from '../identifiers.ts'
import type { SelectorTerm } from './types.ts'

const listTtlMs = 60_000

/** Where one kind of group or network is listed. */
export interface ResourceSource {
  /** For messages, such as `security group`. */
  readonly kind: string
  list(signal?: AbortSignal): Promise<readonly NamedResource[]>
  get(id: string, signal?: AbortSignal): Promise<NamedResource>
}

/** Resolves terms of one kind. Lists are cached for a minute; an unknown name causes a new list. */
export class ResourceResolver {
  readonly #source: ResourceSource
  readonly #clock: Clock
  #list: { readonly items: readonly NamedResource[]; readonly readAtMs: number } | undefined
  #reading: Promise<readonly NamedResource[]> | undefined

  constructor(source: ResourceSource, clock: Clock) {
    this.#source = source
    this.#clock = clock
  }

  /**
   * Distinct ids in the given order, those of the older fields first. Rejects at the first that does not exist.
   */
  async resolve(
    formerIds: readonly string[],
    terms: readonly SelectorTerm[],
    signal?: AbortSignal,
  ): Promise<readonly string[]> {
    const ids: string[] = []
    for (const id of formerIds) ids.push(await this.#byId(id, signal))
    for (const term of terms) {
      if (term.id) ids.push(await this.#byId(term.id, signal))
      else if (term.name) ids.push(await this.#byName(term.name, signal))
      else throw new Error(`a ${this.#source.kind} term names neither an id nor a name`)
    }
    return [...new Set(ids)]
  }

  async #byId(id: string, signal: AbortSignal | undefined): Promise<string> {
    if (!isUuid(id))
      throw new Error(`${this.#source.kind} "${id}" is not a valid id; ids are lower-case UUIDs`)
    try {
      return (await this.#source.get(id, signal)).id
    } catch (error) {
      if (!isApiError(error, 'not-found')) throw error
      throw new Error(`${this.#source.kind} ${id} does not exist in this zone`, { cause: error })
    }
  }

  async #byName(name: string, signal: AbortSignal | undefined): Promise<string> {
    const startMs = this.#clock.monotonic()
    const remembered = this.#list
    const isFresh = remembered !== undefined && startMs - remembered.readAtMs < listTtlMs
    const find = (items: readonly NamedResource[]) => items.find((item) => item.name === name)?.id
    const known = isFresh ? find(remembered.items) : undefined
    const id = known ?? find(await this.#read(signal))
    if (id === undefined) throw new Error(`there is no ${this.#source.kind} named "${name}" in this zone`)
    return id
  }

  #read(signal: AbortSignal | undefined): Promise<readonly NamedResource[]> {
    this.#reading ??= this.#source
      .list(signal)
      .then((items) => {
        this.#list = { items, readAtMs: this.#clock.monotonic() }
        return items
      })
      .finally(() => {
        this.#reading = undefined
      })
    return this.#reading
  }
}
