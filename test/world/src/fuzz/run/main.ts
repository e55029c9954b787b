/** The command `npm run fuzz`; `--help` lists its flags. */
import { enableCompileCache } from 'node:module'

enableCompileCache()
const { SystemClock } = await import('@tenon/runtime')
const { UsageError } = await import('../../simulation/run/arguments.ts')
const { parts, partTexts } = await import('../generate/draw.ts')

const help = `npm run fuzz -- [flags]: judges random clusters on virtual time by oracles that know nothing of the code
  --minutes N   real time for new cases; default 2
  --only A,B    only these parts; default all
  --seed S      of the first case; default a fresh one, which is printed
  --cases N     most cases of each part
  --shrink N    seconds spent on making a case smaller that fails; default 60, 0 for none
  --jobs N      cases at once; default one per core
  --case FILE   plays the case of a file once; --log LEVEL says what the operator logs
  --planted     plants one fault after the other in the product and demands that each is found;
                with --only NAME only these, --minutes N for each; default 10
parts:
${parts.map((part) => `  ${part.padEnd(12)}${partTexts[part]}`).join('\n')}
More in docs/fuzz.md.`

const args = process.argv.slice(2)
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
try {
  if (args.includes('--help')) say(help)
  else {
    const io = { args: args.filter((arg) => arg !== '--planted'), say, clock: new SystemClock() }
    process.exitCode = args.includes('--planted')
      ? await (await import('./planted.ts')).findPlanted(io)
      : await (await import('./fuzz.ts')).fuzz(io)
  }
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
}
