import assert from 'node:assert/strict'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { type Clock, readText, SeededRandom, SystemClock, VirtualClock } from '@tenon/runtime'
import { ConsoleModel } from '../model/model.ts'
import { serveTeamConsole, type TokenReview } from './team-server.ts'

interface Answered {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
}

interface Team {
  readonly ask: (
    path: string,
    headers: readonly string[],
    method?: string,
    body?: string,
  ) => Promise<Answered>
  /** Resolves when the server ends the stream, with its text. */
  readonly stream: (token: string) => Promise<string>
  /** Tokens that the API server accepts, with the identity of their owner. */
  readonly accepted: Map<string, string>
  readonly reviewed: string[]
  readonly opened: string[]
  readonly closed: string[]
  readonly withdraw: Map<string, () => void>
  readonly port: number
}

/** Each user sees a node that is named after the token. */
async function aTeam(t: TestContext, clock: Clock = new SystemClock()): Promise<Team> {
  const accepted = new Map<string, string>()
  const [reviewed, opened, closed]: string[][] = [[], [], []]
  const withdraw = new Map<string, () => void>()
  const server = await serveTeamConsole({
    host: '127.0.0.1',
    port: 0,
    publicUrl: new URL('https://tenon.example.com'),
    tokenHeader: 'authorization',
    clock,
    random: new SeededRandom('team'),
    review: (token) => {
      reviewed?.push(token)
      const identity = accepted.get(token)
      const review: TokenReview =
        identity === undefined
          ? { kind: 'refused', status: 401, message: 'sign in again' }
          : { kind: 'user', name: identity, identity }
      return Promise.resolve(review)
    },
    open: (token, withdrawn) => {
      opened?.push(token)
      withdraw.set(token, withdrawn)
      return {
        facts: {
          fields: () => Promise.resolve([]),
          readManifests: () => Promise.resolve({ objects: [], problems: [] }),
          yamlText: () => '',
        },
        copies: {
          answer: ({ path }) => Promise.resolve({ status: 200, text: JSON.stringify({ path, token }) }),
        },
        follow: () => {
          const view = new ConsoleModel()
          const metadata = { name: `node-of-${token}`, uid: token, labels: {}, annotations: {} }
          view.apply({ kind: 'set', resource: 'nodes', object: { kind: 'Node', metadata } as never })
          const none = () => Promise.reject(new Error('nothing is read here'))
          return Promise.resolve({ view, objects: { read: none, events: none } })
        },
        actions: {
          plan: () => Promise.resolve({ command: `as ${token}`, run: () => Promise.resolve('done') }),
        },
        close: () => {
          closed?.push(token)
          return Promise.resolve()
        },
      }
    },
  })
  t.after(() => server.close())
  const port = Number(new URL(server.url).port)
  const request = (path: string, headers: readonly string[], method: string, body: string) =>
    new Promise<http.IncomingMessage>((resolve, reject) => {
      const sent = http.request({ host: '127.0.0.1', port, path, method, headers, agent: false }, resolve)
      sent.on('error', reject)
      sent.end(method === 'GET' ? '' : body)
    })
  return {
    accepted,
    reviewed: reviewed ?? [],
    opened: opened ?? [],
    closed: closed ?? [],
    withdraw,
    port,
    ask: async (path, headers, method = 'GET', body = '') => {
      const answer = await request(path, headers, method, body)
      return { status: answer.statusCode ?? 0, headers: answer.headers, text: await readText(answer) }
    },
    stream: async (token) => await readText(await request('/api/stream', as(token), 'GET', '')),
  }
}

const host = ['host', 'tenon.example.com']
const as = (token: string, ...more: readonly string[]) => [
  ...host,
  'authorization',
  `Bearer ${token}`,
  ...more,
]
const ownOrigin = ['origin', 'https://tenon.example.com']

