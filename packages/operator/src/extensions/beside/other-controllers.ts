/** Stands back while another controller launches, disrupts or writes NodeClaims of the same NodePools (adoption.md 2). */
import type { KubeObject, NodeClaim, NodePool } from '@tenon/api'
import type { EventRecorder, KubeClient, WorkGate } from '@tenon/kube'
import { type CloudProvider, decorated } from '@tenon/provider'
import { type Clock, Listeners, type Logger } from '@tenon/runtime'
import type { Settings } from '../../settings.ts'
import { readingClient, readingProvider } from '../observe/fences.ts'
import {
  creatorOf,
  type ForeignWrite,
  standingBackText,
  statusTimes,
  type StatusTimes,
  statusWrites,
} from './foreign-writes.ts'

interface Dependencies {
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: Pick<Settings, 'takeOver'>
  /** Whether this process serves the object, or would take it. It is asked once this process leads. */
  readonly isServed: (object: NodeClaim | NodePool) => boolean
}

/** For so long nothing may have been written before this controller acts again. */
const quietMs = 10 * 60_000
/** The last requests of a leader that was replaced may arrive so long after our start. */
const handoverMs = 15_000
/** Writes of ours may show so long after their answer: watches lag, and answers get lost. */
const lagMs = 30_000
/**
 * Writes that are older show late: the watch was interrupted, or a backup or a lagging server brought the object back. The
 * clock of the API server may be so much behind.
 */
const recentMs = 15 * 60_000
/** No write of ours that is recent is forgotten, also where the clock of the server is ahead. */
const remembersMs = 30 * 60_000
const skewMs = 60_000
/** A clock is not further ahead: the time of a managed field can be anything that somebody wrote. */
const mostAheadMs = 10 * 60_000

export class OtherControllers implements WorkGate {
  readonly #deps: Dependencies
  /** Unix milliseconds from which writes of others count; undefined until this process leads. */
  #fromMs: number | undefined
  /** When our last write of an object ended, in Unix milliseconds; undefined while one is under way. Oldest first. */
  readonly #ownWrites = new Map<string, number | undefined>()
  readonly #statusTimes = new WeakMap<object, StatusTimes>()
  /** How much the clock of the API server is ahead at least, as times of writes tell. */
  #aheadMs = 0
  /** `seenMs` is monotonic. */
  #last: { readonly write: ForeignWrite; readonly seenMs: number } | undefined
  #isWaiting = false
  #cancelWake: (() => void) | undefined
  readonly #changed = new Listeners<string | undefined>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Judges from now on until `signal` aborts; what was written before does not count. Call it once this process leads. */
  follow(signal: AbortSignal): void {
    this.#fromMs = this.#deps.clock.now() + handoverMs
    signal.addEventListener('abort', () => {
      this.#cancelWake?.()
    })
  }

  /** False while another controller is at work, and this one only observes. */
  get isOpen(): boolean {
    return !this.#isWaiting
  }

