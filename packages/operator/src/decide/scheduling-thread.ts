/** Entry of the thread that decides. */
import { examine, solve } from '@tenon/engine'
import { decideInThread } from './thread-program.ts'

decideInThread({ solve, examine })
