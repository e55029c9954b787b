/** From an open claim to the claim to create (scheduling.md 11.2, 11.3). */
import { capacityTypes, labels, type Requirement } from '@tenon/api'
import { anyValue, oneOf, operatorOf, type ValueSet } from '../requirements/requirement.ts'
import { requirementList, type Requirements } from '../requirements/requirements.ts'
import type { RequirementStates } from '../requirements/states.ts'
import type { SchedulingPolicy } from '../snapshot/input.ts'
import type { NewClaim } from '../snapshot/result.ts'
import { type ClaimClass, type ClaimClasses, rowsHolding } from './claim-class.ts'
import { type CompiledOffering, unmetMinValues } from './instance-rows.ts'
import type { OpenClaim } from './open-claims.ts'
import { simulationOnlyLabels, type TypeRow } from './pool-template.ts'
import { addTo, type Amounts, amountsFit, type ResourceSpace, sumFits } from './resource-space.ts'

/** A claim to create, by indexes. */
export interface FinishedClaim extends Omit<NewClaim, 'pods' | 'pool'> {
  /** Index of its NodePool in the input. */
  readonly poolIndex: number
  readonly pods: readonly number[]
}

/** The longest list allowed does not keep some minValues. */
export interface Truncated {
  readonly kind: 'truncated'
  readonly missing: ReadonlyMap<string, number>
}

/** What claims have in common that hold the same types of a class. */
interface Frame {
  readonly labels: Readonly<Record<string, string>>
  readonly requirements: readonly Requirement[]
  readonly instanceTypes: readonly string[]
  readonly pricePerHour: number
  readonly overlaid: NewClaim['overlaid']
  readonly daemons: Float64Array
}

/** A row with what it costs and how it is sold; the rows of a class are priced once. */
export interface PricedRow {
  readonly row: TypeRow
  readonly pricePerHour: number
  readonly capacityTypes: readonly string[]
}

export class ClaimFinisher {
  readonly #states: RequirementStates
  readonly #classes: ClaimClasses
  readonly #space: ResourceSpace
  readonly #policy: SchedulingPolicy
  readonly #priced = new Map<number, readonly PricedRow[]>()
  /** Rows of a class in alphabetical order. */
  readonly #byName = new Map<number, readonly PricedRow[]>()
  readonly #frames = new Map<string, Frame | Truncated>()

  constructor(
    states: RequirementStates,
    classes: ClaimClasses,
    space: ResourceSpace,
    policy: SchedulingPolicy,
  ) {
    this.#states = states
    this.#classes = classes
    this.#space = space
    this.#policy = policy
  }

