/** Failures of simulated instances, which annotations of their node class ask for; without them nothing fails. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { is, launch, nodeOf, nodeUnder, openKwok, pod, simulate } from '../testing/kwok-stage.test-support.ts'

const onDemand = is(labels.capacityType, 'on-demand')
const small = ['c-1x-amd64-linux', 'c-2x-amd64-linux']

test('launches that are short of capacity fail and are tried again with another claim', async (t) => {
  const stage = await openKwok(t)
  await simulate(stage, { 'capacity-errors': '100%' })
  pod(stage, 'waiting')
  await stage.pass(20 * seconds)
  assert.deepEqual(stage.world.nodes(), [])
  assert.ok((await stage.metric('nodeclaims_disrupted_total', { reason: 'insufficient_capacity' })) > 0)
  await simulate(stage, { 'capacity-errors': null })
  await stage.pass(10 * minutes)
  assert.ok(nodeUnder(stage, 'waiting') !== undefined)
})

test('an outage is found by launches, which then go elsewhere', async (t) => {
  const stage = await openKwok(t)
  await simulate(stage, {
    outages: 'zone=test-zone-a; zone=test-zone-b,capacity-type=on-demand; zone=test-zone-c',
  })
  pod(stage, 'waiting')
  await stage.pass(2 * minutes)
  assert.equal(nodeUnder(stage, 'waiting')?.metadata.labels?.[labels.zone], 'test-zone-d')
})

test('what the catalogue calls unavailable is not tried', async (t) => {
  const stage = await openKwok(t)
  await simulate(stage, { unavailable: 'zone=test-zone-a;zone=test-zone-b;zone=test-zone-c' })
  pod(stage, 'waiting')
  await stage.pass(minutes)
  assert.equal(nodeUnder(stage, 'waiting')?.metadata.labels?.[labels.zone], 'test-zone-d')
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'insufficient_capacity' }), 0)
})

test('prices change what is the cheapest', async (t) => {
  const stage = await openKwok(t)
  await simulate(stage, { prices: 'type=c-1x-amd64-linux:10; all:2' })
  await launch(stage, 'one', small, onDemand)
  const tags = nodeOf(stage, 'one')?.metadata.labels
  assert.equal(tags?.[labels.instanceType], 'c-2x-amd64-linux')
  assert.equal(tags?.['eks-node-viewer/instance-price'], (0.054294967296 * 2).toFixed(6))
})

test('a new image makes the instances of the old one drift, once', async (t) => {
  const budgets = { disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '100%' }] } }
  const stage = await openKwok(t, { pool: budgets })
  pod(stage, 'app', {})
  await stage.pass(minutes)
  const before = stage.world.nodes().map(({ metadata }) => metadata.name)
  assert.equal(before.length, 1)
  await simulate(stage, { image: 'v2' })
  await stage.pass(20 * minutes)
  const after = stage.world.nodes()
  assert.equal(
    after.some(({ metadata }) => before.includes(metadata.name)),
    false,
  )
  assert.ok(after.every(({ metadata }) => metadata.annotations?.['karpenter.kwok.sh/image'] === 'v2'))
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'drifted' }), 1)
})

test('an instance that ends slowly keeps its claim until it is gone', async (t) => {
  const stage = await openKwok(t)
  await launch(stage, 'one', small, onDemand)
  await stage.pass(30 * seconds)
  await simulate(stage, { 'termination-delay': '1m' })
  await stage.deleteClaim('one')
  await stage.pass(50 * seconds)
  assert.equal(stage.state('one', 'InstanceTerminating').split('/')[0], 'True')
  await stage.pass(30 * seconds)
  assert.equal(stage.claimNow('one'), undefined)
  assert.deepEqual(stage.world.nodes(), [])
})

test('calls above the limit are throttled, and go on later', async (t) => {
  const stage = await openKwok(t)
  await simulate(stage, { 'rate-limit': '0.1' })
  for (const name of ['one', 'two', 'three']) await launch(stage, name, small, onDemand)
  assert.equal(stage.world.nodes().length, 1)
  assert.match(stage.condition('two', 'Launched')?.message ?? '', /more than 0.1 calls a second/)
  await stage.pass(2 * minutes)
  assert.equal(stage.world.nodes().length, 3)
})
