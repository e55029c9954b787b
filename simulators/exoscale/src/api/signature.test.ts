import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { Secret } from '@tenon/runtime'
import { ExoscaleFixture, owner } from '../exoscale.test-support.ts'
import { authorizationHeader, messageToSign, verify } from './signature.ts'

const secret = createHash('sha256').update('tenon exoscale signing vectors').digest('hex').slice(0, 43)
const credential = { key: 'EXOtenon0000000000000000001', secret: new Secret(secret) }
const expires = 1_800_000_000
const poolId = '6f1f2b6e-3a53-4a5f-9d0e-0f4f6a2d1c11'

const vectors = [
  ['GET', '/v2/instance-type', '', 'QKMoDDR2tYz4i253wM/7b7MInaHeiCMxKn4jTQur+0g='],
  [
    'GET',
    `/v2/instance?manager-type=instance-pool&labels=exoscale.com%2Fmanaged-by%3Dkarpenter&manager-id=${poolId}`,
    '',
    '2PA+zm+cpFEIlTKutHO1nIq0ZJX/6dLjOlWfcemIvn0=',
  ],
  [
    'POST',
    '/v2/instance',
    '{"name":"pool-a1","disk-size":50,"instance-type":{"id":"b6e9d1e8-89fc-4db3-aaa4-9b4c5b1d0844"},"template":{"id":"11111111-2222-4333-8444-555555555555"},"labels":{"exoscale.com/managed-by":"karpenter","note":"café"}}',
    'asD0dKjTnryRCFklesegVFdFry0EN2tFvWMzATZd0HA=',
  ],
  [
    'PUT',
    '/v2/sks-cluster/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee/nodepool/99999999-8888-4777-8666-555555555555:scale',
    '{"size":3}',
    'ZrNwccSyuGLQnToHoZxu5gnlsKb7hXgVcsMB+2K0JQs=',
  ],
  [
    'DELETE',
    '/v2/instance/0b12cb6b-7e3e-4c0e-9e10-1e5d8a7c4b2a',
    '',
    'o5fS+15bbrz+k7QEPdTzf9aifMf2HEhlqe6Smo8ah0M=',
  ],
] as const

for (const [index, [method, path, body, signature]] of vectors.entries()) {
  test(`EXO-103 signing vector ${index + 1}`, () => {
    const header = authorizationHeader(credential, { method, path, body, expires })
    assert.equal(header.split('signature=')[1], signature)
    const found = verify(header, { method, path, body }, [credential], (expires - 1) * 1000)
    assert.equal(found.kind, 'verified')
  })
}

test('EXO-103 the whole header of the first vector', () => {
  assert.equal(
    authorizationHeader(credential, { method: 'GET', path: '/v2/instance-type', body: '', expires }),
    `EXO2-HMAC-SHA256 credential=${credential.key},expires=${expires},signature=${vectors[0][3]}`,
  )
})

test('EXO-104 parameters are signed in the order of their names', () => {
  const header = authorizationHeader(credential, { method: 'GET', path: '/v2/x?b=2&a=1', body: '', expires })
  assert.match(header, /,signed-query-args=a;b,/)
  const message = messageToSign({ method: 'GET', path: '/v2/x?b=2&a=1', body: '', expires })
  assert.equal(message.toString(), 'GET /v2/x\n\n12\n\n1800000000')
})

test('EXO-105 a repeated parameter is left out of the signature', () => {
  const header = authorizationHeader(credential, {
    method: 'GET',
    path: '/v2/x?a=1&a=2&b=3',
    body: '',
    expires,
  })
  assert.match(header, /,signed-query-args=b,/)
})

test('EXO-142 an empty parameter is listed and adds nothing', () => {
  const parts = { method: 'GET', path: '/v2/x?a=&b=3', body: '', expires }
  assert.match(authorizationHeader(credential, parts), /,signed-query-args=a;b,/)
  assert.equal(messageToSign(parts).toString(), 'GET /v2/x\n\n3\n\n1800000000')
})

/** Sends a signed `GET /instance?labels=x` after `spoil` has changed its parts. */
async function statusOf(spoil: (header: string) => { header?: string; path?: string; body?: string }) {
  const { clock, cloud } = new ExoscaleFixture()
  const path = '/v2/instance?labels=x'
  const soon = Math.floor(clock.now() / 1000) + 600
  const header = authorizationHeader(owner, { method: 'GET', path, body: '', expires: soon })
  const spoilt = spoil(header)
  const answer = await cloud.handle({
    method: 'GET',
    path: spoilt.path ?? path,
    headers: spoilt.header === undefined ? {} : { authorization: spoilt.header },
    body: spoilt.body ?? '',
  })
  return answer.status
}

const spoilt = {
  'no header': () => ({}),
  'another scheme': (header: string) => ({ header: header.replace('EXO2', 'EXO1') }),
  'an unknown key': (header: string) => ({ header: header.replace('EXOowner', 'EXOother') }),
  'another path': (header: string) => ({ header, path: '/v2/instance-type?labels=x' }),
  'another query value': (header: string) => ({ header, path: '/v2/instance?labels=y' }),
  'an unsigned parameter': (header: string) => ({ header, path: '/v2/instance?labels=x&ip-address=1' }),
  'another body': (header: string) => ({ header, body: '{}' }),
  'a changed expiry': (header: string) => ({ header: header.replace(/expires=\d/, 'expires=2') }),
  'a cut signature': (header: string) => ({ header: header.slice(0, -5) }),
}

for (const [what, spoil] of Object.entries(spoilt)) {
  test(`401 with ${what}`, async () => {
    assert.equal(await statusOf(spoil), 401)
  })
}

test('a sound signature is taken', async () => {
  assert.equal(await statusOf((header) => ({ header })), 200)
})

test('401 once the signature has expired', async () => {
  const { clock, cloud } = new ExoscaleFixture()
  const parts = { method: 'GET', path: '/v2/instance', body: '' }
  const expired = Math.floor(clock.now() / 1000)
  const authorization = authorizationHeader(owner, { ...parts, expires: expired })
  assert.equal((await cloud.handle({ ...parts, headers: { authorization } })).status, 401)
})

test('zones are public', async () => {
  const world = new ExoscaleFixture()
  const reply = await world.send({ method: 'GET', path: '/v2/zone', headers: {} })
  assert.equal(reply.status, 200)
  assert.equal(reply.body.zones.length, 8)
})

test('a restricted key may only call its operations, list-zones not included', async () => {
  const limited = { key: 'EXOlimited', secret: new Secret('limited'), operations: ['list-instances'] }
  const world = new ExoscaleFixture({ credentials: [owner, limited] })
  assert.equal((await world.call('GET', '/instance', undefined, limited)).status, 200)
  assert.equal((await world.call('GET', '/instance-type', undefined, limited)).status, 403)
  assert.equal((await world.call('GET', '/zone', undefined, limited)).status, 403)
  assert.equal((await world.call('GET', '/instance-type')).status, 200)
})
