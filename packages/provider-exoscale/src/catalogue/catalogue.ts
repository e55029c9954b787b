import type { PricePerHour } from '@tenon/api'
import { CatalogueGate, catalogueRecheckMs } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import type { ExoscaleInstanceType } from '../api/types.ts'

const refreshAfterMs = 6 * 60 * 60_000
const retryAfterMs = 60_000

/** An instance type that this organisation may use in this zone. */
export interface CatalogueEntry {
  readonly id: string
  /** `<family>.<size>`. */
  readonly name: string
  readonly family: string
  readonly size: string
  readonly cpus: number
  readonly memoryBytes: number
  readonly gpus: number
  /** Types of unknown price are only used if no other type will do. */
  readonly pricePerHour: PricePerHour
}

/** All entries, by name and by id. */
export interface CatalogueView {
  readonly entries: readonly CatalogueEntry[]
  readonly byName: ReadonlyMap<string, CatalogueEntry>
  readonly byId: ReadonlyMap<string, CatalogueEntry>
}

/**
 * The usable instance types, read every six hours. The old list is kept if a read fails, or if the new list lacks most
 * types until that is confirmed.
 */
export class Catalogue {
  readonly #api: ExoscaleClient
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #zone: string
  readonly #prices: ReadonlyMap<string, number>
  /** For all listed types and for the usable ones: each list may shrink without the other. */
  readonly #gates: readonly [listed: CatalogueGate, usable: CatalogueGate]
  #view: CatalogueView | undefined
  #refreshAtMs = 0
  #loading: Promise<CatalogueView> | undefined

  constructor(deps: {
    readonly api: ExoscaleClient
    readonly clock: Clock
    readonly logger: Logger
    readonly zone: string
    /** Price per hour by type name. */
    readonly prices: ReadonlyMap<string, number>
    /** Names of the types of existing instances. */
    readonly inUse?: () => Iterable<string>
  }) {
    this.#prices = deps.prices
    this.#gates = [new CatalogueGate(deps.clock), new CatalogueGate(deps.clock, deps.inUse)]
    this.#api = deps.api
    this.#clock = deps.clock
    this.#logger = deps.logger
    this.#zone = deps.zone
  }

  /** The current list; only rejects if there was never any. */
  async view(): Promise<CatalogueView> {
    if (this.#view !== undefined && this.#clock.monotonic() < this.#refreshAtMs) return this.#view
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #load(): Promise<CatalogueView> {
    try {
      const types = await this.#api.listInstanceTypes()
      const view = this.#viewOf(types)
      const [listed, usable] = this.#gates
      for (const verdict of [listed.judge(types.map(({ id }) => id)), usable.judge(view.byName.keys())])
        if (verdict.kind === 'keptOut') return this.#withoutNews(verdict.message)
      this.#view = view
      this.#refreshAtMs = this.#clock.monotonic() + refreshAfterMs
    } catch (error) {
      if (this.#view === undefined) throw error
      this.#refreshAtMs = this.#clock.monotonic() + retryAfterMs
      this.#logger.warn('instance types could not be read again', { error })
    }
    return this.#view
  }

  /** The previous list, while the new one is rejected. */
  #withoutNews(why: string): CatalogueView {
    const message = `instance types of zone ${this.#zone}: ${why}`
    if (this.#view === undefined) throw new Error(message)
    this.#logger.warn(message)
    this.#refreshAtMs = this.#clock.monotonic() + catalogueRecheckMs
    return this.#view
  }

  #viewOf(types: readonly ExoscaleInstanceType[]): CatalogueView {
    const entries = types
      .map((type) => this.#entryOf(type))
      .filter((entry) => entry !== undefined)
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
    return {
      entries,
      byName: new Map(entries.map((entry) => [entry.name, entry])),
      byId: new Map(entries.map((entry) => [entry.id, entry])),
    }
  }

  #entryOf(type: ExoscaleInstanceType): CatalogueEntry | undefined {
    const { id, family, size, cpus, memory, gpus = 0, authorized, zones } = type
    if (authorized !== true || zones?.includes(this.#zone) !== true) return undefined
    if (!family || !size || cpus === undefined || memory === undefined) return undefined
    const name = `${family}.${size}`
    const pricePerHour = this.#prices.get(name)
    return { id, name, family, size, cpus, memoryBytes: memory, gpus, pricePerHour }
  }
}
