/** Pauses of disruption and launches, by people and by the controller itself (ask.md 8). */
import { type ConfigMap, type NodePool, ownValue } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { type Clock, Listeners, rfc3339 } from '@tenon/runtime'
import { type Holdable, type PauseReading, type PauseValue, pauseText, readPause } from './pause-value.ts'

/** Name of the ConfigMap in the namespace of the controller. */
export const brakeName = 'tenon-brake'
/** Keys of its data: pauses by people, and by the controller itself. */
export const brakeKeys = { person: 'paused', automatic: 'auto-brake' } as const
/** The same for one NodePool. */
export const pauseAnnotations = { person: 'tenon.sh/paused', automatic: 'tenon.sh/auto-brake' } as const
/** How long disruption waits for a ConfigMap that may not be readable, for lack of a right. */
const unknownMs = 60_000
/** Longest expected delay from a write to the cache. */
const lagMs = 5_000

type PausedBy = keyof typeof brakeKeys

/** One pause in force. */
export interface Pause {
  readonly by: PausedBy
  /** Undefined for a pause of the whole cluster. */
  readonly nodePool?: string
  /** Where it is written, for example `annotation tenon.sh/paused of NodePool web`. */
  readonly source: string
  readonly holds: ReadonlySet<Holdable>
  /** Empty if none was given. */
  readonly reason: string
  /** Unix milliseconds; undefined when it has no end. */
  readonly untilMs: number | undefined
  /** What is wrong with its text, a clause without a full stop. */
  readonly problem?: string
}

interface Sources {
  readonly nodePools: Pick<Cache<NodePool>, 'get' | 'list' | 'onChange'>
  /** Absent where the namespace of the controller is not known. */
  readonly brakeConfigMaps?: Pick<Cache<ConfigMap>, 'isSynced' | 'list' | 'onChange'>
}

export class Brake {
  readonly #sources: Sources
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #openedMs: number
  /** Pauses that the controller began and the caches do not show yet, by NodePool. */
  readonly #begun = new Map<string, PauseValue>()
  /** Their texts, once they are stored. */
  readonly #written = new Map<string, string>()
  /** Notified with names of NodePools whose pauses may have changed; the empty name is the whole cluster. */
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

  /** Begins a pause of the controller, which holds before it is stored. @param pool as in {@link stateOf}. */
  begin(pool: string, value: PauseValue): void {
    this.#begun.set(pool, value)
    this.changes.notify(pool)
  }

  /** Notes that the pause is stored, where people may end it; the caches will show it in a moment. */
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
   * The pauses in force for a NodePool at a time, those of the whole cluster first.
   * @param pool name; empty for the cluster alone.
   */
  stateOf(pool: string, nowMs: number): readonly Pause[] {
    const begun = [...new Set(['', pool])].flatMap((name) => this.#begunOf(name))
    return [...this.#ofCluster(), ...this.#ofPool(pool), ...begun].filter(
      ({ untilMs }) => untilMs === undefined || nowMs < untilMs,
    )
  }

  /** The pause that holds `what` for the NodePool now; of several, the one that ends last. */
  holding(pool: string, what: Holdable): Pause | undefined {
    const pauses = this.stateOf(pool, this.#clock.now()).filter(({ holds }) => holds.has(what))
    return pauses.toSorted((a, b) => (b.untilMs ?? Infinity) - (a.untilMs ?? Infinity))[0]
  }

  /** Whether the ConfigMap cannot be read: then only annotations of NodePools pause anything. */
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

/** When to check a pause again, in milliseconds from now. */
export function leftOf({ untilMs }: Pause, nowMs: number, longestMs: number): number {
  return Math.min(longestMs, Math.max(1, (untilMs ?? Infinity) - nowMs))
}

/** A pause in words for people: what, until when and why. */
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

type Place = Pick<Pause, 'by' | 'nodePool' | 'source'>

function pausesOfConfigMap({ metadata, data = {} }: ConfigMap): readonly Pause[] {
  const named = `ConfigMap ${metadata.namespace ?? ''}/${metadata.name}`
  const known: readonly string[] = Object.values(brakeKeys)
  const keys = Object.keys(data)
  const pauses = (['person', 'automatic'] as const).flatMap((by) => {
    const text = ownValue(data, brakeKeys[by])
    return text === undefined
      ? []
      : pausesOf(readPause(text), { by, source: `key ${brakeKeys[by]} of ${named}` })
  })
  const others = keys.filter((key) => !known.includes(key)).toSorted()
  if (others.length === 0 || keys.includes(brakeKeys.person)) return pauses
  const problem = `key "${others[0]?.slice(0, 60) ?? ''}" is unknown; a pause stands under key "${brakeKeys.person}"`
  const reading: PauseReading = { kind: 'malformed', value: { includes: [] }, problem }
  return [...pauses, ...pausesOf(reading, { by: 'person', source: named })]
}

function pausesOf(reading: PauseReading, place: Place): readonly Pause[] {
  if (reading.kind === 'none') return []
  const { includes, reason = '', untilMs } = reading.value
  return [
    {
      ...place,
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
