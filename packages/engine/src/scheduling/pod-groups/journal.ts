/** What a simulation changed while something was tried, so that it can be taken back (gangs.md 7.2). */
export class Journal {
  #undos: (() => void)[] | undefined

  /** From now on changes are noted; before, they are not. */
  begin(): void {
    this.#undos ??= []
  }

  /** What was changed stays, and no further change is noted. */
  end(): void {
    this.#undos = undefined
  }

  /** Notes how to take a change back; called before the change is made, or right after it. */
  note(undo: () => void): void {
    this.#undos?.push(undo)
  }

  get isOpen(): boolean {
    return this.#undos !== undefined
  }

  mark(): number {
    return this.#undos?.length ?? 0
  }

  /** Takes back everything since the mark, the last change first. */
  rollback(mark: number): void {
    const undos = this.#undos ?? []
    while (undos.length > mark) (undos.pop() as () => void)()
  }
}
