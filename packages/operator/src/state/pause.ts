/** Pauses of disruption and launches, by people and by the controller itself (ask.md 8). */
import { type ConfigMap, type NodePool, ownValue } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { type Clock, Listeners, rfc3339 } from '@tenon/runtime'

/** Name of the ConfigMap in the namespace of the controller. */
export const brakeName = 'tenon-brake'
/** Keys of its data: pauses by people, and by the controller itself. */
export const brakeKeys = { person: 'paused', automatic: 'auto-brake' } as const
/** The same for one NodePool. */
export const pauseAnnotations = { person: 'tenon.sh/paused', automatic: 'tenon.sh/auto-brake' } as const
/** When `tenon resume` ended a pause, RFC 3339: key of the ConfigMap, and annotation of a NodePool. */
export const resumedKeys = { cluster: 'resumed', nodePool: 'tenon.sh/resumed' } as const
/** How long disruption waits for a ConfigMap that may not be readable, for lack of a right. */
const unknownMs = 60_000
/** Longest expected delay from a write to the cache. */
const lagMs = 5_000

type PausedBy = keyof typeof brakeKeys

export interface Pause {
  readonly by: PausedBy
  /** Undefined for the whole cluster. */
  readonly nodePool?: string
  /** Where it is written, for example `annotation tenon.sh/paused of NodePool web`. */
  readonly source: string
  readonly holds: ReadonlySet<Holdable>
  readonly reason: string
  /** Unix milliseconds; undefined when it has no end. */
  readonly untilMs: number | undefined
  /** What is wrong with its text; a clause without a full stop. */
  readonly problem?: string
}

interface Sources {
  readonly nodePools: Pick<Cache<NodePool>, 'get' | 'list' | 'onChange'>
  /** Undefined if the namespace of the controller is unknown. */
  readonly brakeConfigMaps?: Pick<Cache<ConfigMap>, 'isSynced' | 'list' | 'onChange'>
}

export class Brake {
  readonly #sources: Sources
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #openedMs: number
  /** Pauses begun by the controller that the caches do not show yet, by NodePool. */
  readonly #begun = new Map<string, PauseValue>()
  /** Their texts once stored. */
  readonly #written = new Map<string, string>()
  /** Names of NodePools whose pauses may have changed; the empty name is the cluster. */
  readonly changes: Listeners<string> = new Listeners()

  constructor(sources: Sources, clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#sources = sources
    this.#clock = clock
    this.#openedMs = clock.monotonic()
    sources.nodePools.onChange((change) => {
      const before = change.kind === 'updated' ? textsOf(change.old) : []
      const after = change.kind === 'deleted' ? [] : textsOf(change.object)
      const { annotations, name } = change.object.metadata
      this.#shown(name, ownValue(annotations, pauseAnnotations.automatic))
      if (before.join('\n') !== after.join('\n')) this.changes.notify(name)
    })
    sources.brakeConfigMaps?.onChange(({ object: { data } }) => {
      this.#shown('', ownValue(data, brakeKeys.automatic))
      this.changes.notify('')
    })
  }

  /** Begins an automatic pause, which holds before it is stored. @param pool as in {@link stateOf}. */
  begin(pool: string, value: PauseValue): void {
    this.#begun.set(pool, value)
    this.changes.notify(pool)
  }

  /** The pause is stored, so people may end it from now on; the caches show it in a moment. */
  written(pool: string): void {
    const value = this.#begun.get(pool)
    if (value === undefined) return
    const shownMs = this.#clock.now() + lagMs
    this.#written.set(pool, pauseText(value))
    this.#begun.set(pool, { ...value, untilMs: Math.min(value.untilMs ?? shownMs, shownMs) })
    this.changes.notify(pool)
  }

  #shown(pool: string, text: string | undefined): void {
    const begun = this.#begun.get(pool)
    if (begun === undefined || text === undefined) return
    if (text === this.#written.get(pool) || text === pauseText(begun)) this.#begun.delete(pool)
  }

  /**
   * Pauses in force for a NodePool, those of the cluster first.
   * @param pool empty for the cluster alone.
   */
  stateOf(pool: string, nowMs: number): readonly Pause[] {
    return this.#all(pool).filter(({ untilMs }) => untilMs === undefined || nowMs < untilMs)
  }

