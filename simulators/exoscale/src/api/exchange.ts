import { channel } from 'node:diagnostics_channel'

/** One call to the API and what came of it, for those who watch the traffic. */
export interface Exchange {
  readonly method: string
  /** As received: with `/v2` and the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Text of the request's body. */
  readonly body: string
  /** HTTP status of the answer; 0 when the request was lost. */
  readonly status: number
  /** The answer before it is written as JSON; undefined fields are omitted there. */
  readonly reply: unknown
}

const exchanges = channel('tenon.exoscale.exchange')

/** Whether anyone watches; without a watcher the traffic costs nothing. */
export function isWatched(): boolean {
  return exchanges.hasSubscribers
}

/** Hands one call to those who watch. */
export function publish(exchange: Exchange): void {
  exchanges.publish(exchange)
}

/** Watches every call to every simulated Exoscale of this process; the returned function ends that. */
export function watchExchanges(watcher: (exchange: Exchange) => void): () => void {
  const listener = (message: unknown): void => {
    watcher(message as Exchange)
  }
  exchanges.subscribe(listener)
  return () => {
    exchanges.unsubscribe(listener)
  }
}
