/** Credentials that change while the process runs. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readText, VirtualClock } from '@tenon/runtime'
import { type LoadedKubeConfig, loadKubeConfig } from './load.ts'

const folder = mkdtempSync(join(tmpdir(), 'rotation-'))
after(() => {
  rmSync(folder, { recursive: true })
})

/** A server that takes one token at a time. */
interface Served {
  accepted: string
  /** `method token status` of every request, in order. */
  readonly seen: string[]
  readonly url: string
}

async function served(accepted: string, run: (served: Served) => Promise<void>): Promise<void> {
  const seen: string[] = []
  const server = http.createServer((request, response) => {
    const token = request.headers.authorization?.replace('Bearer ', '') ?? 'none'
    response.statusCode = token === state.accepted ? 200 : 401
    seen.push(`${request.method} ${token} ${response.statusCode}`)
    request.resume().on('end', () => response.end('{}'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const state: Served = { accepted, seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  try {
    await run(state)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

function load(url: string, user: object, clock: VirtualClock): LoadedKubeConfig {
  const kubeconfig = join(folder, 'config')
  const named = (what: string, content: object) => [{ name: 'main', [what]: content }]
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: named('cluster', { server: url }),
    users: named('user', user),
    contexts: named('context', { cluster: 'main', user: 'main' }),
    'current-context': 'main',
  }
  writeFileSync(kubeconfig, JSON.stringify(content))
  return loadKubeConfig({ kubeconfig, env: {}, clock })
}

test('CAG-3 a kubeconfig with a renewed token is read again, before or after a 401', async () => {
  await served('one', async (server) => {
    const clock = new VirtualClock()
    const config = load(server.url, { token: 'one' }, clock)
    assert.equal(await send(config), 200)
    load(server.url, { token: 'two' }, clock).close()
    server.accepted = 'two'
    assert.equal(await send(config), 200)
    await clock.advance(10_000)
    load(server.url, { token: 'third' }, clock).close()
    await clock.advance(10_000)
    server.accepted = 'third'
    assert.equal(await send(config, 'POST'), 200)
    assert.deepEqual(server.seen, ['GET one 200', 'GET one 401', 'GET two 200', 'POST third 200'])
    config.close()
  })
})

test('a kubeconfig that is half written leaves the last credentials in use', async () => {
  await served('one', async (server) => {
    const clock = new VirtualClock()
    const config = load(server.url, { token: 'one' }, clock)
    for (const text of ['', 'clusters: [', 'current-context: nowhere']) {
      writeFileSync(join(folder, 'config'), text)
      await clock.advance(10_000)
      assert.equal(await send(config), 200)
    }
    load(server.url, { token: 'one' }, clock).close()
    config.close()
  })
})

async function send({ transport }: LoadedKubeConfig, method = 'GET'): Promise<number> {
  const response = await transport.send({
    method,
    path: '/version',
    headers: {},
    ...(method === 'GET' ? {} : { body: '{}' }),
  })
  await readText(response.body)
  return response.status
}

test('a token file that was rotated is read again after a 401, for reads and for writes', async () => {
  await served('one', async (server) => {
    const file = join(folder, 'token')
    writeFileSync(file, 'one\n')
    const clock = new VirtualClock()
    const config = load(server.url, { tokenFile: file }, clock)
    assert.equal(await send(config), 200)
    for (const [token, method] of [
      ['two', 'GET'],
      ['three', 'POST'],
    ] as const) {
      writeFileSync(file, `${token}\n`)
      server.accepted = token
      await clock.advance(10_000)
      assert.equal(await send(config, method), 200)
    }
    assert.deepEqual(server.seen, [
      'GET one 200',
      'GET one 401',
      'GET two 200',
      'POST two 401',
      'POST three 200',
    ])
    config.close()
  })
})

/** Prints the token that a file names and counts its runs in another; fails while there is no token. */
function plugin(name: string): { readonly user: object; readonly file: string; readonly runs: () => number } {
  const file = join(folder, `${name}-token`)
  const log = join(folder, `${name}-runs`)
  const script = join(folder, `${name}.mjs`)
  const apiVersion = 'client.authentication.k8s.io/v1'
  writeFileSync(log, '')
  writeFileSync(
    script,
    `import { appendFileSync, readFileSync } from 'node:fs'
appendFileSync(${JSON.stringify(log)}, 'x')
const token = readFileSync(${JSON.stringify(file)}, 'utf8')
console.log(JSON.stringify({ apiVersion: '${apiVersion}', kind: 'ExecCredential', status: { token } }))`,
  )
  return {
    user: { exec: { command: process.execPath, args: [script], apiVersion } },
    file,
    runs: () => readFileSync(log, 'utf8').length,
  }
}

test('a plugin runs once for many requests, and once more when its token is refused', async () => {
  await served('one', async (server) => {
    const clock = new VirtualClock()
    const { user, file, runs } = plugin('rotating')
    writeFileSync(file, 'one')
    const config = load(server.url, user, clock)
    assert.equal(await send(config), 200)
    await clock.advance(60_000)
    assert.equal(await send(config), 200)
    assert.equal(runs(), 1)
    writeFileSync(file, 'two')
    server.accepted = 'two'
    const statuses = await Promise.all(Array.from({ length: 5 }, () => send(config)))
    assert.deepEqual(statuses, [200, 200, 200, 200, 200])
    assert.equal(runs(), 2)
    config.close()
  })
})

test('a plugin that fails is not started for every request, but tried again after a while', async () => {
  await served('one', async (server) => {
    const clock = new VirtualClock()
    const { user, file, runs } = plugin('failing')
    const config = load(server.url, user, clock)
    for (let i = 0; i < 3; i++) await assert.rejects(send(config))
    assert.equal(runs(), 1)
    writeFileSync(file, 'one')
    await clock.advance(2_000)
    assert.equal(await send(config), 200)
    config.close()
  })
})

test('credentials that stay refused are sent once per request, and renewed once in a while only', async () => {
  await served('another', async (server) => {
    const clock = new VirtualClock()
    const { user, file, runs } = plugin('refused')
    writeFileSync(file, 'one')
    const config = load(server.url, user, clock)
    for (let i = 0; i < 4; i++) assert.equal(await send(config), 401)
    assert.deepEqual([server.seen.length, runs()], [4, 2])
    await clock.advance(10_000)
    assert.equal(await send(config), 401)
    assert.deepEqual([server.seen.length, runs()], [5, 3])
    config.close()
  })
})
