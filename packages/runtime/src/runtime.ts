import type { Clock } from './clock.ts'
import type { Logger } from './log.ts'
import type { Random } from './random.ts'
import type { Tracer } from './tracing.ts'

/** The capabilities that every part of a process receives. */
export interface Runtime {
  readonly clock: Clock
  /** Cryptographically strong outside simulations. */
  readonly random: Random
  readonly logger: Logger
  /** Undefined: nothing is traced. */
  readonly tracer?: Tracer | undefined
}
