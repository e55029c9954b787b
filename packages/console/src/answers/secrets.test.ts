import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { hiddenValue, withoutSecrets } from './secrets.ts'

function shown(more: object, metadata: object = {}): string {
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', ...metadata },
    ...more,
  } as KubeObject
  return JSON.stringify(withoutSecrets(object))
}

test('PGE-7 secrets are hidden wherever objects have them, and managed fields are left out', () => {
  const texts = [
    shown({ spec: { containers: [{ env: [{ name: 'COLOUR', value: 'hunter2' }] }] } }),
    shown({ spec: { containers: [{ args: ['--token=hunter2', '--api-key', 'hunter2'] }] } }),
    shown({ spec: { containers: [{ command: ['sh', '-c', 'DB_PASSWORD=hunter2 exec app'] }] } }),
    shown({ spec: { userData: 'hunter2' } }),
    shown({ spec: { template: { spec: { containers: [{ env: [{ name: 'A', value: 'hunter2' }] }] } } } }),
    shown({ spec: { password: 'hunter2', passwords: ['hunter2'], clientSecret: 'hunter2' } }),
    shown({}, { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'hunter2' } }),
    shown({}, { annotations: { 'example.com/token': 'hunter2' } }),
    shown({}, { annotations: { config: '{"db": {"password" : "hunter2"}}' } }),
    shown({}, { annotations: { dsn: 'postgres://web:hunter2@db:5432/shop' } }),
    shown({}, { annotations: { header: 'Authorization: Bearer hunter2hunter2' } }),
    shown({ spec: { key: '-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----' } }),
    shown({}, { managedFields: [{ manager: 'hunter2' }] }),
  ]
  for (const text of texts) assert.doesNotMatch(text, /hunter2|managedFields/)
  assert.ok(texts[0]?.includes(`{"name":"COLOUR","value":"${hiddenValue}"}`))
})

test('PGE-7 what only tells where a secret is stays', () => {
  const kept = {
    spec: {
      imagePullSecrets: [{ name: 'registry' }],
      automountServiceAccountToken: false,
      metadataOptions: { httpTokens: 'required' },
      volumes: [{ name: 'v', secret: { secretName: 'tls' } }],
      containers: [
        {
          args: ['--log-level', 'debug', '--token-path=/var/run'],
          env: [{ name: 'P', valueFrom: { secretKeyRef: { name: 'db', key: 'password' } } }],
        },
      ],
    },
  }
  const { spec } = withoutSecrets({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a' },
    ...kept,
  }) as typeof kept
  assert.deepEqual({ ...spec, containers: [] }, { ...kept.spec, containers: [] })
  assert.deepEqual(spec.containers[0]?.env, kept.spec.containers[0]?.env)
  assert.deepEqual(spec.containers[0]?.args.slice(0, 2), ['--log-level', 'debug'])
})

test('PGE-7 a text of 256 KiB takes no longer than its length', () => {
  for (const part of ['token', 'a', '"', '://', 'password:', '-----BEGIN PRIVATE KEY-----', '"token" : '])
    shown({}, { annotations: { long: part.repeat(262_144 / part.length) } })
})

test('PGE-7 hostile keys and values are kept as they are', () => {
  const metadata = JSON.parse('{"annotations":{"__proto__":"x","constructor":"y"}}') as object
  assert.match(
    shown({ spec: { list: [null, 1, [], {}], nothing: null } }, metadata),
    /"__proto__":"x","constructor":"y"/,
  )
})
