/** From an open claim to the claim to create (scheduling.md 11.2, 11.3). */
import {
  capacityTypes,
  comparePrices,
  labels,
  ownValue,
  type Pod,
  type PricePerHour,
  type Requirement,
  type Resources,
  setOwn,
} from '@tenon/api'
import { allowsAbsence, anyValue, oneOf, type ValueSet } from '../../requirements/requirement.ts'
import { selects } from '../../requirements/node-selection.ts'
import { merged, requirementList, type Requirements } from '../../requirements/requirements.ts'
import type { RequirementStates } from '../../requirements/states.ts'
import type { PoolInput, QuotaInput, SchedulingInput, SchedulingPolicy } from '../../input/input.ts'
import type { NewClaim } from '../../input/result.ts'
import type { ServedResources } from '../devices/served-resources.ts'
import { withoutAttachments } from '../pods/attachments.ts'
import { type ClaimClass, type ClaimClasses, rowsHolding } from './claim-class.ts'
import { type CompiledOffering, type CompiledType, unmetMinValues } from '../types/instance-rows.ts'
import type { OpenClaim } from './open-claims.ts'
import { simulationOnlyLabels, taintsOf, type TemplateQuota, type TypeRow } from './pool-template.ts'
import { addTo, type Amounts, amountsFit, type ResourceSpace, sumFits } from '../pods/resource-space.ts'

/** A claim to create, by indexes. */
export interface FinishedClaim
  extends Omit<NewClaim, 'pods' | 'pool' | 'taints' | 'largest' | 'quotas' | 'otherQuotas'> {
  /** Index of its NodePool in the input. */
  readonly poolIndex: number
  /** Indexes of the quotas that may count its node. */
  readonly quotas: readonly number[]
  readonly pods: readonly number[]
}

const noQuotas: readonly number[] = []

/** Truncating the instance types to the maximum number would break minValues. */
export interface Truncated {
  readonly kind: 'truncated'
  readonly missing: ReadonlyMap<string, number>
}

/** The types of claims whose pods fit the same rows at the same prices. */
interface TypeList {
  readonly types: readonly CompiledType[]
  /** Their capacity types in alphabetical order. */
  readonly capacityTypes: readonly string[]
  /** Cheapest first. */
  readonly names: readonly string[]
  readonly namesInOrder: readonly string[]
  readonly pricePerHour: PricePerHour
  readonly overlaid: NewClaim['overlaid']
  readonly daemons: Float64Array
}

/** The fields that claims of one class share if their pods fit the same types. */
interface Frame {
  readonly labels: Readonly<Record<string, string>>
  readonly requirements: readonly Requirement[]
  readonly typeList: TypeList
}

/** A row with its price and capacity types, computed once per class. */
export interface PricedRow {
  readonly row: TypeRow
  readonly pricePerHour: PricePerHour
  readonly capacityTypes: readonly string[]
}

export class ClaimFinisher {
  readonly #states: RequirementStates
  readonly #classes: ClaimClasses
  readonly #space: ResourceSpace
  readonly #served: ServedResources
  readonly #policy: SchedulingPolicy
  readonly #priced: (readonly PricedRow[] | undefined)[] = []
  /** Equal lists are one object. */
  readonly #lists: (readonly PricedRow[])[] = []
  /** By list, and by the rows that fit. */
  readonly #typeLists = new Map<readonly PricedRow[], Map<string, TypeList>>()
  readonly #frames = new Map<string, Frame | Truncated>()
  /** By class and reservations. */
  readonly #special = new Map<string, readonly PricedRow[]>()
  /** 1 for each row, by its index in the template, that fits the current claim. */
  #held = new Uint8Array(0)

  constructor(
    states: RequirementStates,
    classes: ClaimClasses,
    space: ResourceSpace,
    served: ServedResources,
    policy: SchedulingPolicy,
  ) {
    this.#states = states
    this.#classes = classes
    this.#space = space
    this.#served = served
    this.#policy = policy
  }

