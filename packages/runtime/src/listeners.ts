/** Subscribers of one kind of event, called in the order of subscription. */
export class Listeners<T> {
  readonly #listeners: ((event: T) => void)[] = []

  /** Calls `listener` for every event from now on. */
  add(listener: (event: T) => void): void {
    this.#listeners.push(listener)
  }

  /** Tells every listener before it returns. */
  notify(event: T): void {
    for (const listener of this.#listeners) listener(event)
  }
}
