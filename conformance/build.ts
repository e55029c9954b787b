import { SystemClock } from '@tenon/runtime'
import { BuildFailedError, ensureBinaries, GoMissingError } from './src/binaries.ts'
import { type ComponentName, controlPlaneComponents, goModules } from './src/components.ts'

const known = goModules.flatMap((module) => Object.keys(module.packages))
const names = process.argv.slice(2)
const unknown = names.find((name) => !known.includes(name))

if (unknown !== undefined) {
  process.stderr.write(`unknown program ${unknown}; known are: ${known.join(', ')}\n`)
  process.exitCode = 1
} else {
  const wanted = names.length > 0 ? (names as ComponentName[]) : controlPlaneComponents
  try {
    const binaries = await ensureBinaries(wanted, {
      environment: process.env,
      clock: new SystemClock(),
      progress: (line) => process.stderr.write(`${line}\n`),
    })
    for (const name of wanted) process.stdout.write(`${name} ${binaries[name]}\n`)
  } catch (error) {
    if (!(error instanceof GoMissingError || error instanceof BuildFailedError)) throw error
    process.stderr.write(`${error.message}\n`)
    const mayLack = error instanceof GoMissingError && process.env['TENON_CONFORMANCE'] === 'optional'
    process.exitCode = mayLack ? 0 : 1
  }
}
