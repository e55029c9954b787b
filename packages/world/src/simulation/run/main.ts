/** The commands of the world: `one`, `many` and `planted`. */
import { enableCompileCache } from 'node:module'
import type { Io } from './io.ts'

// What an earlier run has compiled need not be compiled again: a third of a short run.
enableCompileCache()
const { SystemClock } = await import('@tenon/runtime')
const { UsageError } = await import('./arguments.ts')

const commands: Readonly<Record<string, (io: Io) => Promise<number>>> = {
  one: async (io) => await (await import('./world.ts')).playOne(io),
  many: async (io) => await (await import('./world-many.ts')).playMany(io),
  planted: async (io) => await (await import('./world-planted.ts')).findPlanted(io),
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
