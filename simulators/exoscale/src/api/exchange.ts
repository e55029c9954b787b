import { channel } from 'node:diagnostics_channel'

/** One call to the API with its result, for observers of the traffic. */
export interface Exchange {
  readonly method: string
  /** As received: with `/v2` and the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Text of the request's body. */
  readonly body: string
  /** HTTP status; 0 if the request was lost. */
  readonly status: number
  /** The response before JSON encoding, which omits undefined fields. */
  readonly reply: unknown
}

const exchanges = channel('tenon.exoscale.exchange')

/** Whether there is an observer; without one, recording costs nothing. */
export function isWatched(): boolean {
  return exchanges.hasSubscribers
}

export function publish(exchange: Exchange): void {
  exchanges.publish(exchange)
}

/** Observes every call to every simulated Exoscale of this process; the returned function ends that. */
export function watchExchanges(watcher: (exchange: Exchange) => void): () => void {
  const listener = (message: unknown): void => {
    watcher(message as Exchange)
  }
  exchanges.subscribe(listener)
  return () => {
    exchanges.unsubscribe(listener)
  }
}
