/** The label values that nodes of the pools could have (scheduling.md 9.2, reports.md 2). */
import { labels } from '@tenon/api'
import { allowsAbsence, both, operatorOf, type ValueSet } from '../../requirements/requirement.ts'
import { compatible, merged, overlaps, type Requirements } from '../../requirements/requirements.ts'
import type { CompiledType } from '../types/instance-rows.ts'
import type { CompiledPool } from '../claims/pool-template.ts'
import { type Amounts, amountsFit, frontierOf, type Room } from '../pods/resource-space.ts'
import { allowsNewHost, filterIdentity, type NodeFilter, untoleratedBy } from './node-filter.ts'

const unbounded: readonly Requirements[] = [new Map()]

/** Types of a pool with equal requirements on the labels that some filter reads. */
interface Profile {
  readonly says: Requirements
  readonly pool: CompiledPool
  readonly types: CompiledType[]
  /** The rooms of the types, without those that another room contains; computed on first use. */
  rooms: readonly Room[] | undefined
}

/** A pool with the profiles of its types. */
interface PoolProfiles {
  readonly pool: CompiledPool
  /** Types that meet the pool's requirements; computed on first use. */
  types: readonly CompiledType[] | undefined
  /** Profiles by the keys that are read. */
  readonly byKeys: Map<string, readonly Profile[]>
}

/** The rooms of a pool's nodes, by type: one entry per way in which it is offered, available or not. */
export type RoomsOf = (pool: CompiledPool) => (type: CompiledType) => readonly Room[]

/** Domains of nodes that pools could launch, whether or not offerings are available now. */
export class DomainUniverse {
  readonly #pools: readonly PoolProfiles[]
  readonly #wellKnown: ReadonlySet<string>
  /** Keys on which some type or offering has a requirement. */
  readonly #typeKeys = new Set<string>()
  /** Requirements of a type on certain keys, one entry per way in which it is offered. */
  readonly #profiles = new Map<string, Map<CompiledType, ReadonlyMap<string, Requirements>>>()
  /** By key and filter: for each domain, the profiles that can have it. */
  readonly #known = new Map<string, ReadonlyMap<string, ReadonlySet<Profile>>>()
  readonly #roomsOf: RoomsOf
  readonly #roomsByPool = new Map<CompiledPool, ReturnType<RoomsOf>>()

  /**
   * @param pools every pool, even if its limits are used up; a pool without instance types has no domains.
   * @param wellKnown keys that a claim may get although its pool does not define them.
   * @param roomsOf only called where room decides.
   */
  constructor(pools: readonly CompiledPool[], wellKnown: ReadonlySet<string>, roomsOf: RoomsOf) {
    this.#wellKnown = wellKnown
    this.#roomsOf = roomsOf
    this.#pools = pools.map((pool) => ({ pool, types: undefined, byKeys: new Map() }))
    for (const types of new Set(pools.map((pool) => pool.types)))
      for (const { requirements, sold } of types)
        for (const terms of [requirements, ...sold]) for (const key of terms.keys()) this.#typeKeys.add(key)
  }

  /** Domains of a key that a node which the filter admits could have. */
  domains(key: string, filter: NodeFilter): Iterable<string> {
    return this.#profilesByDomain(key, filter).keys()
  }

  /** Whether a node that the filter admits could have this domain. */
  has(key: string, filter: NodeFilter, domain: string): boolean {
    return this.#profilesByDomain(key, filter).has(domain)
  }