test('PGE-10 nothing is answered without a token that the API server accepts, not even a file of the page', async (t) => {
  const { accepted, ask, opened, reviewed } = await aTeam(t)
  accepted.set('good', 'alice')
  const tries: readonly (readonly string[])[] = [
    host,
    [...host, 'authorization', ''],
    [...host, 'authorization', 'good'],
    [...host, 'authorization', 'Basic good'],
    [...host, 'authorization', 'Bearer'],
    [...host, 'authorization', 'Bearer good, Bearer good'],
    [...host, 'authorization', 'Bearer good', 'authorization', 'Bearer good'],
    [...host, 'authorization', 'Bearer go\u00e4d'],
    [...host, 'x-forwarded-user', 'alice', 'x-remote-user', 'alice', 'x-forwarded-access-token', 'good'],
    [...host, 'cookie', 'tenon-console=good'],
  ]
  for (const headers of tries)
    for (const path of ['/', '/index.html', '/app.js', '/api/stream', '/api/cost', '/?token=good']) {
      const { status, headers: answered } = await ask(path, headers)
      assert.equal(status, 401, `${path} ${headers.join(' ')}`)
      assert.equal(answered['www-authenticate'], 'Bearer')
    }
  assert.deepEqual(reviewed, [], 'what is no token is not sent to the API server')
  assert.equal((await ask('/', as('bad'))).status, 401)
  assert.equal((await ask('/api/actions', as('bad', ...ownOrigin), 'POST', '{}')).status, 401)
  assert.deepEqual([opened, reviewed], [[], ['bad', 'bad']])
  assert.equal((await ask('/', as('good'))).status, 200)
})

test('PGE-10 each token has a view of its own, and sees nothing of another', async (t) => {
  const { accepted, ask, opened, stream, withdraw } = await aTeam(t)
  for (const name of ['alice', 'bob']) accepted.set(name, name)
  const texts = ['alice', 'bob'].map((token) => stream(token))
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, at) => {
      const token = at % 2 === 0 ? 'alice' : 'bob'
      return { token, answer: await ask('/api/cost', as(token)) }
    }),
  )
  for (const { answer, token } of answers) {
    assert.deepEqual(JSON.parse(answer.text), { path: '/api/cost', token })
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.equal(answer.headers['set-cookie'], undefined)
  }
  assert.deepEqual(opened.toSorted(), ['alice', 'bob'], 'one view each')
  // Until both have their picture.
  for (const token of ['alice', 'bob']) {
    const found = await ask('/api/search?text=node', as(token))
    assert.match(found.text, new RegExp(`node-of-${token}`))
    assert.doesNotMatch(found.text, new RegExp(`node-of-${token === 'alice' ? 'bob' : 'alice'}`))
  }
  for (const end of withdraw.values()) end()
  const [alice = '', bob = ''] = await Promise.all(texts)
  assert.doesNotMatch(alice, /node-of-bob|"user":"bob"/)
  assert.doesNotMatch(bob, /node-of-alice|"user":"alice"/)
})

