/**
 * Runs all checks of the sources, as many in parallel as there are processors: most of them use one. The output
 * of a check is printed when it has ended. Exits 1 if one fails.
 */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'

/** Scripts of package.json, slowest first. */
const checks = [
  'typecheck',
  'lint',
  'architecture',
  'names',
  'deadcode',
  'format:check',
  'imports',
  'charts -- --check',
  'citations',
  'vocabulary',
  'clouds',
  'casts',
]
const failed: string[] = []

function run(check: string): Promise<void> {
  const start = performance.now()
  const child = spawn('npm', ['run', '-s', ...check.split(' ')], {
    cwd: resolve(import.meta.dirname, '..'),
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
