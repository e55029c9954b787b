/**
 * Open claims with the same template, requirements and allowed types share a class. What is computed for a class serves
 * all its claims.
 */
import type { PricePerHour } from '@tenon/api'
import { allowsAbsence, both, type ValueSet } from '../../requirements/requirement.ts'
import { compatible, type Requirements } from '../../requirements/requirements.ts'
import { anything, type RequirementStates, type StateId } from '../../requirements/states.ts'
import type { SchedulingPolicy } from '../../input/input.ts'
import type { HostPort } from '../../input/host-ports.ts'
import { type CompiledOffering, meets, type Sale, unmetMinValues } from '../types/instance-rows.ts'
import type { NodeDemand } from '../pods/pod-shape.ts'
import { portsFree, type Template, type TypeRow } from './pool-template.ts'
import { type Amounts, amountsFit, frontierOf, sumFits } from '../pods/resource-space.ts'
import { allowsNewHost } from '../topology/node-filter.ts'
import type { Narrowing } from '../topology/domain-choices.ts'
import { knownOr } from '../memoized.ts'

export interface ClaimClass {
  readonly index: number
  readonly template: Template
  readonly state: StateId
  /** Rows that limits and host ports allow, whatever the requirements. */
  readonly allowed: readonly TypeRow[]
  /** Rows of `allowed` that meet the requirements and are available. */
  readonly rows: readonly TypeRow[]
  /**
   * The rooms that no other row of known price exceeds: a claim accepts a pod that fits one of them. If no price is
   * known, all rows count.
   */
  readonly frontier: readonly TypeRow[]
  /** Whether the price of some row is known. */
  readonly isPriced: boolean
  readonly hasMinValues: boolean
  readonly hasReservations: boolean
}

/** The offerings that a set of requirements allows. */
interface AllowedOfferings {
  /** Indexes of the offerings, cheapest first. */
  readonly indexes: readonly number[]
  readonly capacityTypes: readonly string[]
}

/** Creates classes, and narrows them as pods are added. */
export class ClaimClasses {
  readonly #states: RequirementStates
  readonly #policy: SchedulingPolicy
  readonly #classes = new Map<string, ClaimClass>()
  readonly #allowed = new Map<string, number>()
  readonly #allowedIds = new WeakMap<readonly TypeRow[], number>()
  readonly #frontiers = new WeakMap<readonly TypeRow[], readonly TypeRow[]>()
  readonly #narrowed = new Map<number, ClaimClass | undefined>()
  readonly #sold = new Map<StateId, Map<Sale, AllowedOfferings>>()
  readonly #unpriced = new Map<number, ClaimClass | undefined>()
  /** By class, then by label: the value that every node of the class has. */
  readonly #onlyValues: Map<string, string | undefined>[] = []

  constructor(states: RequirementStates, policy: SchedulingPolicy) {
    this.#states = states
    this.#policy = policy
  }

  /** The class of a new claim. */
  opened(template: Template, affordable: readonly TypeRow[]): ClaimClass {
    return this.#class(template, template.state, affordable, undefined)
  }

