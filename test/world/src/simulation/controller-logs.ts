/** Checks the controllers' log lines for forbidden content. */

/** Lines kept for the trace. */
const keptLines = 2000

/** Messages of JavaScript errors that mean a bug, whatever faults the world has. */
const programErrors =
  /is not a function|Cannot (read|set) propert|is not iterable|is not defined|Assertion|Maximum call stack/

/** Receives the log of all controllers. */
export class ControllerLogs {
  readonly #secrets: readonly string[]
  readonly #heard: (line: string) => void
  readonly #lines: string[] = []
  #leak: string | undefined
  #mistake: string | undefined

  /**
   * @param secrets must not appear in any line.
   * @param heard called with every line.
   */
  constructor(secrets: readonly string[], heard: (line: string) => void) {
    this.#secrets = secrets
    this.#heard = heard
  }

  write(line: string): void {
    if (this.#secrets.some((secret) => line.includes(secret))) this.#leak ??= line
    if (programErrors.test(line)) this.#mistake ??= line
    this.#heard(line)
    this.#lines.push(line)
    if (this.#lines.length > 2 * keptLines) this.#lines.splice(0, keptLines)
  }

  /** The newest lines, oldest first. */
  get lines(): readonly string[] {
    return this.#lines
  }

  /** Reports violations in the lines so far. */
  check(violate: (invariant: string, text: string) => void): void {
    if (this.#leak !== undefined)
      violate('noSecretsInLogs', `a log line shows a secret: ${this.#leak.slice(0, 80)}`)
    if (this.#mistake !== undefined) violate('noProgramError', this.#mistake.trim().slice(0, 400))
  }
}