  /** Whether a node that the filter admits could have this domain and room for the amounts. */
  holds(key: string, filter: NodeFilter, domain: string, amounts: Amounts): boolean {
    for (const profile of this.#profilesByDomain(key, filter).get(domain) ?? [])
      if (this.#roomsIn(profile).some(({ room }) => amountsFit(amounts, room))) return true
    return false
  }

  #profilesByDomain(key: string, filter: NodeFilter): ReadonlyMap<string, ReadonlySet<Profile>> {
    const identity = `${key}\n${filterIdentity(filter)}`
    let known = this.#known.get(identity)
    if (known === undefined) {
      known = this.#find(key, filter)
      this.#known.set(identity, known)
    }
    return known
  }

  #find(key: string, { alternatives, tolerations }: NodeFilter): ReadonlyMap<string, ReadonlySet<Profile>> {
    const found = new Map<string, Set<Profile>>()
    for (const profiles of this.#pools) {
      const { requirements, taints } = profiles.pool
      if (untoleratedBy(tolerations, taints).length > 0) continue
      for (const alternative of alternatives.length === 0 ? unbounded : alternatives) {
        const wanted = ofNewNode(alternative)
        if (wanted === undefined || !compatible(requirements, wanted, this.#wellKnown)) continue
        const bounds = merged(requirements, wanted)
        const own = bounds.get(key)
        for (const profile of this.#profilesOf(profiles, [key, ...wanted.keys()])) {
          if (!overlaps(profile.says, bounds)) continue
          for (const value of listed(own, profile.says.get(key)))
            found.set(value, (found.get(value) ?? new Set()).add(profile))
        }
      }
    }
    return found
  }

  #roomsIn(profile: Profile): readonly Room[] {
    if (profile.rooms !== undefined) return profile.rooms
    const { pool, types } = profile
    let roomsOf = this.#roomsByPool.get(pool)
    if (roomsOf === undefined) {
      roomsOf = this.#roomsOf(pool)
      this.#roomsByPool.set(pool, roomsOf)
    }
    profile.rooms = frontierOf(types.flatMap(roomsOf))
    return profile.rooms
  }

  #profilesOf(profilesOfPool: PoolProfiles, all: readonly string[]): readonly Profile[] {
    const { pool, byKeys } = profilesOfPool
    // Keys without requirements of types are left to the pool.
    const keys = [...new Set(all)].filter((key) => this.#typeKeys.has(key)).toSorted()
    const name = keys.join('\n')
    let profiles = byKeys.get(name)
    if (profiles === undefined) {
      const distinct = new Map<string, Profile>()
      profilesOfPool.types ??= pool.types.filter(({ requirements }) =>
        overlaps(requirements, pool.requirements),
      )
      for (const type of profilesOfPool.types)
        for (const [identity, says] of this.#profilesOfType(type, name, keys)) {
          const known = distinct.get(identity)
          if (known !== undefined) known.types.push(type)
          else if (overlaps(says, pool.requirements))
            distinct.set(identity, { says, pool, types: [type], rooms: undefined })
        }
      profiles = [...distinct.values()]
      byKeys.set(name, profiles)
    }
    return profiles
  }

  /** Pools often share their types, so each type is read once. */
  #profilesOfType(
    type: CompiledType,
    name: string,
    keys: readonly string[],
  ): ReadonlyMap<string, Requirements> {
    let byType = this.#profiles.get(name)
    if (byType === undefined) {
      byType = new Map()
      this.#profiles.set(name, byType)
    }
    let profiles = byType.get(type)
    if (profiles === undefined) {
      profiles = profilesOf(type, keys)
      byType.set(type, profiles)
    }
    return profiles
  }
}

/** Requirements on a new node; undefined if they name existing hosts. */
function ofNewNode(wanted: Requirements): Requirements | undefined {
  const host = wanted.get(labels.hostname)
  if (host === undefined) return wanted
  if (!allowsNewHost(host)) return undefined
  return new Map([...wanted].filter(([key]) => key !== labels.hostname))
}

/**
 * Requirements of a type on the keys, one entry per way in which it is offered; one entry if it has no offering.
 */
function profilesOf(type: CompiledType, keys: readonly string[]): ReadonlyMap<string, Requirements> {
  const profiles = new Map<string, Requirements>()
  for (const terms of type.sold.length === 0 ? unbounded : type.sold) {
    const ofType = exceptAbsent(type.requirements, terms)
    if (!overlaps(ofType, terms)) continue
    const profile = new Map<string, ValueSet>()
    let identity = ''
    for (const key of keys) {
      const set = both(ofType.get(key), terms.get(key))
      if (set === undefined) continue
      profile.set(key, set)
      identity += `${key} ${set.complement} ${[...set.values].join(' ')} ${set.gte} ${set.lte}\n`
    }
    profiles.set(identity, profile)
  }
  return profiles
}

/**
 * Requirements of a type without the labels that an offering excludes: a type lists the values of all its offerings,
 * such as reservation ids.
 */
function exceptAbsent(type: Requirements, terms: Requirements): Requirements {
  const isAbsent = (key: string) => {
    const set = terms.get(key)
    return set !== undefined && operatorOf(set) === 'DoesNotExist' && allowsAbsence(set)
  }
  return [...terms.keys()].some(isAbsent) ? new Map([...type].filter(([key]) => !isAbsent(key))) : type
}

/** Values that both allow; none if neither lists values. */
function listed(a: ValueSet | undefined, b: ValueSet | undefined): Iterable<string> {
  const set = both(a, b)
  return set === undefined || set.complement ? [] : set.values
}