  /** The rows of a class, cheapest first, ties by name; rows of unknown price last. */
  priced(of: ClaimClass): readonly PricedRow[] {
    return (this.#priced[of.index] ??= this.#interned(
      of.rows.map((row) => ({ row, ...this.#classes.bestOffer(of, row) })).toSorted(cheapestFirst),
    ))
  }

  #interned(list: readonly PricedRow[]): readonly PricedRow[] {
    const known = this.#lists.find((each) => isSameList(each, list))
    if (known === undefined) this.#lists.push(list)
    return known ?? list
  }

  /** Prices of the rows for a claim with reservations; other rows have no price. */
  #pricedReserved(of: ClaimClass, reservations: ReadonlySet<string>): readonly PricedRow[] {
    const label = this.#policy.reservations?.label ?? ''
    const isHeld = ({ capacityType, requirements }: CompiledOffering) => {
      const [id = ''] = requirements.get(label)?.values ?? []
      return capacityType === capacityTypes.reserved && reservations.has(id)
    }
    return of.rows
      .map((row) => {
        const held = this.#classes.offerings(of, row).find(isHeld)
        return {
          row,
          pricePerHour: held?.pricePerHour,
          capacityTypes: held === undefined ? [] : [capacityTypes.reserved],
        }
      })
      .toSorted(cheapestFirst)
  }

  /** The price of the cheapest type that fits the claim. */
  priceOf(claim: OpenClaim): PricePerHour {
    const { amounts } = claim
    const special = this.#specialRows(claim)
    if (special !== undefined) return special.find(({ row }) => amountsFit(amounts, row.room))?.pricePerHour
    const priced = this.priced(claim.class)
    while (claim.cheapest < priced.length && !amountsFit(amounts, roomOf(priced, claim.cheapest)))
      claim.cheapest++
    return priced[claim.cheapest]?.pricePerHour
  }

  /** The room of the cheapest type that fits the claim. */
  cheapestRoom(claim: OpenClaim): Amounts | undefined {
    const { amounts } = claim
    const priced = this.#specialRows(claim) ?? this.priced(claim.class)
    return priced.find(({ row }) => amountsFit(amounts, row.room))?.row.room
  }

  /** How much the price of the claim rises with one more pod; pods with equal requests share one `more` object. */
  rise(claim: OpenClaim, more: Amounts): PricePerHour {
    if (claim.rise?.amounts !== more) claim.rise = { amounts: more, pricePerHour: this.#riseOf(claim, more) }
    return claim.rise.pricePerHour
  }

  /** Undefined when no type fits, or the price before or after is unknown. */
  #riseOf(claim: OpenClaim, more: Amounts): PricePerHour {
    const before = this.priceOf(claim)
    const special = this.#specialRows(claim)
    const priced = special ?? this.priced(claim.class)
    let row = special === undefined ? claim.cheapest : 0
    while (row < priced.length && !sumFits(claim.amounts, more, roomOf(priced, row))) row++
    const after = priced[row]?.pricePerHour
    return before === undefined || after === undefined ? undefined : after - before
  }

