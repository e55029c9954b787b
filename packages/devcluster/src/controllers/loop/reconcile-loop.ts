import type { Clock, Logger } from '@tenon/runtime'
import { ApiError } from '../../contract.ts'

/**
 * What a reconcile asks for next. Nothing: wait for the next change. `afterMs`: look again then.
 * `backOff`: something was refused, try again later and later.
 * `touched`: how many objects were looked at; large keys are looked at less often (see
 * {@link ReconcileLoop}), so that a burst of n changes costs O(n) and not O(n²).
 */
export type Outcome =
  | { readonly afterMs?: number; readonly touched?: number; readonly backOff?: true }
  | undefined

/** A reconcile in steps: every `yield` is a point where the loop may let the process breathe. */
export type Steps = Generator<undefined, Outcome, undefined>

/** Level-based: gets a name, never an event. Throws to be run again after a back-off. */
export type Reconcile = (key: string) => Outcome | Steps

/** The keys of one controller that wait to be reconciled. */
export interface WorkQueue {
  /** Reconcile `key` soon; repeated calls before that are one. */
  add(key: string): void
  /** Reconcile `key` in `ms`, or earlier if something else asks for it. */
  addAfter(key: string, ms: number): void
}

interface Item {
  readonly queue: string
  readonly key: string
  readonly reconcile: Reconcile
  readonly items: Map<string, Item>
  state: 'idle' | 'ready' | 'running'
  dirty: boolean
  failures: number
  /** Monotonic time before which changes only wait. */
  notBefore: number
  /** When the key is looked at without a change, and what prevents it. */
  wake: { readonly at: number; readonly cancel: () => void } | undefined
  steps: Steps | undefined
}

export interface LoopLimits {
  /** Longest time one turn of the event loop is held, in milliseconds of the clock; 4 unless given. */
  readonly turnBudgetMs?: number
  /** Most steps per turn, whatever the clock says; 256 unless given. */
  readonly turnSteps?: number
  /** Least time between two looks at more than a handful of objects, in milliseconds; none unless given. */
  readonly leastRestMs?: number
}

const firstBackoffMs = 5
const lastBackoffMs = 60_000
/** Pause after a reconcile per object it looked at: a key of 10 000 pods waits 200 ms. */
const restMsPerObject = 0.02
const restFromObjects = 200
const longestRestMs = 1_000
/** A look at so many objects costs little. */
const handful = 8

/**
 * Runs the reconciles of all controllers, one step at a time, in bounded turns of the event loop.
 * Keys are deduplicated, a key never runs twice at once, and a failing key backs off by itself.
 */
export class ReconcileLoop {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #limits: Required<LoopLimits>
  #ready: Item[] = []
  #cancelTurn: (() => void) | undefined
  #stopped = false
  readonly #all: Map<string, Item>[] = []

  constructor(clock: Clock, log: Logger, limits: LoopLimits = {}) {
    this.#clock = clock
    this.#log = log
    this.#limits = { turnBudgetMs: 4, turnSteps: 256, leastRestMs: 0, ...limits }
  }

  /** Opens the queue of one controller. */
  queue(name: string, reconcile: Reconcile): WorkQueue {
    const items = new Map<string, Item>()
    this.#all.push(items)
    const itemOf = (key: string): Item => {
      let item = items.get(key)
      if (item === undefined) {
        item = {
          queue: name,
          key,
          reconcile,
          items,
          state: 'idle',
          dirty: false,
          failures: 0,
          notBefore: 0,
          wake: undefined,
          steps: undefined,
        }
        items.set(key, item)
      }
      return item
    }
    return {
      add: (key) => this.#add(itemOf(key)),
      addAfter: (key, ms) => this.#wake(itemOf(key), ms),
    }
  }