  onOpen(listener: () => void): void {
    this.#changed.add((words) => {
      if (words === undefined) listener()
    })
  }

  /** Calls `listener` with the reason when this controller begins to observe only, and with undefined when it acts again. */
  onChange(listener: (because: string | undefined) => void): void {
    this.#changed.add(listener)
  }

  /** Why this controller only observes; undefined while it acts. */
  get because(): string | undefined {
    return this.#isWaiting && this.#last !== undefined ? standingBackText(this.#last.write) : undefined
  }

  /**
   * Judges a state of an object as it enters the cache.
   * @param object as it was read, with its managed fields; it may have any shape.
   * @param kept what the cache keeps of it, and kept before.
   */
  readonly seen = (
    type: string,
    object: NodeClaim | NodePool,
    kept: NodeClaim | NodePool,
    before: object | undefined,
  ): void => {
    const times = statusTimes(object)
    const previous = before && (this.#statusTimes.get(before) ?? times)
    this.#statusTimes.set(kept, times)
    this.#learnClock(times)
    if (this.#fromMs === undefined || this.#deps.clock.now() < this.#fromMs) return
    const writes = this.#foreignWrites(type, object, times, previous).filter((write) => this.#isNews(write))
    if (writes.length > 0 && this.#deps.isServed(kept)) for (const write of writes) this.#prove(write)
  }

  #learnClock(times: StatusTimes): void {
    const now = this.#deps.clock.now()
    for (const atMs of times.values())
      this.#aheadMs = Math.max(this.#aheadMs, Math.min(atMs - now, mostAheadMs))
  }

  /** Whether it was written since this process leads, and of late, whenever it shows. */
  #isNews({ atMs }: ForeignWrite): boolean {
    const fromMs = (this.#fromMs ?? Number.POSITIVE_INFINITY) + this.#aheadMs
    return atMs >= fromMs && atMs >= this.#deps.clock.now() - recentMs
  }

  #foreignWrites(
    type: string,
    object: NodeClaim | NodePool,
    times: StatusTimes,
    previous: StatusTimes | undefined,
  ): readonly ForeignWrite[] {
    const key = keyOf(type, object.metadata.name)
    if (previous !== undefined)
      return statusWrites(type, object.metadata.name, times, previous).filter(
        (write) => !this.#explains(key, write),
      )
    const creator = type === 'NodePool' || this.#ownWrites.has(key) ? undefined : creatorOf(object)
    return creator === undefined ? [] : [creator]
  }

  /** Remembers which objects it writes, and writes nothing while another controller is at work. */
  client(inner: KubeClient): KubeClient {
    const reading = readingClient(inner)
    const now = () => (this.#isWaiting ? reading : inner)
    return decorated<Partial<KubeClient>, KubeClient>(inner, {
      create: (type, object, options) =>
        this.#writing(type.kind, object.metadata.name, () => now().create(type, object, options)),
      update: (type, object, options) =>
        this.#writing(type.kind, object.metadata.name, () => now().update(type, object, options)),
      patch: <T extends KubeObject>(...args: Parameters<KubeClient['patch']>) =>
        this.#writing(args[0].kind, args[1].name, () => now().patch(...args) as Promise<T>),
      delete: (...args) => now().delete(...args),
      evict: (...args) => now().evict(...args),
    }) as KubeClient
  }

  provider(inner: CloudProvider): CloudProvider {
    const reading = readingProvider(inner)
    const now = () => (this.#isWaiting ? reading : inner)
    return decorated(inner, {
      create: (...args) => now().create(...args),
      delete: (...args) => now().delete(...args),
      ...(inner.reboot && {
        reboot: async (...args: Parameters<NonNullable<CloudProvider['reboot']>>) => {
          await now().reboot?.(...args)
        },
      }),
    })
  }

  /** Events are writes, too. */
  events(inner: EventRecorder): EventRecorder {
    return {
      record: (...args) => {
        if (!this.#isWaiting) inner.record(...args)
      },
    }
  }

  async #writing<T>(kind: string, name: string | undefined, write: () => Promise<T>): Promise<T> {
    const isJudged = kind === 'NodeClaim' || kind === 'NodePool'
    if (name === undefined || !isJudged || this.#isWaiting) return await write()
    const key = keyOf(kind, name)
    this.#note(key, undefined)
    try {
      return await write()
    } finally {
      this.#note(key, this.#deps.clock.now())
    }
  }

  #note(key: string, endedMs: number | undefined): void {
    this.#ownWrites.delete(key)
    this.#ownWrites.set(key, endedMs)
    for (const [oldest, at] of this.#ownWrites) {
      if (at === undefined) continue
      if (this.#deps.clock.now() - at <= remembersMs) return
      this.#ownWrites.delete(oldest)
    }
  }

  /** Whether a write may be ours: the name says nothing, as Karpenter and Tenon have the same. */
  #explains(key: string, { atMs }: ForeignWrite): boolean {
    if (!this.#ownWrites.has(key)) return false
    const endedMs = this.#ownWrites.get(key)
    if (endedMs === undefined) return true
    return this.#deps.clock.now() - endedMs <= lagMs || atMs <= endedMs + skewMs + this.#aheadMs
  }

  #prove(write: ForeignWrite): void {
    const { clock, logger, settings } = this.#deps
    const now = clock.monotonic()
    const isFirst = this.#last === undefined || now - this.#last.seenMs >= quietMs
    this.#last = { write, seenMs: now }
    if (settings.takeOver) {
      if (isFirst)
        logger.warn('another controller serves the same NodePools; acting beside it because of --take-over', {
          manager: write.manager,
          object: write.object,
        })
      return
    }
    if (this.#isWaiting) return
    this.#isWaiting = true
    logger.warn(this.because ?? '')
    this.#changed.notify(this.because)
    this.#wake(quietMs)
  }

  #wake(delayMs: number): void {
    const { clock, logger } = this.#deps
    this.#cancelWake = clock.after(delayMs, () => {
      const leftMs = (this.#last?.seenMs ?? 0) + quietMs - clock.monotonic()
      if (leftMs > 0) {
        this.#wake(leftMs)
        return
      }
      this.#isWaiting = false
      logger.info('no other controller has written for 10 min; acting again')
      this.#changed.notify(undefined)
    })
  }
}

function keyOf(kind: string, name: string): string {
  return `${kind}/${name}`
}
