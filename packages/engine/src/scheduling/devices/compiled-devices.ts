/** The devices and ResourceClaims of a problem, compiled once for all simulations. */
import type { InstanceType } from '@tenon/api'
import type { DevicesInput } from '../../input/devices.ts'
import { type DevicePool, type NodeAccessTerm, nodeAccessTerms } from './device.ts'
import { PoolReader, type TypeDevices } from './pools.ts'
import { type CompiledClaim, compileClaim, Suitabilities } from './requests.ts'
import { SelectorAnswers } from './selectors.ts'

export class CompiledDevices {
  readonly input: DevicesInput
  readonly suitabilities = new Suitabilities(new SelectorAnswers())
  readonly #reader: PoolReader
  readonly #pinned = new Map<string, DevicePool[]>()
  readonly #others: readonly DevicePool[]
  /** All published pools, whichever nodes they belong to. */
  readonly allPublished: readonly DevicePool[]
  readonly #classes: ReadonlyMap<string, DevicesInput['classes'][number]>
  readonly #claims = new Map<string, CompiledClaim | string>()
  readonly #bySpec = new Map<string, CompiledClaim | string>()
  readonly #none: TypeDevices = { pools: [] }

  constructor(input: DevicesInput) {
    this.input = input
    this.#reader = new PoolReader(input.taintRules ?? [])
    this.#classes = new Map(input.classes.map((each) => [each.metadata.name, each]))
    const others: DevicePool[] = []
    this.allPublished = this.#reader.published(input.slices)
    for (const pool of this.allPublished) {
      const places = pool.devices.map(({ place }) => place)
      const names = new Set(places.flatMap((place) => (place.kind === 'node' ? [place.name] : [])))
      // A pool without usable devices belongs to the nodes that its slices name.
      for (const name of names.size === 0 ? this.#namesOf(pool) : names) {
        const pools = this.#pinned.get(name) ?? []
        pools.push(pool)
        this.#pinned.set(name, pools)
      }
      if (places.some(({ kind }) => kind !== 'node')) others.push(pool)
      else if (places.length === 0 && this.#namesOf(pool).size === 0) others.push(pool)
    }
    this.#others = others
  }

  #namesOf({ driver, name }: DevicePool): ReadonlySet<string> {
    return new Set(
      this.input.slices.flatMap(({ spec }) =>
        spec.driver === driver && spec.pool.name === name && spec.nodeName !== undefined
          ? [spec.nodeName]
          : [],
      ),
    )
  }

  /** Published pools that a node may use; undefined stands for a new node. */
  published(nodeName: string | undefined): readonly DevicePool[] {
    const pinned = nodeName === undefined ? undefined : this.#pinned.get(nodeName)
    if (pinned === undefined) return this.#others
    return this.#others.length === 0 ? pinned : [...new Set([...pinned, ...this.#others])]
  }

  /** The devices of nodes of a type. */
  ofType(type: InstanceType | undefined): TypeDevices {
    return (type?.resourceSliceTemplates ?? []).length === 0 || type === undefined
      ? this.#none
      : this.#reader.ofType(type)
  }

  get none(): TypeDevices {
    return this.#none
  }

  /** The compiled claim, or what is wrong with it. */
  claim(name: string): CompiledClaim | string {
    let claim = this.#claims.get(name)
    if (claim === undefined) {
      const source = this.input.claims.get(name)
      if (source === undefined) claim = 'it does not exist'
      else {
        const key = JSON.stringify(source.spec)
        claim = this.#bySpec.get(key) ?? compileClaim(source.spec, this.#classes)
        this.#bySpec.set(key, claim)
      }
      this.#claims.set(name, claim)
    }
    return claim
  }

  /**
   * Node terms of an allocated claim, one of which a node must meet to use its devices; undefined if every node can.
   */
  allocatedAt(name: string): readonly NodeAccessTerm[] | undefined {
    const selector = this.input.claims.get(name)?.status?.allocation?.nodeSelector
    return selector === undefined ? undefined : nodeAccessTerms(selector)
  }
}
