import type { Clock } from './clock.ts'
import type { Logger } from './log.ts'
import type { Random } from './random.ts'

/** What a process gives to all of its parts: time, chance and a log. */
export interface Runtime {
  readonly clock: Clock
  /** Cryptographically strong outside simulations. */
  readonly random: Random
  readonly logger: Logger
}