  /**
   * The rows of a class with reservations: at the prices of reserved capacity if the claim holds reservations, else at
   * those of all other capacity. Undefined for other classes.
   */
  #specialRows({
    class: of,
    reservations,
  }: Pick<OpenClaim, 'class' | 'reservations'>): readonly PricedRow[] | undefined {
    if (reservations.size === 0 && !of.hasReservations) return undefined
    const key = `${of.index} ${[...reservations].toSorted().join(',')}`
    let rows = this.#special.get(key)
    if (rows === undefined) {
      rows = reservations.size > 0 ? this.#pricedReserved(of, reservations) : this.#pricedUnreserved(of)
      this.#special.set(key, rows)
    }
    return rows
  }

  #pricedUnreserved(of: ClaimClass): readonly PricedRow[] {
    return of.rows
      .map((row) => ({
        ...this.#classes.bestOffer(of, row),
        row,
        pricePerHour: this.#classes
          .offerings(of, row)
          .find(({ capacityType }) => capacityType !== capacityTypes.reserved)?.pricePerHour,
      }))
      .toSorted(cheapestFirst)
  }

  /** Whether one more pod still fits on all types that fit the claim now. */
  keepsTypes(claim: OpenClaim, more: Amounts): boolean {
    return claim.class.rows.every(
      ({ room }) => !amountsFit(claim.amounts, room) || sumFits(claim.amounts, more, room),
    )
  }

  /** The types that fit the claim. */
  holding(claim: OpenClaim): readonly TypeRow[] {
    return rowsHolding(claim.class, claim.amounts)
  }

  finish(claim: OpenClaim, poolIndex: number): FinishedClaim | Truncated {
    const frame = this.#frameOf(claim)
    if ('kind' in frame) return frame
    const { names, pricePerHour, overlaid, daemons } = frame.typeList
    const requests = claim.amounts.slice()
    addTo(requests, daemons)
    return {
      labels: frame.labels,
      requirements: frame.requirements,
      instanceTypes: names,
      pricePerHour,
      overlaid,
      nodePool: claim.class.template.name,
      poolIndex,
      requests: this.#served.withoutServed(
        withoutAttachments(this.#space.resources(requests)),
        this.holding(claim)[0]?.group.allocatable ?? {},
      ),
      minValuesRelaxed: claim.minValuesRelaxed,
      quotas: this.#quotasOf(claim),
      reservationIds: [...claim.reservations].toSorted(),
      deviceDrivers: [],
      pods: claim.pods,
    }
  }

  #quotasOf(claim: OpenClaim): readonly number[] {
    const { quotas } = claim.class.template
    if (quotas.length === 0) return noQuotas
    const own = this.#states.get(claim.state)
    const rows = this.holding(claim)
    const counts = ({ counts: counted, selection }: TemplateQuota) =>
      rows.some(
        ({ index, type }) =>
          counted[index] === true &&
          selects(selection, merged(own, type.requirements), this.#policy.wellKnownLabels) !== 'never',
      )
    return quotas.filter(counts).map(({ quota }) => quota)
  }

  #frameOf({ class: of, reservations, amounts }: OpenClaim): Frame | Truncated {
    const rows = this.#mark(of, amounts)
    const key = `${of.index} ${[...reservations].toSorted().join(',')} ${rows}`
    let frame = this.#frames.get(key)
    if (frame === undefined) {
      frame = this.#makeFrame(of, reservations, rows)
      this.#frames.set(key, frame)
    }
    return frame
  }

  /**
   * Marks the rows that hold the amounts.
   * @returns a key for them.
   */
  #mark({ template, rows }: ClaimClass, amounts: Amounts): string {
    if (this.#held.length < template.rows.length) this.#held = new Uint8Array(template.rows.length)
    const held = this.#held
    let key = ''
    let from = -1
    let last = -2
    for (const { index, room } of rows) {
      const isHeld = amountsFit(amounts, room)
      held[index] = isHeld ? 1 : 0
      if (!isHeld) continue
      // Types with much room are often neighbours, so ranges keep the key short.
      if (index !== last + 1) {
        if (from >= 0) key += `${from}-${last} `
        from = index
      }
      last = index
    }
    return from >= 0 ? `${key}${from}-${last}` : key
  }

  /** @param rows the key of the marked rows. */
  #makeFrame(of: ClaimClass, reservations: ReadonlySet<string>, rows: string): Frame | Truncated {
    const special = this.#specialRows({ class: of, reservations })
    const typeList =
      special === undefined ? this.#typeListOf(this.priced(of), rows) : this.#makeTypeList(special)
    const missing = unmetMinValues(typeList.types, this.#states.get(of.state))
    if (this.#policy.minValues === 'Strict' && missing.size > 0) return { kind: 'truncated', missing }
    const final = this.#finalRequirements(of, typeList, reservations)
    return {
      labels: { ...customLabels(final, this.#policy.wellKnownLabels), ...of.template.labels },
      requirements: withInstanceTypes(final, typeList.namesInOrder),
      typeList,
    }
  }

  #typeListOf(list: readonly PricedRow[], rows: string): TypeList {
    const known = this.#typeLists.get(list) ?? new Map<string, TypeList>()
    this.#typeLists.set(list, known)
    let typeList = known.get(rows)
    if (typeList === undefined) {
      typeList = this.#makeTypeList(list)
      known.set(rows, typeList)
    }
    return typeList
  }

  /** The marked rows of the list, truncated to the maximum number of types. */
  #makeTypeList(list: readonly PricedRow[]): TypeList {
    const holders = list.filter(({ row }) => this.#held[row.index] === 1)
    const names = namesOf(holders).slice(0, this.#policy.maxInstanceTypes)
    const isCut = names.length === this.#policy.maxInstanceTypes && names.length < holders.length
    const listed = isCut ? new Set(names) : undefined
    const kept = listed === undefined ? holders : holders.filter(({ row }) => listed.has(row.type.type.name))
    const types = kept.map(({ row }) => row.type)
    return {
      types,
      capacityTypes: capacityTypesOf(kept),
      names,
      namesInOrder: names.toSorted(),
      pricePerHour: holders[0]?.pricePerHour,
      overlaid: {
        price: types.some(({ type }) => type.overlaid?.price === true),
        capacity: types.some(({ type }) => type.overlaid?.capacity === true),
      },
      daemons: commonDaemons(kept, this.#space),
    }
  }

  /** The requirements of the class for the claim, without instance types. */
  #finalRequirements(
    of: ClaimClass,
    { capacityTypes: offered }: TypeList,
    reservations: ReadonlySet<string>,
  ): Requirements {
    const final = new Map<string, ValueSet>()
    for (const set of this.#states.get(of.state).values())
      if (!simulationOnlyLabels.includes(set.key) && set.key !== labels.hostname) final.set(set.key, set)
    const reservationLabel = this.#policy.reservations?.label
    if (reservations.size > 0 && reservationLabel !== undefined) {
      final.set(labels.capacityType, oneOf(labels.capacityType, capacityTypes.reserved))
      final.set(reservationLabel, oneOf(reservationLabel, ...reservations))
      return final
    }
    if (offered.length > 0) {
      const before = final.get(labels.capacityType)
      const narrowed = oneOf(labels.capacityType, ...offered)
      final.set(
        labels.capacityType,
        before?.minValues === undefined ? narrowed : { ...narrowed, minValues: before.minValues },
      )
    }
    return final
  }
}

/** Ties by name. */
function cheapestFirst(a: PricedRow, b: PricedRow): number {
  return (
    comparePrices(a.pricePerHour, b.pricePerHour) || (a.row.type.type.name < b.row.type.type.name ? -1 : 1)
  )
}

/** Whether the same rows are sold at the same prices in the same ways. */
function isSameList(one: readonly PricedRow[], other: readonly PricedRow[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ row, pricePerHour, capacityTypes: sold }, i) => {
      const twin = other[i] as PricedRow
      return twin.row === row && twin.pricePerHour === pricePerHour && isSameNames(twin.capacityTypes, sold)
    })
  )
}

