/** Subscribers of one kind of event, called in order of subscription. */
export class Listeners<T> {
  readonly #listeners: ((event: T) => void)[] = []

  add(listener: (event: T) => void): void {
    this.#listeners.push(listener)
  }

  /** Calls every listener before it returns. */
  notify(event: T): void {
    for (const listener of this.#listeners) listener(event)
  }
}
