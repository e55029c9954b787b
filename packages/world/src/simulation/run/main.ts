/** The commands of the world: `one`, `many` and `planted`. */
import { SystemClock } from '@tenon/runtime'
import { UsageError } from './arguments.ts'
import type { Io } from './io.ts'
import { playOne } from './world.ts'
import { playMany } from './world-many.ts'
import { findPlanted } from './world-planted.ts'

const commands: Readonly<Record<string, (io: Io) => Promise<number>>> = {
  one: playOne,
  many: playMany,
  planted: findPlanted,
}

const [name = '', ...args] = process.argv.slice(2)
const command = commands[name]
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
try {
  if (command === undefined)
    throw new UsageError(`the first argument must be one of ${Object.keys(commands).join(', ')}`)
  process.exitCode = await command({ args, say, clock: new SystemClock() })
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
}
