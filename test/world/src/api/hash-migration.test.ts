/** The drift hash on NodePools and their claims while versions differ (api.md 9.1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, nodePoolHash } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'
import { createPool } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

/** Annotations that say this hash and version. */
const stamp = (hash: string, version: string) => ({
  annotations: { [annotations.nodePoolHash]: hash, [annotations.nodePoolHashVersion]: version },
})
type Stamped = { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } } | undefined
const stampOf = (object: Stamped) => [
  object?.metadata.annotations?.[annotations.nodePoolHash],
  object?.metadata.annotations?.[annotations.nodePoolHashVersion],
]
const currentHash = (stage: Stage) => {
  const pool = stage.poolNow()
  return pool === undefined ? '' : nodePoolHash(pool)
}

function stampPool(stage: Stage, hash: string, version: string): void {
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: stamp(hash, version) })
}

test('API-69 a pool and two claims of another version get the current hash and v3', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  stampPool(stage, '1', 'test')
  await stage.claim('a', {}, stamp('1', 'test'))
  await stage.claim('b', {}, stamp('2', 'test'))
  await stage.start()
  const current = [currentHash(stage), 'v3']
  const all = [stage.poolNow(), stage.claimNow('a'), stage.claimNow('b')].map(stampOf)
  assert.deepEqual(all, [current, current, current])
})

test('API-70 a claim of this version keeps its hash while the pool is migrated', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  stampPool(stage, '1', 'test')
  await stage.claim('a', {}, stamp('123456', 'v3'))
  await stage.start()
  assert.deepEqual(stampOf(stage.poolNow()), [currentHash(stage), 'v3'])
  assert.deepEqual(stampOf(stage.claimNow('a')), ['123456', 'v3'])
})

for (const status of ['True', 'False']) {
  test(`API-71 of a claim with Drifted=${status} the migration changes the version only`, async (t) => {
    const stage = await Stage.open(t, { idle: true })
    await stage.claim('a', {}, stamp('123456', 'test'))
    const at = rfc3339(stage.now)
    const condition = { type: 'Drifted', status, reason: 'X', message: 'X', lastTransitionTime: at }
    stage.patch(karpenterKinds.nodeClaim, 'a', { status: { conditions: [condition] } }, 'status')
    await stage.start()
    assert.deepEqual(stampOf(stage.claimNow('a')), ['123456', 'v3'])
  })
}

test('API-72 API-73 hashes of two versions, or with one side missing, are no drift', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('other-version', {}, stamp('1', 'v2'))
  await stage.ready('no-annotation')
  await stage.ready('no-version', {}, { annotations: { [annotations.nodePoolHash]: '1' } })
  await stage.ready('no-hash', {}, { annotations: { [annotations.nodePoolHashVersion]: 'v3' } })
  await stage.ready('drifted', {}, stamp('1', 'v3'))
  await stage.pass(6 * minutes)
  const names = ['other-version', 'no-annotation', 'no-version', 'no-hash', 'drifted']
  assert.deepEqual(
    names.map((name) => stage.state(name, 'Drifted')),
    ['absent', 'absent', 'absent', 'absent', 'True/NodePoolDrifted'],
  )
})

test('API-73 without a hash on the pool its claims have not drifted', async (t) => {
  const apiPath = intercepting((method, path, body) =>
    method === 'PATCH' && path.includes('/nodepools/') && body.includes('nodepool-hash') ? 'error' : 'pass',
  )
  const stage = await Stage.open(t, { apiPath })
  await stage.ready('a', {}, stamp('1', 'v3'))
  await stage.pass(6 * minutes)
  assert.deepEqual(stampOf(stage.poolNow()), [undefined, undefined])
  assert.equal(stage.state('a', 'Drifted'), 'absent')
})

test('API-74 a pool of an unsupported node class, and its claims, are not annotated', async (t) => {
  const stage = await Stage.open(t)
  const { template } = aKwokPool().spec
  const nodeClassRef = { group: 'other.io', kind: 'Other', name: 'x' }
  createPool(
    stage,
    aKwokPool('foreign', { template: { ...template, spec: { ...template.spec, nodeClassRef } } }),
  )
  await stage.claim('a', { nodeClassRef }, { labels: { 'karpenter.sh/nodepool': 'foreign' } })
  await stage.pass(10 * seconds)
  assert.equal(stage.poolNow('foreign')?.metadata.annotations, undefined)
  assert.equal(stage.claimNow('a')?.metadata.annotations, undefined)
})

test('API-111 when a claim cannot be migrated its pool keeps the old version, and it is tried again', async (t) => {
  let refusals = 1
  const apiPath = intercepting((method, path, body) =>
    method === 'PATCH' && path.includes('/nodeclaims/b') && body.includes('nodepool-hash') && refusals-- > 0
      ? 'error'
      : 'pass',
  )
  const stage = await Stage.open(t, { apiPath, idle: true })
  stampPool(stage, '1', 'test')
  for (const name of ['a', 'b']) await stage.claim(name, {}, stamp('1', 'test'))
  const seen = new Set<string>()
  stage.world.cluster.server.local.subscribe(karpenterKinds.nodePool, {
    updated: (pool) => {
      const versionOfB = stampOf(stage.claimNow('b'))[1]
      seen.add(`pool ${stampOf(pool)[1]}, claim ${versionOfB}`)
    },
  })
  await stage.start()
  await stage.pass(minutes)
  assert.ok(refusals < 0)
  assert.ok(seen.has('pool test, claim test') && !seen.has('pool v3, claim test'), [...seen].join('; '))
  const current = [currentHash(stage), 'v3']
  assert.deepEqual([stage.poolNow(), stage.claimNow('b')].map(stampOf), [current, current])
})
