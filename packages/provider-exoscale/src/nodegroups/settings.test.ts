import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { type NodeGroupDependencies, ProviderSettingError } from '@tenon/provider'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { nodeGroupModule } from './open.ts'
import { readNodeGroupSettings } from '../api/node-group-settings.ts'

const env = { EXOSCALE_ZONE: 'ch-gva-2', EXOSCALE_API_KEY: 'EXOkey', EXOSCALE_API_SECRET: 'hidden-value' }

/** The variable that is complained about. */
function complaint(change: Record<string, string | undefined>): string | undefined {
  try {
    readNodeGroupSettings({ ...env, ...change })
    return undefined
  } catch (error) {
    assert.ok(error instanceof ProviderSettingError)
    assert.match(error.message, new RegExp(`^${error.variable ?? '?'} is`))
    return error.variable
  }
}

test('CAS-1 only the first missing variable is named, in the order zone, key, secret', () => {
  const none = { EXOSCALE_ZONE: undefined, EXOSCALE_API_KEY: '', EXOSCALE_API_SECRET: '  ' }
  assert.equal(complaint(none), 'EXOSCALE_ZONE')
  assert.equal(complaint({ ...none, EXOSCALE_ZONE: 'ch-gva-2' }), 'EXOSCALE_API_KEY')
  assert.equal(complaint({ EXOSCALE_API_SECRET: '' }), 'EXOSCALE_API_SECRET')
  assert.equal(complaint({}), undefined)
})

test('CAS-1 the module refuses to open without them', () => {
  const clock = new VirtualClock()
  const dependencies = {
    clusters: {} as NodeGroupDependencies['clusters'],
    discoverySpecs: [],
    nodeGroupSpecs: [],
    allowsEmptyGroups: false,
    runtime: { clock, random: new SeededRandom(1), logger: silentLogger },
    cloud: { fenced: <T>(transport: T) => transport, userAgent: 'test' },
  }
  assert.throws(() => nodeGroupModule.open({ ...dependencies, env: {} }), {
    message: 'EXOSCALE_ZONE is not set: set it to the zone of the cluster, for example ch-gva-2',
  })
  assert.deepEqual(nodeGroupModule.open({ ...dependencies, env }).list(), [])
})

test('CAS-2 the endpoint is made of environment and zone', () => {
  assert.equal(readNodeGroupSettings(env).endpoint, 'https://api-ch-gva-2.exoscale.com/v2')
  const ppapi = readNodeGroupSettings({ ...env, EXOSCALE_API_ENVIRONMENT: 'ppapi' })
  assert.equal(ppapi.endpoint, 'https://ppapi-ch-gva-2.exoscale.com/v2')
})

test('a zone or environment that would change the host is refused, and so is an endpoint that is none', () => {
  assert.equal(complaint({ EXOSCALE_ZONE: 'x.example.com/' }), 'EXOSCALE_ZONE')
  assert.equal(complaint({ EXOSCALE_API_ENVIRONMENT: 'a@b' }), 'EXOSCALE_API_ENVIRONMENT')
  assert.equal(complaint({ EXOSCALE_API_ENDPOINT: 'localhost' }), 'EXOSCALE_API_ENDPOINT')
  const own = readNodeGroupSettings({ ...env, EXOSCALE_API_ENDPOINT: 'http://127.0.0.1:1/v2' })
  assert.equal(own.endpoint, 'http://127.0.0.1:1/v2')
})

test('the secret does not show', () => {
  assert.doesNotMatch(inspect(readNodeGroupSettings(env), { depth: 9 }), /hidden-value/)
})