  /** The rows of a class, cheapest first, ties by name. */
  priced(of: ClaimClass): readonly PricedRow[] {
    let priced = this.#priced.get(of.index)
    if (priced === undefined) {
      priced = of.rows.map((row) => ({ row, ...this.#classes.bestOffer(of, row) })).toSorted(cheapestFirst)
      this.#priced.set(of.index, priced)
    }
    return priced
  }

  /** Only what a claim with reservations may launch has a price. */
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
          pricePerHour: held?.pricePerHour ?? Number.POSITIVE_INFINITY,
          capacityTypes: held === undefined ? [] : [capacityTypes.reserved],
        }
      })
      .toSorted(cheapestFirst)
  }

  /** What the claim costs as the cheapest type that holds what it has; Infinity when none does. */
  priceOf(claim: OpenClaim): number {
    const priced = this.priced(claim.class)
    claim.cheapest = firstHolding(priced, claim.cheapest, (room) => amountsFit(claim.amounts, room))
    return priced[claim.cheapest]?.pricePerHour ?? Number.POSITIVE_INFINITY
  }

  /** By how much the claim's price rises with one more pod. */
  rise(claim: OpenClaim, more: Amounts): number {
    const before = this.priceOf(claim)
    const priced = this.priced(claim.class)
    const after = firstHolding(priced, claim.cheapest, (room) => sumFits(claim.amounts, more, room))
    return (priced[after]?.pricePerHour ?? Number.POSITIVE_INFINITY) - before
  }

  /** The types that hold what the claim has. */
  holding(claim: OpenClaim): readonly TypeRow[] {
    return rowsHolding(claim.class, claim.amounts)
  }

  finish(claim: OpenClaim, poolIndex: number): FinishedClaim | Truncated {
    const frame = this.#frameOf(claim)
    if ('kind' in frame) return frame
    const { daemons, ...rest } = frame
    const requests = claim.amounts.slice()
    addTo(requests, daemons)
    return {
      ...rest,
      nodePool: claim.class.template.name,
      poolIndex,
      requests: this.#space.resources(requests),
      minValuesRelaxed: claim.minValuesRelaxed,
      reservationIds: [...claim.reservations].toSorted(),
      pods: claim.pods,
    }
  }

  #frameOf(claim: OpenClaim): Frame | Truncated {
    const holding = this.holding(claim)
    const key = `${claim.class.index} ${[...claim.reservations].toSorted().join(',')} ${rowKey(holding)}`
    let frame = this.#frames.get(key)
    if (frame === undefined) {
      frame = this.#makeFrame(claim, new Set(holding))
      this.#frames.set(key, frame)
    }
    return frame
  }

  #makeFrame({ class: of, reservations }: OpenClaim, holding: ReadonlySet<TypeRow>): Frame | Truncated {
    const all = reservations.size === 0 ? this.priced(of) : this.#pricedReserved(of, reservations)
    const holders = all.filter(({ row }) => holding.has(row))
    const names = namesOf(holders).slice(0, this.#policy.maxInstanceTypes)
    const isCut = names.length === this.#policy.maxInstanceTypes && names.length < holders.length
    const listed = isCut ? new Set(names) : undefined
    const kept = listed === undefined ? holders : holders.filter(({ row }) => listed.has(row.type.type.name))
    const requirements = this.#states.get(of.state)
    const types = kept.map(({ row }) => row.type)
    const missing = unmetMinValues(types, requirements)
    if (this.#policy.minValues === 'Strict' && missing.size > 0) return { kind: 'truncated', missing }
    const final = this.#finalRequirements(of, kept, reservations)
    return {
      labels: { ...customLabels(final, this.#policy.wellKnownLabels), ...of.template.labels },
      requirements: withInstanceTypes(final, isCut ? names.toSorted() : this.#namesInOrder(of, holding)),
      instanceTypes: names,
      pricePerHour: holders[0]?.pricePerHour ?? Number.POSITIVE_INFINITY,
      overlaid: {
        price: types.some(({ type }) => type.overlaid?.price === true),
        capacity: types.some(({ type }) => type.overlaid?.capacity === true),
      },
      daemons: commonDaemons(
        kept.map(({ row }) => row),
        this.#space,
      ),
    }
  }

  /** Names of the types that are held, in alphabetical order; the rows of a class are sorted once. */
  #namesInOrder(of: ClaimClass, holding: ReadonlySet<TypeRow>): readonly string[] {
    let byName = this.#byName.get(of.index)
    if (byName === undefined) {
      byName = this.priced(of).toSorted((a, b) => (a.row.type.type.name < b.row.type.type.name ? -1 : 1))
      this.#byName.set(of.index, byName)
    }
    return namesOf(byName.filter(({ row }) => holding.has(row)))
  }

  /** The class's requirements as the claim states them, its instance types apart. */
  #finalRequirements(
    of: ClaimClass,
    rows: readonly PricedRow[],
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
    const offered = new Set<string>()
    let last: readonly string[] | undefined
    for (const { capacityTypes: sold } of rows) {
      // Neighbours are mostly sold alike, in one and the same list.
      if (sold === last) continue
      last = sold
      for (const capacityType of sold) offered.add(capacityType)
    }
    if (offered.size > 0) {
      const before = final.get(labels.capacityType)
      const narrowed = oneOf(labels.capacityType, ...[...offered].toSorted())
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
  return a.pricePerHour - b.pricePerHour || (a.row.type.type.name < b.row.type.type.name ? -1 : 1)
}

/** From `start` on, the first row with enough room; the number of rows when there is none. */
function firstHolding(
  priced: readonly PricedRow[],
  start: number,
  holds: (room: Amounts) => boolean,
): number {
  let index = start
  while (index < priced.length && !holds((priced[index] as PricedRow).row.room)) index++
  return index
}

/** Names of the rows' types, each once. */
function namesOf(rows: readonly PricedRow[]): readonly string[] {
  const names = rows.map(({ row }) => row.type.type.name)
  const hasTypesTwice = rows.some(({ row }) => row.type.groups.length > 1)
  return hasTypesTwice ? [...new Set(names)] : names
}

/** The API form, with the instance types in the place of what is said of them. */
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

function rowKey(rows: readonly TypeRow[]): string {
  let key = ''
  let from = -1
  let last = -2
  // Types that hold much are often neighbours, so stretches keep the key short.
  for (const { index } of rows) {
    if (index === last + 1) last = index
    else {
      if (from >= 0) key += `${from}-${last} `
      from = index
      last = index
    }
  }
  return from >= 0 ? `${key}${from}-${last}` : key
}

/** Concrete labels for keys that no provider fills in (scheduling.md 11.3). */
export function customLabels(
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [key, set] of requirements) {
    if (wellKnown.has(key) || key === labels.hostname || operatorOf(set) === 'DoesNotExist') continue
    const value = anyValue(set)
    if (value !== undefined) result[key] = value
  }
  return result
}

/** What the daemons take on every one of these types; nothing when some type runs none. */
function commonDaemons(rows: readonly TypeRow[], space: ResourceSpace): Float64Array {
  const [first, ...rest] = rows
  if (first === undefined || rows.some((row) => row.daemons.isEmpty)) return new Float64Array(space.size)
  const least = first.daemons.amounts.slice()
  for (const { daemons } of rest)
    for (let i = 0; i < least.length; i++)
      least[i] = Math.min(least[i] as number, daemons.amounts[i] as number)
  return least
}
