import { SystemClock } from '@tenon/runtime'
import { BuildFailedError, ensureBinaries, GoMissingError } from './src/binaries.ts'
import { type ComponentName, controlPlaneComponents, goModules, UnknownMinorError } from './src/components.ts'

/** Builds the named programs, or those of a control plane, and prints where they are. @returns the exit code. */
async function main(names: readonly string[]): Promise<number> {
  const known = goModules(process.env).flatMap((module) => Object.keys(module.packages))
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    process.stderr.write(`unknown program ${unknown}; known are: ${known.join(', ')}\n`)
    return 1
  }
  const wanted = names.length > 0 ? (names as ComponentName[]) : controlPlaneComponents
  const binaries = await ensureBinaries(wanted, {
    environment: process.env,
    clock: new SystemClock(),
    progress: (line) => process.stderr.write(`${line}\n`),
  })
  for (const name of wanted) process.stdout.write(`${name} ${binaries[name]}\n`)
  return 0
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const isExpected = [BuildFailedError, GoMissingError, UnknownMinorError].some(
    (kind) => error instanceof kind,
  )
  if (!(isExpected && error instanceof Error)) throw error
  process.stderr.write(`${error.message}\n`)
  const mayLack = error instanceof GoMissingError && process.env['TENON_CONFORMANCE'] === 'optional'
  process.exitCode = mayLack ? 0 : 1
}
