/** The controller as a process against the embedded cluster. */
import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { serveHttp } from '@tenon/runtime'
import {
  controllerSettings,
  eventually,
  kubectlOut,
  runTenon,
  startCluster,
  startTenon,
  temporaryDirectory,
  type TenonProcess,
} from '../../testing/tenon-process.test-support.ts'

type Line = Readonly<Record<string, unknown>>

const linesOf = (process: TenonProcess): readonly Line[] =>
  process
    .out()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)

async function ask(port: unknown, path: string, init: RequestInit = {}) {
  const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, init)
  return { status: response.status, text: await response.text() }
}

test('a start with options that cannot be used exits with 2 and one line, one for help with 0', async (t) => {
  const cwd = await temporaryDirectory(t)
  const [wrong, help] = await Promise.all([
    runTenon(t, cwd, ['controller', '--provider=kwok', '--metrics-port=abc']),
    runTenon(t, cwd, ['controller', '-h']),
  ])
  assert.deepEqual([wrong.code, wrong.out], [2, ''])
  assert.equal(wrong.err, 'error: --metrics-port=abc: use an integer\n')
  assert.deepEqual([help.code, help.err], [0, ''])
  assert.match(help.out, /^ {2}--metrics-port NUMBER {2}\(METRICS_PORT, default 8080\)$/m)
})

/** A port that nobody listens on. */
async function freePort(): Promise<number> {
  const server = await serveHttp(() => Promise.reject(new Error('unused')), { host: '127.0.0.1', port: 0 })
  await server.close()
  return server.port
}

test('EXP-12 RPT-41 the ports of metrics and probes have nothing under /debug, and the log level stays', async (t) => {
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'devcluster')
  const { KUBECONFIG = '' } = await controllerSettings(cwd)
  const debug = await freePort()
  const flags = ['--metrics-port=0', '--health-probe-port=0', `--debug-port=${debug}`, '--enable-profiling']
  const controller = startTenon(
    t,
    cwd,
    ['controller', '--provider=kwok', '--disable-leader-election', ...flags],
    {
      KUBECONFIG,
    },
  )
  const start = await eventually(
    () => linesOf(controller).find(({ message }) => message === 'starting'),
    () => controller.out() + controller.err(),
  )
  for (const port of [start['metricsPort'], start['healthProbePort']]) {
    for (const page of [
      'drains',
      'decisions',
      'offerings',
      'waiting',
      'snapshot',
      'journal',
      'log-level',
      'pprof/heap',
      '',
    ])
      assert.equal((await ask(port, `/debug/${page}`)).status, 404, page)
    assert.equal((await ask(port, '/debug/log-level', { method: 'PUT', body: 'debug' })).status, 404)
  }
  assert.equal((await ask(debug, '/debug/log-level')).text, 'info\n')
  const address = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)
  if (address !== undefined)
    await assert.rejects(fetch(`http://${address.address}:${debug}/debug/log-level`), /fetch failed/)
})

test('OPS-13 OPS-15 OPS-19 OPS-51 OPS-52 OPS-94 probes and logs of a process, before and after its definitions come', async (t) => {
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'devcluster')
  const { KUBECONFIG = '' } = await controllerSettings(cwd)
  const debug = await freePort()
  const controller = startTenon(
    t,
    cwd,
    [
      'controller',
      '-provider',
      'kwok',
      '--metrics-port=0',
      '--health-probe-port',
      '0x0',
      `--debug-port=${debug}`,
    ],
    { KUBECONFIG, LEADER_ELECTION_NAMESPACE: 'kube-system', KUBE_CLIENT_QPS: 'many' },
  )
  const start = await eventually(
    () => linesOf(controller).find(({ message }) => message === 'starting'),
    () => controller.out() + controller.err(),
  )
  const [metrics, probe] = [start['metricsPort'], start['healthProbePort']]
  assert.deepEqual(await ask(probe, '/healthz'), { status: 200, text: 'ok' })
  const unready = await ask(probe, '/readyz')
  assert.equal(unready.status, 500)
  assert.match(unready.text, /^\[-\]crd failed: reason withheld\n[^]*\nhealthz check failed\n$/)
  assert.match((await ask(probe, '/readyz/crd')).text, /serves no nodeclaims and nodepools; install/)
  assert.equal((await ask(probe, '/readyz?exclude=crd&exclude=manager')).status, 200)
  assert.equal((await ask(debug, '/debug/pprof/heap')).status, 404)
  assert.equal((await ask(metrics, '/metrics')).status, 200)

  const { out: crds } = await runTenon(t, cwd, ['crds'])
  await kubectlOut(cwd, ['apply', '--server-side', '-f', '-'], crds)
  // Answered once the caches are filled.
  const ready = await ask(probe, '/readyz?verbose')
  assert.equal(ready.status, 200, ready.text)
  assert.match(ready.text, /^\[\+\]crd ok\n\[\+\]manager ok\n\[\+\]readyz ok\n[^]*\nhealthz check passed\n$/)
  assert.equal((await ask(probe, '/readyz/nope')).status, 404)
  const lease = async () =>
    await kubectlOut(cwd, ['get', 'lease', '-n', 'kube-system', '-o', 'jsonpath={..holderIdentity}'])
  const { identity } = start
  await eventually(
    async () => (await lease()) === identity || undefined,
    () => controller.out(),
  )
  assert.match(String(identity), /^[^_]+_[0-9a-f-]{36}$/)

  const before = linesOf(controller)
  for (const line of before) {
    const [first, second, third, fourth] = Object.keys(line)
    assert.deepEqual([first, second, third, fourth], ['level', 'time', 'logger', 'message'])
    assert.notEqual(line['level'], 'DEBUG')
  }
  const warning = before.find(({ variable }) => variable === 'KUBE_CLIENT_QPS')
  assert.deepEqual([warning?.['level'], warning?.['fix']], ['WARN', 'use an integer'])
  const level = await ask(debug, '/debug/log-level', { method: 'PUT', body: 'debug' })
  assert.deepEqual(level, { status: 200, text: 'debug\n' })

  const since = performance.now()
  assert.deepEqual(await controller.end('SIGTERM'), { code: 0, signal: null }, controller.err())
  assert.ok(performance.now() - since < 10_000)
  assert.equal(await lease(), '', 'the lease is given back')
  const last = linesOf(controller).slice(before.length)
  assert.ok(last.some(({ message, caller }) => message === 'stopping' && caller !== undefined))
})