  /** Ends all work; reconciles in progress are left where they are. */
  stop(): void {
    this.#stopped = true
    this.#cancelTurn?.()
    for (const items of this.#all) for (const item of items.values()) item.wake?.cancel()
    this.#ready = []
  }

  #add(item: Item): void {
    if (this.#stopped || item.state === 'ready') return
    if (item.state === 'running') {
      item.dirty = true
      return
    }
    const restMs = item.notBefore - this.#clock.monotonic()
    if (restMs > 0) {
      this.#wake(item, restMs)
      return
    }
    item.state = 'ready'
    this.#ready.push(item)
    this.#scheduleTurn()
  }

  #wake(item: Item, delayMs: number): void {
    if (this.#stopped) return
    // Whole milliseconds: a fraction may be lost against the clock's own size, and never pass.
    const ms = Math.ceil(delayMs)
    const at = this.#clock.monotonic() + ms
    if (item.wake !== undefined && at >= item.wake.at) return
    item.wake?.cancel()
    const cancel = this.#clock.after(ms, () => {
      item.wake = undefined
      this.#add(item)
    })
    item.wake = { at, cancel }
  }

  #scheduleTurn(): void {
    if (this.#stopped) return
    this.#cancelTurn ??= this.#clock.after(0, () => {
      this.#cancelTurn = undefined
      this.#turn()
    })
  }

  #turn(): void {
    const end = this.#clock.monotonic() + this.#limits.turnBudgetMs
    let steps = 0
    let next = 0
    while (next < this.#ready.length && !this.#stopped) {
      if (steps >= this.#limits.turnSteps || (steps > 0 && this.#clock.monotonic() >= end)) break
      this.#step(this.#ready[next++] as Item)
      steps++
    }
    this.#ready.splice(0, next)
    if (this.#ready.length > 0) this.#scheduleTurn()
  }

  #step(item: Item): void {
    try {
      if (item.steps === undefined) this.#clearWake(item)
      item.state = 'running'
      const running = item.steps ?? item.reconcile(item.key)
      if (!isSteps(running)) {
        this.#finish(item, running)
        return
      }
      const result = running.next()
      if (result.done) {
        this.#finish(item, result.value)
        return
      }
      item.steps = running
      this.#ready.push(item)
    } catch (error) {
      this.#fail(item, error)
    }
  }

  #finish(item: Item, outcome: Outcome): void {
    item.steps = undefined
    item.state = 'idle'
    if (outcome?.backOff) {
      this.#wake(item, backoffMs(item.failures++))
      this.#settle(item)
      return
    }
    item.failures = 0
    const restMs = this.#restMs(outcome?.touched ?? 0)
    if (restMs > 0) item.notBefore = this.#clock.monotonic() + restMs
    if (outcome?.afterMs !== undefined) this.#wake(item, outcome.afterMs)
    this.#settle(item)
  }

  #restMs(touched: number): number {
    const ownMs = touched >= restFromObjects ? Math.min(longestRestMs, touched * restMsPerObject) : 0
    return touched > handful ? Math.max(this.#limits.leastRestMs, ownMs) : ownMs
  }

  #fail(item: Item, error: unknown): void {
    item.steps = undefined
    item.state = 'idle'
    const delayMs = backoffMs(item.failures++)
    const fields = { controller: item.queue, key: item.key, delayMs, error }
    if (error instanceof ApiError && error.code < 500) this.#log.debug('reconcile refused', fields)
    else this.#log.error('reconcile failed', fields)
    this.#wake(item, delayMs)
    this.#settle(item)
  }

  #settle(item: Item): void {
    if (item.dirty) {
      item.dirty = false
      this.#add(item)
    }
    const isWaiting = item.notBefore > this.#clock.monotonic()
    if (item.state === 'idle' && item.wake === undefined && !isWaiting) item.items.delete(item.key)
  }

  #clearWake(item: Item): void {
    item.wake?.cancel()
    item.wake = undefined
  }
}

function backoffMs(failures: number): number {
  return Math.min(lastBackoffMs, firstBackoffMs * 2 ** Math.min(failures, 20))
}

function isSteps(value: Outcome | Steps): value is Steps {
  return value !== undefined && 'next' in value
}