const isSameNames = (one: readonly string[], other: readonly string[]): boolean =>
  one === other || (one.length === other.length && one.every((name, i) => name === other[i]))

function capacityTypesOf(rows: readonly PricedRow[]): readonly string[] {
  const offered = new Set<string>()
  let last: readonly string[] | undefined
  for (const { capacityTypes: sold } of rows) {
    // Neighbours often have equal offerings, which are one object.
    if (sold === last) continue
    last = sold
    for (const capacityType of sold) offered.add(capacityType)
  }
  return [...offered].toSorted()
}

const roomOf = (priced: readonly PricedRow[], row: number): Amounts => (priced[row] as PricedRow).row.room

/** Names of the types, without duplicates. */
function namesOf(rows: readonly PricedRow[]): readonly string[] {
  const names = rows.map(({ row }) => row.type.type.name)
  const hasTypesTwice = rows.some(({ row }) => row.type.groups.length > 1)
  return hasTypesTwice ? [...new Set(names)] : names
}

/** The API form; the instance types replace what the requirements say about them. */
function withInstanceTypes(requirements: Requirements, names: readonly string[]): readonly Requirement[] {
  const least = requirements.get(labels.instanceType)?.minValues
  const types: Requirement = {
    key: labels.instanceType,
    operator: 'In',
    values: names,
    ...(least !== undefined && { minValues: least }),
  }
  const others = new Map(requirements)
  others.delete(labels.instanceType)
  return [...requirementList(others), types].toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
}

