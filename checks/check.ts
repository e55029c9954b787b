/**
 * Runs all checks of the sources, as many in parallel as there are processors: most of them use one. The output
 * of a check is printed when it has ended. Exits 1 if one fails.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { delimiter, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const { scripts } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}
/**
 * Without npm, which takes longer to start than some checks run. The type checkers are Go programs that may use 2 GB,
 * and with that spend a tenth less of their processor time on garbage.
 */
const env = {
  GOGC: '600',
  ...process.env,
  PATH: [resolve(root, 'node_modules/.bin'), process.env['PATH'] ?? ''].join(delimiter),
}

/** Scripts of package.json, slowest first. */
const checks = [
  'lint',
  'names',
  'deadcode',
  'architecture',
  'format:check',
  'imports',
  'charts --check',
  'citations',
  'vocabulary',
  'clouds',
  'casts',
]
const failed: string[] = []

function run(check: string): Promise<void> {
  const start = performance.now()
  const [script = '', ...options] = check.split(' ')
  const command = scripts[script]
  if (command === undefined) throw new Error(`package.json has no script ${script}`)
  const child = spawn([command, ...options].join(' '), {
    cwd: root,
    env,
    shell: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => output.push(chunk))
  return new Promise((done) => {
    child.once('close', (code) => {
      if (code !== 0) failed.push(check)
      const seconds = ((performance.now() - start) / 1000).toFixed(1)
      process.stdout.write(`==> ${check}: ${code === 0 ? 'passed' : 'FAILED'}, ${seconds} s\n`)
      process.stdout.write(Buffer.concat(output))
      done()
    })
  })
}

async function runLane(): Promise<void> {
  for (let check = checks.shift(); check !== undefined; check = checks.shift()) await run(check)
}

await Promise.all(Array.from({ length: availableParallelism() }, runLane))
if (failed.length > 0) console.error(`failed: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