  #all(pool: string): readonly Pause[] {
    const begun = [...new Set(['', pool])].flatMap((name) => this.#begunOf(name))
    return [...this.#ofCluster(), ...this.#ofPool(pool), ...begun]
  }

  /**
   * When the last pause of the NodePool, or of the cluster, ended, in Unix milliseconds. Undefined if none has, or if its
   * text was removed by others than `tenon resume`.
   */
  endedMs(pool: string, nowMs: number): number | undefined {
    const { brakeConfigMaps, nodePools } = this.#sources
    const resumed = [
      ownValue(nodePools.get({ name: pool })?.metadata.annotations, resumedKeys.nodePool),
      ...(brakeConfigMaps?.list() ?? []).map(({ data }) => ownValue(data, resumedKeys.cluster)),
    ]
    const ends = [...resumed.map(timeOf), ...this.#all(pool).map(({ untilMs }) => untilMs)].flatMap((ms) =>
      ms === undefined || nowMs < ms ? [] : [ms],
    )
    return ends.length === 0 ? undefined : Math.max(...ends)
  }

  /** The pause of `what` for the NodePool that ends last. */
  holding(pool: string, what: Holdable): Pause | undefined {
    const pauses = this.stateOf(pool, this.#clock.now()).filter(({ holds }) => holds.has(what))
    return pauses.toSorted((a, b) => (b.untilMs ?? Infinity) - (a.untilMs ?? Infinity))[0]
  }

  /** Whether the ConfigMap cannot be read, so that only annotations of NodePools count. */
  isUnreadable(): boolean {
    return this.#isUnknown() && this.#clock.monotonic() - this.#openedMs >= unknownMs
  }

  #begunOf(pool: string): readonly Pause[] {
    const value = this.#begun.get(pool)
    if (value === undefined) return []
    const nodePool = pool === '' ? {} : { nodePool: pool }
    return pausesOf({ kind: 'paused', value }, { by: 'automatic', source: 'not stored yet', ...nodePool })
  }

  #isUnknown(): boolean {
    return this.#sources.brakeConfigMaps?.isSynced === false
  }

  #ofCluster(): readonly Pause[] {
    if (this.#isUnknown()) return this.isUnreadable() ? [] : [notYetKnown]
    return (this.#sources.brakeConfigMaps?.list() ?? []).flatMap(pausesOfConfigMap)
  }

  #ofPool(name: string): readonly Pause[] {
    const pool = name === '' ? undefined : this.#sources.nodePools.get({ name })
    if (pool === undefined) return []
    return (['person', 'automatic'] as const).flatMap((by) => {
      const text = ownValue(pool.metadata.annotations, pauseAnnotations[by])
      if (text === undefined) return []
      const source = `annotation ${pauseAnnotations[by]} of NodePool ${name}`
      return pausesOf(readPause(text), { by, nodePool: name, source })
    })
  }
}

/** Milliseconds until the pause has to be checked again. */
export function leftOf({ untilMs }: Pause, nowMs: number, longestMs: number): number {
  return Math.min(longestMs, Math.max(1, (untilMs ?? Infinity) - nowMs))
}

/** Describes a pause for people. */
export function pauseSentence({ by, holds, reason, source, untilMs, problem }: Pause): string {
  const what = [...holds].map((each) => words[each]).join(', ')
  const end = untilMs === undefined ? 'without an end' : `until ${rfc3339(untilMs)}`
  const why = reason === '' ? '' : `: ${reason}`
  const faulty = problem === undefined ? '' : `. It cannot be read completely: ${problem}`
  return `${what} paused ${by === 'person' ? '' : 'by the controller '}${end}${why} (${source})${faulty}`
}

const words: Record<Holdable, string> = {
  voluntary: 'Voluntary disruption',
  launches: 'launches',
  expiration: 'expiration',
  repair: 'node repair',
}

const notYetKnown: Pause = {
  by: 'automatic',
  source: `ConfigMap ${brakeName}`,
  holds: new Set(['voluntary']),
  reason: 'the ConfigMap has not been read yet',
  untilMs: undefined,
}

type Origin = Pick<Pause, 'by' | 'nodePool' | 'source'>

function pausesOfConfigMap({ metadata, data = {} }: ConfigMap): readonly Pause[] {
  const named = `ConfigMap ${metadata.namespace ?? ''}/${metadata.name}`
  const known = new Set<string>([...Object.values(brakeKeys), resumedKeys.cluster])
  const keys = Object.keys(data)
  const pauses = (['person', 'automatic'] as const).flatMap((by) => {
    const text = ownValue(data, brakeKeys[by])
    return text === undefined
      ? []
      : pausesOf(readPause(text), { by, source: `key ${brakeKeys[by]} of ${named}` })
  })
  const others = keys.filter((key) => !known.has(key)).toSorted()
  if (others.length === 0 || keys.includes(brakeKeys.person)) return pauses
  const problem = `key "${others[0]?.slice(0, 60) ?? ''}" is unknown; a pause stands under key "${brakeKeys.person}"`
  const reading: PauseReading = { kind: 'malformed', value: { includes: [] }, problem }
  return [...pauses, ...pausesOf(reading, { by: 'person', source: named })]
}

function pausesOf(reading: PauseReading, origin: Origin): readonly Pause[] {
  if (reading.kind === 'none') return []
  const { includes, reason = '', untilMs } = reading.value
  return [
    {
      ...origin,
      holds: new Set<Holdable>(['voluntary', ...includes]),
      reason,
      untilMs,
      ...(reading.kind === 'malformed' && { problem: reading.problem }),
    },
  ]
}

