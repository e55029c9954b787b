/** Undo functions of the changes during a trial (gangs.md 7.2). */
export class Journal {
  #undos: (() => void)[] | undefined

  /** Notes changes from now on. */
  begin(): void {
    this.#undos ??= []
  }

  /** Keeps the changes and stops noting. */
  end(): void {
    this.#undos = undefined
  }

  /** Notes how to undo a change; called right before the change, or right after it. */
  note(undo: () => void): void {
    this.#undos?.push(undo)
  }

  get isOpen(): boolean {
    return this.#undos !== undefined
  }

  mark(): number {
    return this.#undos?.length ?? 0
  }

  /** Undoes the changes since the mark, the last one first. */
  rollback(mark: number): void {
    const undos = this.#undos ?? []
    while (undos.length > mark) (undos.pop() as () => void)()
  }
}