/** Labels for custom keys, to which no provider gives a value (scheduling.md 11.3). */
export function customLabels(
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [key, set] of requirements) {
    if (wellKnown.has(key) || key === labels.hostname || allowsAbsence(set)) continue
    const value = anyValue(set)
    if (value !== undefined) setOwn(result, key, value)
  }
  return result
}

/** The requests of daemon pods that run on all of these types; nothing if some type runs none. */
function commonDaemons(rows: readonly PricedRow[], space: ResourceSpace): Float64Array {
  const [first] = rows
  if (first === undefined || rows.some(({ row }) => row.daemons.isEmpty)) return new Float64Array(space.size)
  const least = first.row.daemons.amounts.slice()
  for (const { row } of rows)
    for (let i = 0; i < least.length; i++)
      least[i] = Math.min(least[i] as number, row.daemons.amounts[i] as number)
  return least
}

/** The claim with objects instead of indexes; undefined if the input does not contain the pool. */
export function newClaim(
  { pools, pods, origins, quotas = [] }: Pick<SchedulingInput, 'pools' | 'pods' | 'origins' | 'quotas'>,
  { poolIndex, pods: indexes, quotas: quotaIndexes, ...claim }: FinishedClaim,
): NewClaim | undefined {
  const pool = pools[poolIndex]
  if (pool === undefined) return undefined
  const all = indexes.map((index) => pods[index]).filter((pod) => pod !== undefined)
  const roomPods = all.filter((pod) => isRoom(pod, origins))
  const limiting = quotaIndexes.flatMap((index) => quotas[index] ?? [])
  const others = quotas.filter((quota) => !limiting.includes(quota))
  return {
    ...claim,
    pool: pool.nodePool,
    taints: taintsOf(pool),
    largest: largestOf(pool, claim.instanceTypes, limiting),
    ...(limiting.length > 0 && { quotas: limiting.map(({ name }) => name).toSorted() }),
    ...(others.length > 0 && { otherQuotas: others.map(({ name }) => name).toSorted() }),
    pods: roomPods.length === 0 ? all : all.filter((pod) => !isRoom(pod, origins)),
    ...(roomPods.length > 0 && { roomPods }),
  }
}

/** Whether the pod is a placeholder (buffer, request, check). */
export function isRoom({ metadata }: Pod, origins: SchedulingInput['origins']): boolean {
  const origin = origins?.get(metadata?.uid ?? '')
  return origin === 'buffer' || origin === 'request' || origin === 'check'
}

/** Capacities by type name, cached by list of types, as the same list serves thousands of claims. */
const capacities = new WeakMap<PoolInput['instanceTypes'], ReadonlyMap<string, Resources>>()

function capacitiesOf(types: PoolInput['instanceTypes']): ReadonlyMap<string, Resources> {
  const known = capacities.get(types) ?? new Map(types.map(({ name, capacity }) => [name, capacity]))
  capacities.set(types, known)
  return known
}

function largestOf(
  { nodePool, instanceTypes }: PoolInput,
  names: readonly string[],
  quotas: readonly QuotaInput[],
): Resources {
  const limited = [nodePool.spec.limits ?? {}, ...quotas.map(({ limits }) => limits)]
  const limits = [...new Set(limited.flatMap((each) => Object.keys(each)))]
  if (limits.length === 0) return {}
  const capacityOf = capacitiesOf(instanceTypes)
  const most = (limit: string) =>
    Math.max(0, ...names.map((name) => ownValue(capacityOf.get(name), limit) ?? 0))
  return Object.fromEntries(limits.map((limit) => [limit, limit === 'nodes' ? 1 : most(limit)]))
}