function textsOf({ metadata }: NodePool): readonly string[] {
  return Object.values(pauseAnnotations).map(
    (key) => JSON.stringify(ownValue(metadata.annotations, key)) ?? '',
  )
}

/** What can be paused; `voluntary` is consolidation, drift and emptiness. */
type Holdable = 'voluntary' | Included
/** What is paused only if listed in `includes`. */
export type Included = (typeof includable)[number]
export const includable = ['launches', 'expiration', 'repair'] as const

export interface PauseValue {
  /** Unix milliseconds; undefined for a pause that lasts until it is removed. */
  readonly untilMs?: number
  /** Unix milliseconds. */
  readonly sinceMs?: number
  readonly reason?: string
  readonly includes: readonly Included[]
}

/** Malformed text counts as a pause: somebody meant to stop something. */
export type PauseReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'paused'; readonly value: PauseValue }
  /** `problem` is a clause without a full stop; `value` is the readable part. */
  | { readonly kind: 'malformed'; readonly value: PauseValue; readonly problem: string }

const forms = `use "true", a time such as "2026-11-27T14:00:00Z", or JSON such as {"until":"2026-11-27T14:00:00Z","reason":"…","includes":["launches"]}`
const timePattern = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
const fields = ['until', 'since', 'reason', 'includes'] as const
/** Longer reasons are cut: they are copied to conditions and events of many objects. */
const longestReason = 500

/** Parses annotation `tenon.sh/paused`, or a key of ConfigMap `tenon-brake`. */
export function readPause(text: string): PauseReading {
  const trimmed = text.trim()
  if (/^false$/i.test(trimmed)) return { kind: 'none' }
  if (/^true$/i.test(trimmed)) return { kind: 'paused', value: { includes: [] } }
  if (trimmed.startsWith('{')) return readObject(trimmed)
  const untilMs = timeOf(trimmed)
  if (untilMs !== undefined) return { kind: 'paused', value: { untilMs, includes: [] } }
  return malformed({ includes: [] }, `"${shown(trimmed)}" is not a pause; ${forms}`)
}

/** The shortest text for a pause. */
export function pauseText({ untilMs, sinceMs, reason, includes }: PauseValue): string {
  if (sinceMs === undefined && reason === undefined && includes.length === 0)
    return untilMs === undefined ? 'true' : rfc3339(untilMs)
  return JSON.stringify({
    ...(untilMs !== undefined && { until: rfc3339(untilMs) }),
    ...(sinceMs !== undefined && { since: rfc3339(sinceMs) }),
    ...(reason !== undefined && { reason }),
    ...(includes.length > 0 && { includes }),
  })
}

function readObject(text: string): PauseReading {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return malformed({ includes: [] }, `its JSON cannot be read (${shown(why)}); ${forms}`)
  }
  const given = new Map(Object.entries(parsed as object))
  const until = given.get('until')
  const since = given.get('since')
  const reason = given.get('reason')
  const includes = includesOf(given.get('includes'))
  const untilMs = timeOf(until)
  const sinceMs = timeOf(since)
  const problems = [
    ...[...given.keys()]
      .filter((key) => !(fields as readonly string[]).includes(key))
      .map((key) => `field "${shown(key)}" is unknown; the fields are ${fields.join(', ')}`),
    ...(until !== undefined && untilMs === undefined ? [timeProblem('until', until)] : []),
    ...(since !== undefined && sinceMs === undefined ? [timeProblem('since', since)] : []),
    ...(reason !== undefined && typeof reason !== 'string' ? ['reason is not a text'] : []),
    ...includes.problems,
  ]
  const value: PauseValue = {
    ...(untilMs !== undefined && { untilMs }),
    ...(sinceMs !== undefined && { sinceMs }),
    ...(typeof reason === 'string' && reason !== '' && { reason: reason.slice(0, longestReason) }),
    includes: includes.known,
  }
  return problems.length === 0 ? { kind: 'paused', value } : malformed(value, problems.join('; '))
}

function includesOf(given: unknown): {
  readonly known: readonly Included[]
  readonly problems: readonly string[]
} {
  if (given === undefined) return { known: [], problems: [] }
  if (!Array.isArray(given)) return { known: [], problems: ['includes is not a list'] }
  const list: readonly unknown[] = given
  const known = includable.filter((each) => list.includes(each))
  const unknown = list.filter((each) => !(includable as readonly unknown[]).includes(each))
  const problems = unknown.map(
    (each) =>
      `includes "${shown(typeof each === 'string' ? each : JSON.stringify(each))}" is unknown; possible are ${includable.join(', ')}`,
  )
  return { known, problems }
}

function timeOf(text: unknown): number | undefined {
  if (typeof text !== 'string' || !timePattern.test(text)) return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

const timeProblem = (field: string, given: unknown): string =>
  `${field} "${shown(typeof given === 'string' ? given : JSON.stringify(given))}" is not a time such as "2026-11-27T14:00:00Z"`

const malformed = (value: PauseValue, problem: string): PauseReading => ({
  kind: 'malformed',
  value,
  problem,
})

const shown = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
