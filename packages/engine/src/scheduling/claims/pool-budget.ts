/** What limits of NodePools and quotas still allow to launch (scheduling.md 10, quotas.md 1). */
import { type NodePool, ownValue, parseResources, type Resources, setOwn } from '@tenon/api'
import type { QuotaInput } from '../../input/input.ts'
import type { CompiledType } from '../types/instance-rows.ts'
import type { TypeRow } from './pool-template.ts'

/** Amounts that claims use up: the limits of a NodePool, or those of a quota, which several NodePools share. */
export class Ceiling {
  readonly names: readonly string[]
  readonly #left: Record<string, number> = {}
  #stamp = 0
  #changes = 0

  /** @param usage of nodes that exist. */
  constructor(limits: Resources, usage: Resources) {
    this.names = Object.keys(limits)
    for (const name of this.names)
      setOwn(this.#left, name, (ownValue(limits, name) as number) - (ownValue(usage, name) ?? 0))
  }

  /** Equal stamps mean equal amounts. */
  get stamp(): number {
    return this.#stamp
  }

  left(name: string): number {
    return ownValue(this.#left, name) as number
  }

  take(name: string, amount: number): void {
    setOwn(this.#left, name, this.left(name) - amount)
    this.#stamp = ++this.#changes
  }

  /** Returns a function that gives back all that is taken later. */
  saved(): () => void {
    const left = { ...this.#left }
    const stamp = this.#stamp
    return () => {
      for (const name of this.names) setOwn(this.#left, name, ownValue(left, name) as number)
      this.#stamp = stamp
    }
  }
}

/** A quota with the nodes of a template that it counts. */
export interface QuotaShare {
  readonly name: string
  readonly ceiling: Ceiling
  /** By index of the row; a node counts if it may match. */
  readonly counts: readonly boolean[]
}

/** The first limit that keeps every row from being launched. */
export interface Exhausted {
  readonly quota: string
  readonly resource: string
  readonly left: number
}

/** For each of some claims, the rows that it may be launched as. */
type RowsOfClaims = readonly (readonly TypeRow[])[]

/** A ceiling with the nodes that count. */
interface Share {
  readonly ceiling: Ceiling
  readonly counts: (row: TypeRow) => boolean
}

/** The limits of a NodePool, and its quotas. */
export class PoolBudget {
  readonly #rows: readonly TypeRow[]
  readonly #own: Ceiling
  readonly #quotas: readonly QuotaShare[]
  /** Those that limit anything. */
  readonly #shares: readonly Share[]
  #affordable: readonly TypeRow[] | undefined
  #stamps: readonly number[] = []

  constructor(own: Ceiling, rows: readonly TypeRow[], quotas: readonly QuotaShare[] = []) {
    this.#own = own
    this.#rows = rows
    this.#quotas = quotas
    this.#shares = [
      { ceiling: own, counts: () => true },
      ...quotas.map(({ ceiling, counts }) => ({
        ceiling,
        counts: ({ index }: TypeRow) => counts[index] === true,
      })),
    ].filter(({ ceiling }) => ceiling.names.length > 0)
  }

  get nodesExhausted(): boolean {
    return this.#own.names.includes('nodes') && this.#own.left('nodes') === 0
  }

  get isLimited(): boolean {
    return this.#shares.length > 0
  }

  /** Whether a node of the type stays within the limits of the NodePool. */
  allows(type: CompiledType): boolean {
    return this.#own.names.every((name) => costOf(type, name) <= this.#own.left(name))
  }

  /** The rows that stay within limits and quotas. */
  affordable(): readonly TypeRow[] {
    if (this.#shares.length === 0) return this.#rows
    const isKnown = this.#shares.every(({ ceiling }, index) => ceiling.stamp === this.#stamps[index])
    if (this.#affordable === undefined || !isKnown) {
      this.#stamps = this.#shares.map(({ ceiling }) => ceiling.stamp)
      this.#affordable = this.#rows.filter((row) => this.#shares.every((share) => isWithin(share, row)))
    }
    return this.#affordable
  }

  /** The quota without which some of these rows could be launched; undefined if there is none. */
  exhausted(rows: readonly TypeRow[]): Exhausted | undefined {
    const launchable = rows.filter(({ type }) => this.allows(type))
    for (const { ceiling, counts, name } of this.#quotas) {
      const share: Share = { ceiling, counts: ({ index }) => counts[index] === true }
      const refused = launchable.find((row) => !isWithin(share, row))
      if (refused === undefined || launchable.some((row) => isWithin(share, row))) continue
      const resource = ceiling.names.find((each) => costOf(refused.type, each) > ceiling.left(each)) ?? ''
      return { quota: name, resource, left: Math.max(0, ceiling.left(resource)) }
    }
    return undefined
  }

  /** Charges a new claim to limits and quotas, as the largest of its types. */
  charge(rows: readonly TypeRow[]): void {
    for (const share of this.#shares)
      for (const name of share.ceiling.names) share.ceiling.take(name, most([rows], share, name))
  }

  /** Returns a function that undoes all later charges. */
  saved(): () => void {
    const undo = this.#shares.map(({ ceiling }) => ceiling.saved())
    return () => {
      for (const each of undo) each()
    }
  }

  /** Charges claims with the rows `renewed` instead of `former`, if limits and quotas allow it. */
  exchange(renewed: RowsOfClaims, former: RowsOfClaims): boolean {
    const changes = this.#shares.flatMap((share) =>
      share.ceiling.names.map((name) => ({
        ceiling: share.ceiling,
        name,
        more: most(renewed, share, name) - most(former, share, name),
      })),
    )
    if (changes.some(({ ceiling, name, more }) => more > 0 && ceiling.left(name) < more)) return false
    for (const { ceiling, name, more } of changes) ceiling.take(name, more)
    return true
  }
}

/** The limits of a NodePool. @param usage of its nodes. */
export function limitsOf({ spec }: NodePool, usage: Resources): Ceiling {
  return new Ceiling(parseResources(spec.limits), usage)
}

/** What is left of a quota; nothing if more is in use. */
export function quotaCeiling({ limits, usage }: QuotaInput): Ceiling {
  const used = Object.entries(limits).map(
    ([name, limit]) => [name, Math.min(limit, ownValue(usage, name) ?? 0)] as const,
  )
  return new Ceiling(limits, Object.fromEntries(used))
}

function isWithin({ ceiling, counts }: Share, row: TypeRow): boolean {
  return !counts(row) || ceiling.names.every((name) => costOf(row.type, name) <= ceiling.left(name))
}

function most(claims: RowsOfClaims, { counts }: Share, name: string): number {
  return claims.reduce(
    (sum, rows) => sum + Math.max(...rows.map((row) => (counts(row) ? costOf(row.type, name) : 0))),
    0,
  )
}

function costOf({ type }: CompiledType, name: string): number {
  return name === 'nodes' ? 1 : (ownValue(type.capacity, name) ?? 0)
}
