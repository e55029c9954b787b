/**
 * What users may set on NodePools in annotations, beside canary rollouts and pauses. One that cannot be read counts as
 * absent; events on the NodePool, `tenon explain` and `tenon validate` name it.
 */
import { mostPricePerHour, type NodePool, ownValue, parseDuration, timeZoneOf } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import type { PoolProblem } from './pool-problems.ts'

interface PoolAnnotation<T> {
  readonly key: string
  /** @returns undefined if the text, without space around it, cannot be read. */
  readonly read: (text: string) => T | undefined
  /** What to write instead. */
  readonly fix: string
}

/** A new annotation is one more member. */
const known = {
  /** How much more a node may cost in the zone with the fewest nodes, as a fraction of its price. */
  zoneBalance: {
    key: 'tenon.sh/zone-balance',
    read: fractionOf,
    fix: 'use a percentage from "0%" to "100%", such as "2%"',
  },
  /** What each node costs an hour beside its instance, in the currency of the provider. */
  pricePerNode: {
    key: 'tenon.sh/price-per-node',
    read: priceOf,
    fix: 'use an amount per hour, such as "0.01"',
  },
  /** `soft`: an expired node is replaced like a drifted one. */
  expiration: {
    key: 'tenon.sh/expiration',
    read: (text) => (text === 'soft' ? text : undefined),
    fix: 'use "soft", or remove the annotation',
  },
  /** Milliseconds from soft expiration until the node is deleted anyway. */
  expirationDeadline: {
    key: 'tenon.sh/expiration-deadline',
    read: durationOf,
    fix: 'use a duration, such as "72h"',
  },
  /** The largest part of `expireAfter` by which a node may expire early. */
  expirationJitter: {
    key: 'tenon.sh/expiration-jitter',
    read: fractionOf,
    fix: 'use a percentage from "0%" to "100%", such as "10%"',
  },
  /** The zone of the schedules of its budgets. */
  timeZone: {
    key: 'tenon.sh/time-zone',
    read: timeZoneOf,
    fix: 'use a name of the IANA time zone database, such as "Europe/Zurich"',
  },
  /** `sequential`: drift and consolidation work in one zone at a time. */
  disruptZones: {
    key: 'tenon.sh/disrupt-zones',
    read: (text) => (text === 'sequential' ? text : undefined),
    fix: 'use "sequential", or remove the annotation',
  },
  /** A drifted node goes before its successor comes, where limits have no room for both. */
  driftWithoutSurge: {
    key: 'tenon.sh/drift-without-surge',
    read: (text) => (text === 'true' ? true : undefined),
    fix: 'use "true", or remove the annotation',
  },
  /** What is done about unhealthy nodes; default `replace`. */
  repair: {
    key: 'tenon.sh/repair',
    read: repairOf,
    fix: 'use "off", "replace" or "reboot,replace"',
  },
  /** How many nodes are repaired at a time: a number, or a share of the nodes, rounded up. */
  repairBudget: {
    key: 'tenon.sh/repair-budget',
    read: shareOf,
    fix: 'use a number of nodes, such as "2", or a percentage from "0%" to "100%"',
  },
} as const satisfies Readonly<Record<string, PoolAnnotation<unknown>>>

type Known = typeof known

/** Values of the annotations that are set and can be read. */
export type PoolWishes = {
  readonly [Name in keyof Known]?: NonNullable<ReturnType<Known[Name]['read']>>
}

interface Reading {
  readonly wishes: PoolWishes
  readonly problems: readonly PoolProblem[]
}

const readingOf = perObject(({ metadata }: Pick<NodePool, 'metadata'>): Reading => {
  const wishes: [string, unknown][] = []
  const problems: PoolProblem[] = []
  for (const [name, { key, read, fix }] of Object.entries<PoolAnnotation<unknown>>(known)) {
    const text: unknown = ownValue(metadata.annotations, key)
    if (text === undefined) continue
    const value = typeof text === 'string' ? read(text.trim()) : undefined
    if (value !== undefined) wishes.push([name, value])
    else
      problems.push({
        field: `metadata.annotations["${key}"]`,
        message: `"${String(text).slice(0, 60)}" cannot be read and is ignored`,
        fix,
      })
  }
  return { wishes: Object.fromEntries(wishes), problems }
})

export function poolWishes(pool: Pick<NodePool, 'metadata'>): PoolWishes {
  return readingOf(pool).wishes
}

/** The annotations that cannot be read. */
export function poolAnnotationProblems(pool: Pick<NodePool, 'metadata'>): readonly PoolProblem[] {
  return readingOf(pool).problems
}

function fractionOf(text: string): number | undefined {
  const digits = /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text)?.[1]
  const percent = digits === undefined ? undefined : Number(digits)
  return percent !== undefined && percent <= 100 ? percent / 100 : undefined
}

function repairOf(text: string): 'off' | 'replace' | 'reboot' | undefined {
  if (text === 'off' || text === 'replace') return text
  return /^reboot\s*,\s*replace$/.test(text) ? 'reboot' : undefined
}

/** A number of nodes, or a part of all. */
type Share = { readonly count: number } | { readonly fraction: number }

function shareOf(text: string): Share | undefined {
  if (/^\d{1,9}$/.test(text)) return { count: Number(text) }
  const fraction = fractionOf(text)
  return fraction === undefined ? undefined : { fraction }
}

function priceOf(text: string): number | undefined {
  if (!/^\d{1,12}(?:\.\d{1,12})?$/.test(text)) return undefined
  const price = Number(text)
  return price <= mostPricePerHour ? price : undefined
}

/** A hundred years: times beyond cannot all be written down. */
const longestMs = 100 * 365 * 86_400_000

function durationOf(text: string): number | undefined {
  const ms = text.length > 40 ? undefined : parseDuration(text)
  return ms !== undefined && ms >= 0 && ms <= longestMs ? ms : undefined
}
