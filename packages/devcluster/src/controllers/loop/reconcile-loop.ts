import type { Clock, Logger } from '@tenon/runtime'
import { ApiError } from '../../contract.ts'

/**
 * The result of a reconcile. Nothing: wait for the next change. `afterMs`: reconcile again then. `backOff`: something
 * was refused, retry with back-off. `touched`: the number of processed objects; keys with many objects are reconciled
 * less often (see {@link ReconcileLoop}), so that a burst of n changes costs O(n) and not O(n²).
 */
export type Outcome =
  | { readonly afterMs?: number; readonly touched?: number; readonly backOff?: true }
  | undefined

/** A reconcile in steps: at every `yield` the loop may yield to the event loop. */
export type Steps = Generator<undefined, Outcome, undefined>

/** Level-based: receives a key, never an event. Throws to be retried with back-off. */
export type Reconcile = (key: string) => Outcome | Steps

/** The queue of one controller. */
export interface WorkQueue {
  /** Enqueues a key; repeated calls are merged. */
  add(key: string): void
  /** Enqueues a key after `ms`, or earlier on another request. */
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
  /** Monotonic time until which changes wait. */
  notBefore: number
  /** When the key is reconciled without a change; `cancel` prevents it. */
  wake: { readonly at: number; readonly cancel: () => void } | undefined
  steps: Steps | undefined
}

export interface LoopLimits {
  /** Maximum time per turn of the event loop, in milliseconds; default 4. */
  readonly turnBudgetMs?: number
  /** Maximum steps per turn, whatever the clock says; default 256. */
  readonly turnSteps?: number
  /**
   * Minimum time between two reconciles of keys with more than a handful of objects, in milliseconds; default: none.
   */
  readonly leastRestMs?: number
}

const firstBackoffMs = 5
const lastBackoffMs = 60_000
/** Pause after a reconcile per processed object: a key with 10 000 pods waits 200 ms. */
const restMsPerObject = 0.02
const restFromObjects = 200
const longestRestMs = 1_000
/** Keys with so few objects need no pause. */
const handful = 8

/**
 * Runs the reconciles of all controllers, one step at a time, in limited turns of the event loop. Keys are
 * deduplicated, a key is never reconciled twice at the same time, and a failing key only backs off itself.
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

  /** Ends all work; running reconciles are abandoned. */
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
    // Whole milliseconds: a fraction may be lost in the clock's precision and never pass.
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