test('PGE-10 CSRF, DNS rebinding, impersonation by header and open redirects are refused', async (t) => {
  const { accepted, ask, opened } = await aTeam(t)
  accepted.set('good', 'alice')
  const token = ['authorization', 'Bearer good']
  const refused: readonly (readonly [
    what: string,
    status: number,
    headers: readonly string[],
    method?: string,
  ])[] = [
    ['rebound host', 403, ['host', 'evil.example', ...token]],
    ['host that begins as ours', 403, ['host', 'tenon.example.com.evil.example', ...token]],
    ['host of the Service', 403, ['host', 'tenon-console.tenon.svc:8090', ...token]],
    ['two hosts', 403, [...host, 'host', 'evil.example', ...token]],
    ['another site', 403, [...host, ...token, 'origin', 'https://evil.example']],
    ['no site', 403, [...host, ...token, 'origin', 'null']],
    ['plain HTTP of ours', 403, [...host, ...token, 'origin', 'http://tenon.example.com']],
    ['two origins', 403, [...host, ...token, ...ownOrigin, 'origin', 'https://evil.example']],
    [
      'script of another site',
      403,
      [...host, ...token, 'sec-fetch-site', 'cross-site', 'sec-fetch-mode', 'no-cors'],
    ],
    [
      'frame of another site',
      403,
      [
        ...host,
        ...token,
        'sec-fetch-site',
        'same-site',
        'sec-fetch-mode',
        'navigate',
        'sec-fetch-dest',
        'iframe',
      ],
    ],
    ['form without origin', 403, [...host, ...token], 'POST'],
    ['form of another site', 403, [...host, ...token, 'origin', 'https://evil.example'], 'POST'],
    ['impersonated user', 400, [...host, ...token, 'impersonate-user', 'admin']],
    ['impersonated group', 400, [...host, ...token, 'Impersonate-Group', 'system:masters']],
    ['impersonated extra', 400, [...host, ...token, 'impersonate-extra-scopes', 'all']],
  ]
  for (const [what, status, headers, method] of refused)
    assert.equal((await ask('/api/actions', headers, method, '{}')).status, status, what)
  assert.deepEqual(opened, [])
  // Claims of a proxy, or of a client in its place, change nothing: the token says who it is.
  const claims = [
    'x-forwarded-user',
    'root',
    'x-forwarded-groups',
    'system:masters',
    'x-forwarded-host',
    'evil.example',
  ]
  const seen = await ask('/api/cost', as('good', ...claims))
  assert.deepEqual(JSON.parse(seen.text), { path: '/api/cost', token: 'good' })
  for (const path of [
    '//evil.example',
    '/\\evil.example',
    '/%2f%2fevil.example',
    '/?next=https://evil.example',
    '/api/../x',
    'https://evil.example/',
  ]) {
    const { status, headers } = await ask(path, as('good'))
    assert.ok(status < 300 || status >= 400, `${path} ${status}`)
    assert.equal(headers.location, undefined, path)
  }
  const action = JSON.stringify({ request: { kind: 'cordon', node: 'n1' }, agreed: 'as good' })
  const done = await ask('/api/actions', as('good', ...ownOrigin), 'POST', action)
  assert.deepEqual(JSON.parse(done.text), { command: 'as good', done: 'done' })
})

test('PGE-10 a token that is not accepted any more, or has other rights, loses its stream; its view is not kept', async (t) => {
  const clock = new VirtualClock()
  const { accepted, ask, closed, opened, reviewed, stream } = await aTeam(t, clock)
  accepted.set('old', 'alice').set('moved', 'bob in one')
  const ends = ['old', 'moved'].map((token) => stream(token))
  await until(() => opened.length === 2)
  await ask('/api/cost', as('old'))
  assert.equal(reviewed.length, 2, 'not asked again for each request')
  accepted.delete('old')
  accepted.set('moved', 'bob in two')
  await clock.advance(31_000)
  await Promise.all(ends)
  assert.deepEqual(closed.toSorted(), ['moved', 'old'])
  assert.equal((await ask('/api/cost', as('old'))).status, 401)
  assert.equal((await ask('/api/cost', as('moved'))).status, 200)
  await clock.advance(120_000)
  await until(() => closed.length === opened.length)
})

test('PGE-10 one user with many tokens does not keep others from the page', async (t) => {
  const clock = new VirtualClock()
  const { accepted, ask, closed } = await aTeam(t, clock)
  for (let at = 0; at < 50; at++) {
    accepted.set(`token-${at}`, 'mallory')
    await clock.advance(1)
    assert.equal((await ask('/api/cost', as(`token-${at}`))).status, 200)
  }
  assert.equal(closed.length, 46)
  for (let at = 0; at < 40; at++) accepted.set(`user-${at}`, `user ${at}`)
  for (let at = 0; at < 40; at++) {
    await clock.advance(1)
    assert.equal((await ask('/api/cost', as(`user-${at}`))).status, 200)
  }
})

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve))
}
