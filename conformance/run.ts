import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SystemClock } from '@tenon/runtime'
import { BuildFailedError, findGo, GoMissingError, missingBinaries } from './src/binaries.ts'
import { controlPlaneComponents } from './src/components.ts'
import { type ControlPlane, StartFailedError, startControlPlane } from './src/control-plane.ts'

/**
 * The whole suite against one control plane, which is built if needed, started, and stopped at the end.
 * Arguments are passed on to `node --test`.
 */
async function main(): Promise<number> {
  const missing = missingBinaries(controlPlaneComponents, process.env)
  if (missing.length > 0 && findGo(process.env) === undefined) return withoutGo(new GoMissingError(missing))
  const folder = mkdtempSync(join(tmpdir(), 'tenon-conformance-'))
  const clock = new SystemClock()
  const start = clock.monotonic()
  const controlPlane = await startControlPlane({ dir: folder })
  say(`Kubernetes ${controlPlane.version} is ready after ${seconds(clock.monotonic() - start)}`)
  let code = 1
  try {
    code = await runTests(controlPlane)
  } finally {
    if (code !== 0) keepLogs(folder)
    await controlPlane.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  say(`suite ended with exit code ${code} after ${seconds(clock.monotonic() - start)}`)
  return code
}

/** Only where it was declared optional may the suite be left out, and never silently. */
function withoutGo(error: GoMissingError): number {
  if (process.env['TENON_CONFORMANCE'] !== 'optional') {
    say(error.message)
    return 1
  }
  say(`SKIPPED, nothing was tested against a real control plane. ${error.message}`)
  return 0
}

function runTests(controlPlane: ControlPlane): Promise<number> {
  const args = ['--test', '--test-concurrency=1', '--test-timeout=180000', ...process.argv.slice(2)]
  const suite = fileURLToPath(new URL('suite/*.test.ts', import.meta.url))
  const child = spawn(process.execPath, [...args, suite], {
    stdio: 'inherit',
    env: {
      ...process.env,
      TENON_CONFORMANCE_DIR: controlPlane.folder,
      TENON_CONFORMANCE_BIN: controlPlane.binDir,
    },
  })
  // The tests get a terminal's Ctrl-C themselves and end; what was started is still to be stopped here.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return new Promise((resolve) => {
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

function keepLogs(folder: string): void {
  const kept = mkdtempSync(join(tmpdir(), 'tenon-conformance-logs-'))
  cpSync(join(folder, 'logs'), kept, { recursive: true })
  say(`logs of the control plane: ${kept}`)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function say(line: string): void {
  process.stderr.write(`conformance: ${line}\n`)
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof BuildFailedError || error instanceof StartFailedError)) throw error
  say(error.message)
  process.exitCode = 1
}
