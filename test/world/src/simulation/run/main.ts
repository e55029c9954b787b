/** The commands of the world: `one`, `many` and `planted`; `--help` lists their flags. */
import { ownValue } from '@tenon/api'
import { enableCompileCache } from 'node:module'
import type { Io } from './io.ts'

// Reusing compiled code saves a third of a short run.
enableCompileCache()
const { SystemClock } = await import('@tenon/runtime')
const { UsageError } = await import('./arguments.ts')

const commands: Readonly<Record<string, (io: Io) => Promise<number>>> = {
  one: async (io) => await (await import('./world.ts')).playOne(io),
  many: async (io) => await (await import('./world-many.ts')).playMany(io),
  planted: async (io) => await (await import('./world-planted.ts')).findPlanted(io),
  autoscaler: async (io) => await (await import('../../cluster-autoscaler/run.ts')).playAutoscaler(io),
}

const help: Readonly<Record<string, string>> = {
  one: `npm run world -- [flags]: plays one run of a whole cluster on virtual time and checks invariants all along
  --seed N                which run; default 1
  --hours H               virtual time with workload and faults; default 2
  --nodes N               nodes that the workload fills, roughly; default 15
  --faults LEVEL          none, low, high (default) or storm
  --without-faults A,B    leaves kinds of faults out
  --only-faults A,B       leaves all others out
  --without-workloads A,B leaves kinds of workload out
  --with-workloads A,B    has kinds of workload that the seed would leave out; buffers, devices, gangs and wanted are in no seed without it
  --provider NAME         the cloud: exoscale (default), clever-cloud or cluster-api
  --bug NAME              plays with a planted bug
  --trace FILE            where the trace goes; default traces/world-SEED.json, of a replay FILE-replay.json
  --replay FILE           plays a trace again and compares the hash
  --shrink N              runs spent on a shorter story after a failure; default 40`,
  many: `npm run world:many -- [flags]: plays many seeds on all cores and names those that fail
  --seeds A..B   which; 3,8,12 works, too; default 1..30
  --hours H      as of npm run world
  --nodes N      as of npm run world
  --faults LEVEL as of npm run world
  --with-workloads A,B as of npm run world
  --without-faults A,B as of npm run world
  --only-faults A,B    as of npm run world
  --provider NAME as of npm run world
  --jobs N       runs at once; default one per core`,
  planted: `npm run world:planted -- [flags]: plays seeds until every planted bug is found
  --bug A,B      only these
  --provider NAME only bugs of this cloud
  --seeds N      seeds tried per bug; default 200
  --hours H      instead of what each bug's story has
  --nodes N      the same
  --jobs N       runs at once; default one per core`,
  autoscaler: `npm run world:autoscaler -- [flags]: plays the Cluster Autoscaler mode on node groups, with faults
  --seeds A..B   which; 3,8,12 works, too; default 1..20, with --bug 1..200
  --minutes N    virtual time with workload and faults; default 60, and a calm of 90 after them
  --bug A,B      plays with these planted mistakes instead, until each is found; all for every one`,
}

const [name = '', ...args] = process.argv.slice(2)
const command = ownValue(commands, name)
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
try {
  if (command === undefined)
    throw new UsageError(`the first argument must be one of ${Object.keys(commands).join(', ')}`)
  if (args.includes('--help')) say(`${ownValue(help, name)}\nMore in docs/world.md.`)
  else process.exitCode = await command({ args, say, clock: new SystemClock() })
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
}
