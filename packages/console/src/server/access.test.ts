import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '@tenon/runtime'
import { Access } from './access.ts'

const own = { host: '127.0.0.1:4711' }

function opened() {
  const used: number[] = []
  const access = new Access(new SeededRandom(1), () => used.push(1))
  const first = access.token
  const admission = access.admit({ method: 'GET', path: `/map?token=${first}`, headers: own })
  assert.equal(admission.kind, 'admittedByToken')
  const cookie = admission.kind === 'admittedByToken' ? (admission.cookie.split(';')[0] ?? '') : ''
  return { access, first, admission, cookie, used }
}

test('CON-12 the token of the link serves once, for a cookie that scripts and other sites do not get', () => {
  const { access, admission, cookie, first, used } = opened()
  assert.ok(admission.kind === 'admittedByToken')
  assert.match(admission.cookie, /; HttpOnly; SameSite=Strict; Path=\/$/)
  assert.notEqual(access.token, first)
  assert.equal(used.length, 1)
  const again = access.admit({ method: 'GET', path: `/?token=${first}`, headers: own })
  assert.ok(again.kind === 'refused' && again.status === 401)
  const known = access.admit({
    method: 'GET',
    path: '/api/stream',
    headers: { ...own, cookie: `x=y; ${cookie}` },
  })
  assert.equal(known.kind, 'admitted')
})

test('CON-12 without the token everything is 401, also the stream, whatever else is tried', () => {
  const { access, cookie } = opened()
  const name = cookie.split('=')[0] ?? ''
  const tries = [
    { path: '/', headers: own },
    { path: '/api/stream', headers: own },
    { path: '/?token=', headers: own },
    { path: `/?token=${'0'.repeat(64)}`, headers: own },
    { path: '/?token[]=x', headers: own },
    { path: '/', headers: { ...own, cookie: `${name}=` } },
    { path: '/', headers: { ...own, cookie: `${name}=${access.token}` } },
  ]
  for (const each of tries) {
    const admission = access.admit({ method: 'GET', ...each })
    assert.ok(admission.kind === 'refused' && admission.status === 401, JSON.stringify(each))
  }
  const posted = access.admit({
    method: 'POST',
    path: `/?token=${access.token}`,
    headers: { ...own, origin: 'http://127.0.0.1:4711' },
  })
  assert.equal(posted.kind, 'refused', 'a form does not use the link up')
})

test('CON-12 another name for the host and another origin are refused, with the cookie too', () => {
  const { access, cookie } = opened()
  const tries: readonly Readonly<Record<string, string>>[] = [
    { host: 'evil.example:4711' },
    { host: '127.0.0.1.evil.example:4711' },
    { host: 'localhost.evil.example' },
    { host: '' },
    { ...own, origin: 'http://evil.example' },
    { ...own, origin: 'null' },
    { ...own, origin: 'http://127.0.0.1:4712' },
    { ...own, origin: 'https://127.0.0.1:4711' },
    { ...own, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' },
    { ...own, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { ...own, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  ]
  for (const headers of tries) {
    const admission = access.admit({ method: 'GET', path: '/api/cost', headers: { cookie, ...headers } })
    assert.ok(admission.kind === 'refused' && admission.status === 403, JSON.stringify(headers))
  }
  for (const host of ['localhost:4711', '[::1]:4711', '127.0.0.1:4711', 'LOCALHOST:4711'])
    assert.equal(
      access.admit({ method: 'GET', path: '/', headers: { cookie, host, origin: `http://${host}` } }).kind,
      'admitted',
    )
  const blind = access.admit({ method: 'POST', path: '/api/actions', headers: { ...own, cookie } })
  assert.equal(blind.kind, 'refused', 'a request that changes something names its origin')
})
