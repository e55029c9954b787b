/** The ordered log of a run, with a hash that identifies it. */
import { createHash } from 'node:crypto'
import type { Clock } from '@tenon/runtime'

/** Lines kept for the trace; older ones only count in the hash. */
const keptLines = 20_000

/** Characters that are hashed at once. */
const hashedAtOnce = 16_384

/** The log of one run. Lines contain no secrets and nothing that differs between equal runs. */
export class EventLog {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #hash = createHash('sha256')
  readonly #lines: string[] = []
  #count = 0
  #unhashed = ''

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** @param source such as `api`, `cloud`, `fault`, `workload` or `process`. */
  record(source: string, text: string): void {
    const line = `${this.#clock.monotonic()} ${source} ${text}`
    this.#unhashed += `${line}\n`
    if (this.#unhashed.length > hashedAtOnce) this.#hashRest()
    this.#lines.push(line)
    this.#count++
    if (this.#lines.length > 2 * keptLines) this.#lines.splice(0, keptLines)
  }

  get count(): number {
    return this.#count
  }

  /** The last lines, oldest first. */
  tail(limit: number = keptLines): readonly string[] {
    return this.#lines.slice(-limit)
  }

  #hashRest(): void {
    this.#hash.update(this.#unhashed)
    this.#unhashed = ''
  }

  /** Hexadecimal digest of all lines so far. */
  digest(): string {
    this.#hashRest()
    return this.#hash.copy().digest('hex').slice(0, 32)
  }
}
