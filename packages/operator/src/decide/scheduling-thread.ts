/** Entry of the thread that decides. */
import { solve } from '@tenon/engine'
import { examine } from '@tenon/engine/consolidation'
import { decideInThread } from './thread-program.ts'

decideInThread({ solve, examine })
