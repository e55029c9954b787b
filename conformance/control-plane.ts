import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { BuildFailedError, GoMissingError } from './src/binaries.ts'
import { UnknownMinorError } from './src/components.ts'
import { StartFailedError, startControlPlane, stopControlPlane } from './src/control-plane.ts'

const usage = `Usage: control-plane.ts start [--dir DIR] [--keep] [--json]
       control-plane.ts stop [--dir DIR]

  --dir DIR  where kubeconfig, data and logs are written (default: .tenon/control-plane)
  --keep     keep data when stopping, so that the next start in the same folder goes on from there
  --json     print one JSON line instead of text
`

const defaultFolder = join(fileURLToPath(new URL('..', import.meta.url)), '.tenon', 'control-plane')

interface Arguments {
  readonly command: string | undefined
  readonly dir: string
  readonly keep: boolean
  readonly json: boolean
}

async function start(given: Arguments): Promise<number> {
  const { dir, keep } = given
  const { kubeconfigPath, endpoint, binDir, version, pid } = await startControlPlane({
    dir,
    keep,
    background: true,
  })
  const text =
    `Kubernetes ${version} is ready at ${endpoint}\n\n` +
    `  export KUBECONFIG=${kubeconfigPath}\n\n` +
    `Logs are in ${join(dir, 'logs')}. It runs in the background until control-plane:stop.\n`
  const json = `${JSON.stringify({ kubeconfigPath, endpoint, binDir, version, pid, dir })}\n`
  process.stdout.write(given.json ? json : text)
  return 0
}

async function stop(given: Arguments): Promise<number> {
  if (await stopControlPlane(given.dir)) return 0
  process.stderr.write(`no control plane runs in ${given.dir}\n`)
  return 1
}

function readArguments(): Arguments | undefined {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { dir: { type: 'string' }, keep: { type: 'boolean' }, json: { type: 'boolean' } },
    })
    return {
      command: positionals[0],
      dir: resolve(values.dir ?? defaultFolder),
      keep: values.keep ?? false,
      json: values.json ?? false,
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return undefined
  }
}

async function main(): Promise<number> {
  const given = readArguments()
  const command = given === undefined ? undefined : { start, stop }[given.command ?? '']
  if (given === undefined || command === undefined) {
    process.stderr.write(usage)
    return 1
  }
  try {
    return await command(given)
  } catch (error) {
    const expected = [BuildFailedError, GoMissingError, StartFailedError, UnknownMinorError].some(
      (kind) => error instanceof kind,
    )
    if (!expected) throw error
    process.stderr.write(`${(error as Error).message}\n`)
    return 1
  }
}

process.exitCode = await main()
