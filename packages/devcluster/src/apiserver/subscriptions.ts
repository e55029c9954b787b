import type { KubeObject } from '@tenon/api'
import type { LocalHandler, StoredObject } from '../contract.ts'
import type { Change, Collection } from '../storage/index.ts'
import type { ServerContext } from './context.ts'
import type { Served } from './kinds/registry.ts'

interface Subscriber {
  readonly view: Served['view']
  readonly handler: LocalHandler<KubeObject>
  /** Earlier changes are part of the initial state. */
  readonly since: number
  ended: boolean
}

type Delivery = { readonly collection: Collection; readonly change: Change } | (() => void)

/**
 * Delivers commits to parts of this process, in commit order over all resources, after the write has returned.
 */
export class Subscriptions {
  readonly #ctx: ServerContext
  readonly #subscribers = new Map<Collection, Set<Subscriber>>()
  #queue: Delivery[] = []
  #scheduled = false

  constructor(ctx: ServerContext) {
    this.#ctx = ctx
    ctx.store.onCommit((collection, change) => {
      if (this.#subscribers.has(collection)) this.#enqueue({ collection, change })
    })
  }

  subscribe(served: Served, handler: LocalHandler<KubeObject>): () => void {
    const collection = this.#ctx.store.collection(served.collection)
    const subscriber: Subscriber = {
      view: served.view,
      handler,
      since: this.#ctx.store.revision,
      ended: false,
    }
    const existing: StoredObject[] = []
    collection.scan({}, (object) => existing.push(object) > 0)
    const subscribers = this.#subscribers.get(collection) ?? new Set()
    this.#subscribers.set(collection, subscribers)
    subscribers.add(subscriber)
    this.#enqueue(() => {
      for (const object of existing)
        if (!subscriber.ended) this.#guarded(() => handler.added?.(subscriber.view(object)))
    })
    return () => {
      subscriber.ended = true
      subscribers.delete(subscriber)
      if (subscribers.size === 0) this.#subscribers.delete(collection)
    }
  }

  #enqueue(delivery: Delivery): void {
    this.#queue.push(delivery)
    if (this.#scheduled) return
    this.#scheduled = true
    queueMicrotask(() => this.#drain())
  }

  #drain(): void {
    while (this.#queue.length > 0) {
      const batch = this.#queue
      this.#queue = []
      for (const delivery of batch) {
        if (typeof delivery === 'function') delivery()
        else this.#deliver(delivery.collection, delivery.change)
      }
    }
    this.#scheduled = false
  }

  #deliver(collection: Collection, change: Change): void {
    for (const subscriber of this.#subscribers.get(collection) ?? []) {
      if (subscriber.ended || change.revision <= subscriber.since) continue
      try {
        notify(subscriber, change)
      } catch (error) {
        this.#failed(error)
      }
    }
  }

  /** A bug in one listener must not affect the others. */
  #guarded(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    this.#ctx.logger.error('a subscriber failed', {
      error,
      stack: error instanceof Error ? error.stack : undefined,
    })
  }
}

function notify({ view, handler }: Subscriber, change: Change): void {
  const object = view(change.object)
  if (change.type === 'ADDED') handler.added?.(object)
  else if (change.type === 'DELETED') handler.deleted?.(object)
  else handler.updated?.(object, view(change.previous as StoredObject))
}
