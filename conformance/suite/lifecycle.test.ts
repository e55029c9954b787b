import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startControlPlane, stopControlPlane } from '../src/control-plane.ts'
import { isAlive } from '../src/state.ts'
import { Cluster, elapsed, until } from './cluster.ts'

/** Ids and commands of all processes that have `text` in their command line. */
function processesOf(text: string): string[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n')
  return lines.filter((line) => line.includes(text) && !line.includes('ps -eo'))
}

function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'tenon-lifecycle-'))
}

const control = fileURLToPath(new URL('../control-plane.ts', import.meta.url))

test('a control plane comes up, and goes within 2 s without leaving a process or a file', async () => {
  const controlPlane = await startControlPlane()
  assert.ok(processesOf(controlPlane.folder).length >= 4, 'programs run')
  assert.ok(existsSync(controlPlane.kubeconfigPath))

  const time = elapsed()
  await controlPlane.stop()

  assert.ok(time() < 2000, `stopping took ${time()} ms`)
  assert.deepEqual(processesOf(controlPlane.folder), [])
  assert.ok(!existsSync(controlPlane.folder))
  await controlPlane.stop()
})

/** Starts a control plane in a process of its own that then waits; resolves with its folder. */
async function starter(): Promise<{ child: ChildProcess; folder: string }> {
  const api = new URL('../src/control-plane.ts', import.meta.url).href
  const script = `const { startControlPlane } = await import('${api}')
    const { folder } = await startControlPlane()
    console.log(folder)
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const folder = await new Promise<string>((resolve) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString('utf8').trim()))
  })
  return { child, folder }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
  test(`nothing is left 2 s after the starting process got ${signal}`, async () => {
    const { child, folder } = await starter()
    assert.ok(processesOf(folder).length >= 4, 'programs run')
    child.kill(signal)
    await until('everything is gone', 2, async () => processesOf(folder).length === 0 && !existsSync(folder))
  })
}

test('started by command it stays in the background, and a kept folder goes on where it ended', async () => {
  const dir = temporaryFolder()
  try {
    const command = (...args: string[]) =>
      execFileSync(process.execPath, [control, ...args, '--dir', dir], { encoding: 'utf8' })

    const first = JSON.parse(command('start', '--keep', '--json'))
    assert.ok(isAlive(first.pid))
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kept' } }
    await new Cluster(first.kubeconfigPath).create(namespace)
    assert.throws(() => command('start'), /already running/)
    command('stop')
    assert.ok(!isAlive(first.pid))
    assert.deepEqual(processesOf(dir), [])

    const second = JSON.parse(command('start', '--json'))
    assert.ok(await new Cluster(second.kubeconfigPath).get('v1', 'Namespace', 'kept'))
    command('stop')
    assert.deepEqual(readdirSync(dir), [])
    assert.throws(() => command('stop'), /no control plane runs/)
  } finally {
    await stopControlPlane(dir)
    rmSync(dir, { recursive: true, force: true })
  }
})
