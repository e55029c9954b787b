import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, labels } from '@tenon/api'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { createPool } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

test('STA-112 while versions are equal the hashes of claims are left alone', async (t) => {
  const stage = await Stage.open(t)
  const stamped = (hash: string, version: string) => ({
    annotations: { [annotations.nodePoolHash]: hash, [annotations.nodePoolHashVersion]: version },
  })
  await stage.ready('current', {}, stamped('1', 'v3'))
  await stage.ready('older', {}, stamped('2', 'v2'))
  const hashOfPool = () => stage.poolNow()?.metadata.annotations?.[annotations.nodePoolHash]
  const before = hashOfPool()
  stage.patch(karpenterKinds.nodePool, 'default', {
    spec: { template: { metadata: { labels: { team: 'a' } } } },
  })
  await stage.pass(minutes)
  assert.notEqual(hashOfPool(), before)
  const stampOf = (name: string) => {
    const { metadata } = stage.claimNow(name) ?? {}
    const { nodePoolHash, nodePoolHashVersion } = annotations
    return [metadata?.annotations?.[nodePoolHash], metadata?.annotations?.[nodePoolHashVersion]]
  }
  assert.deepEqual(stampOf('current'), ['1', 'v3'])
  assert.deepEqual(stampOf('older'), ['2', 'v2'])
})

test('STA-130 a claim whose NodePool label changes counts in the new pool only', async (t) => {
  const stage = await Stage.open(t)
  createPool(stage, aKwokPool('other'))
  await stage.claim('a')
  const counts = async () => {
    await stage.pass(6 * seconds)
    return ['default', 'other'].map((pool) => stage.poolNow(pool)?.status?.nodes)
  }
  assert.deepEqual(await counts(), [1, 0])
  stage.patch(karpenterKinds.nodeClaim, 'a', { metadata: { labels: { [labels.nodePool]: 'other' } } })
  assert.deepEqual(await counts(), [0, 1])
})
