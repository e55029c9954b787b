/**
 * Runs the whole suite on its own control plane, records every request of a controller, and compares them with
 * the rights that the chart grants: fails if one is missing, or unused without a reason. Arguments are passed
 * to `node --test`; files named there replace the whole suite. If interrupted, it reports what was recorded
 * until then.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SystemClock } from '@tenon/runtime'
import { auditAllVariable, clusterApiAccount, readAuditLog } from './src/audit.ts'
import { chartsFolder, Helm, type Values } from './src/chart/helm.ts'
import { grantedRights, type RoleObject, rightsReport } from './src/chart/rights.ts'
import { rightsWithoutRequests, unreviewed } from './src/chart/unused-rights.ts'
import { startControlPlane } from './src/control-plane.ts'

/** User agents of the suite's controllers. */
const controllers = /^(karpenter\/|tenon-under-test|planned-placement|scheduling-proof)/

/** Everything that adds rights and that a run can use. */
const values: Values = {
  settings: { ignoreDRARequests: false, featureGates: { plannedPlacement: true } },
}

const clock = new SystemClock()
const given = process.argv.slice(2)
const suite = fileURLToPath(new URL('suite/*.test.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'tenon-rights-'))
process.env[auditAllVariable] = '1'
const start = clock.monotonic()
const controlPlane = await startControlPlane({ dir: folder })
try {
  const code = await runSuite()
  const helm = await Helm.open(folder)
  const rights = grantedRights(await helm.objects<RoleObject>(join(chartsFolder, 'tenon'), values))
  const events = readAuditLog(folder)
    .filter(({ userAgent }) => controllers.test(userAgent ?? ''))
    // Another provider's: its rights are not rendered.
    .filter(({ user }) => user.username !== clusterApiAccount)
  const { unused, missing } = rightsReport(rights, events)
  const unreasoned = unreviewed(unused, rightsWithoutRequests)
  const minutes = ((clock.monotonic() - start) / 60_000).toFixed(1)
  say(`${events.length} requests of controllers in ${minutes} min`)
  say(`granted and not used: ${unused.join('; ') || 'nothing'}`)
  for (const right of missing) say(`NOT GRANTED: ${right}`)
  for (const right of unreasoned) say(`UNUSED WITHOUT A REASON: ${right}`)
  process.exitCode = code === 0 && missing.length + unreasoned.length === 0 ? 0 : 1
} finally {
  await controlPlane.stop()
  rmSync(folder, { recursive: true, force: true })
}

function runSuite(): Promise<number> {
  const args = ['--test', '--test-concurrency=1', '--test-timeout=300000', ...given]
  const files = given.some((each) => each.endsWith('.ts')) ? [] : [suite]
  const child = spawn(process.execPath, [...args, ...files], {
    stdio: 'inherit',
    env: {
      ...process.env,
      TENON_CONFORMANCE_DIR: controlPlane.folder,
      TENON_CONFORMANCE_BIN: controlPlane.binDir,
    },
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 1)))
}

function say(line: string): void {
  process.stderr.write(`rights: ${line}\n`)
}