  /** The class with a pod that has these requirements; undefined when they conflict. */
  narrowed(from: ClaimClass, demand: NodeDemand): ClaimClass | undefined {
    if (demand.host !== undefined && !allowsNewHost(demand.host)) return undefined
    if (demand.state === anything) return from
    const key = from.index * 0x400_0000 + demand.state
    if (this.#narrowed.has(key)) return this.#narrowed.get(key)
    const wanted = this.#states.get(demand.state)
    let result: ClaimClass | undefined
    if (compatible(this.#states.get(from.state), wanted, this.#policy.wellKnownLabels)) {
      result = this.#class(from.template, this.#states.merge(from.state, demand.state), from.allowed, from)
    }
    this.#narrowed.set(key, result)
    return result
  }

  /** The class with devices of some of its types, which can only be reached from nodes that meet `required`. */
  withDevices(
    from: ClaimClass,
    required: Requirements,
    has: (row: TypeRow) => boolean,
  ): ClaimClass | undefined {
    const placed =
      required.size === 0
        ? from
        : this.narrowed(from, { state: this.#states.idOf(required), host: undefined })
    if (placed === undefined) return undefined
    const allowed = placed.allowed.filter(has)
    return allowed.length === placed.allowed.length ? placed : this.restricted(placed, allowed)
  }

  /** The class in these topology domains; undefined when a label would be unknown. */
  confined(from: ClaimClass, narrowing: Narrowing): ClaimClass | undefined {
    let state = from.state
    const known = this.#states.get(from.state)
    for (const { key, domains } of narrowing) {
      const own = known.get(key)
      // A label that may be absent is not set on the node, so the node is in no domain of it.
      if ((own === undefined || allowsAbsence(own)) && !this.#policy.wellKnownLabels.has(key))
        return undefined
      state = this.#states.narrow(state, key, domains)
      const set = this.#states.get(state).get(key)
      if (set !== undefined && !set.complement && set.values.size === 0) return undefined
    }
    return state === from.state ? from : this.#class(from.template, state, from.allowed, from)
  }

  /** The class without the rows where a daemon pod takes one of these ports. */
  withoutPorts(from: ClaimClass, ports: readonly HostPort[]): ClaimClass {
    if (ports.length === 0 || from.allowed.every((row) => portsFree(row, ports))) return from
    const allowed = from.allowed.filter((row) => portsFree(row, ports))
    return this.#class(from.template, from.state, allowed, undefined)
  }

  /** The requirements of a class with the labels that all its offerings share. */
  located(of: ClaimClass, keys: Iterable<string>): StateId {
    let state = of.state
    for (const key of keys) {
      const value = this.#onlyValue(of, key)
      if (value !== undefined) state = this.#states.narrow(state, key, [value])
    }
    return state
  }

  #onlyValue(of: ClaimClass, key: string): string | undefined {
    const known = (this.#onlyValues[of.index] ??= new Map())
    if (!known.has(key)) known.set(key, this.#findOnlyValue(of, key))
    return known.get(key)
  }

  #findOnlyValue(of: ClaimClass, key: string): string | undefined {
    const wanted = this.#states.get(of.state).get(key)
    let only: string | undefined
    for (const row of of.rows) {
      const ofType = both(wanted, row.type.requirements.get(key))
      for (const offering of this.offerings(of, row)) {
        const set = both(ofType, offering.requirements.get(key))
        const [value] = set === undefined || set.complement || set.values.size > 1 ? [] : set.values
        if (value === undefined || (only !== undefined && value !== only)) return undefined
        only = value
      }
    }
    return only
  }

  /** The class with minValues relaxed to what is possible. */
  lowered(from: ClaimClass, found: ReadonlyMap<string, number>): ClaimClass {
    const requirements = new Map(
      [...this.#states.get(from.state)].map(([key, set]): [string, ValueSet] => {
        const least = found.get(key)
        if (least === undefined) return [key, set]
        const { minValues: _, ...rest } = set
        return [key, least < 1 ? rest : { ...rest, minValues: least }]
      }),
    )
    return this.#class(from.template, this.#states.idOf(requirements), from.allowed, from)
  }

  /** The class with only some of its rows. */
  restricted(from: ClaimClass, allowed: readonly TypeRow[]): ClaimClass {
    return this.#class(from.template, from.state, allowed, from)
  }

  /** The class with only its rows of unknown price; undefined when it has none. */
  unpriced(from: ClaimClass): ClaimClass | undefined {
    if (!from.isPriced) return from.rows.length > 0 ? from : undefined
    if (this.#unpriced.has(from.index)) return this.#unpriced.get(from.index)
    const rows = from.rows.filter((row) => this.bestOffer(from, row).pricePerHour === undefined)
    const unpriced = rows.length > 0 ? this.restricted(from, rows) : undefined
    this.#unpriced.set(from.index, unpriced)
    return unpriced
  }

  /** Keys whose minValues are not met by the rows that hold `amounts`, with the number of values they have. */
  unmetMinValues(of: ClaimClass, amounts: Amounts): ReadonlyMap<string, number> {
    return unmetMinValues(
      rowsHolding(of, amounts).map((row) => row.type),
      this.#states.get(of.state),
    )
  }

  /** The offerings of a row that the class allows, cheapest first. */
  offerings(of: ClaimClass, { group }: TypeRow): readonly CompiledOffering[] {
    return this.#openings(of.state, group.sale).indexes.map(
      (index) => group.offerings[index] as CompiledOffering,
    )
  }

  /** The price of the cheapest offering of a row, and the capacity types of its offerings. */
  bestOffer(
    of: ClaimClass,
    { group }: TypeRow,
  ): { pricePerHour: PricePerHour; capacityTypes: readonly string[] } {
    const { indexes, capacityTypes } = this.#openings(of.state, group.sale)
    const [first = -1] = indexes
    return { pricePerHour: group.offerings[first]?.pricePerHour, capacityTypes }
  }

  #openings(state: StateId, sale: Sale): AllowedOfferings {
    let known = this.#sold.get(state)
    if (known === undefined) {
      known = new Map()
      this.#sold.set(state, known)
    }
    let openings = known.get(sale)
    if (openings === undefined) {
      const wanted = this.#states.get(state)
      const indexes: number[] = []
      const sold = new Set<string>()
      for (const [index, { requirements, capacityType }] of sale.terms.entries()) {
        if (!compatible(wanted, requirements, this.#policy.wellKnownLabels)) continue
        indexes.push(index)
        if (capacityType !== undefined) sold.add(capacityType)
      }
      openings = { indexes, capacityTypes: [...sold] }
      known.set(sale, openings)
    }
    return openings
  }

  #class(
    template: Template,
    state: StateId,
    allowed: readonly TypeRow[],
    from: ClaimClass | undefined,
  ): ClaimClass {
    const key = `${template.index} ${state} ${this.#allowedId(template, allowed)}`
    const known = this.#classes.get(key)
    if (known !== undefined) return known
    const requirements = this.#states.get(state)
    const candidates = from !== undefined && from.allowed === allowed ? from.rows : allowed
    // The rows of a template meet its requirements.
    const rows =
      state === template.state
        ? candidates
        : sameIfAll(
            candidates,
            (row) =>
              meets(row.type, requirements) && this.#openings(state, row.group.sale).indexes.length > 0,
          )
    const isPriced = ({ group }: TypeRow) =>
      group.offerings[this.#openings(state, group.sale).indexes[0] ?? -1]?.pricePerHour !== undefined
    const priced = sameIfAll(rows, isPriced)
    const inFrontier = priced.length > 0 ? priced : rows
    const created: ClaimClass = {
      index: this.#classes.size,
      template,
      state,
      allowed,
      rows,
      // Templates share their rows.
      frontier: knownOr(this.#frontiers, inFrontier, () => frontierOf(inFrontier)),
      isPriced: priced.length > 0,
      hasMinValues: [...requirements.values()].some((set) => set.minValues !== undefined),
      hasReservations:
        this.#policy.reservations !== undefined &&
        rows.some((row) => row.group.offerings.some((offering) => offering.capacityType === 'reserved')),
    }
    this.#classes.set(key, created)
    return created
  }

  #allowedId(template: Template, allowed: readonly TypeRow[]): number {
    if (allowed === template.rows) return -1
    let id = this.#allowedIds.get(allowed)
    if (id === undefined) {
      const key = `${template.index} ${allowed.map((row) => row.index).join(' ')}`
      id = this.#allowed.get(key) ?? this.#allowed.size
      this.#allowed.set(key, id)
      this.#allowedIds.set(allowed, id)
    }
    return id
  }
}

/** The items that pass; the same list if all do. */
function sameIfAll<T>(items: readonly T[], passes: (item: T) => boolean): readonly T[] {
  return items.every(passes) ? items : items.filter(passes)
}

/** The rows that hold `amounts`. */
export function rowsHolding(of: ClaimClass, amounts: Amounts): readonly TypeRow[] {
  return of.rows.filter((row) => amountsFit(amounts, row.room))
}

/** Whether some row has room for the claim's pods and one more. */
export function holdsMore(of: ClaimClass, have: Amounts, more: Amounts): boolean {
  for (const row of of.frontier) if (sumFits(have, more, row.room)) return true
  return false
}

/** Whether some row has room for one pod with these requests. */
export function holdsAlone({ frontier }: ClaimClass, amounts: Amounts): boolean {
  return frontier.some((row) => amountsFit(amounts, row.room))
}
