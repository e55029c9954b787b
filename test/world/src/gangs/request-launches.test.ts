/** Launches for a ProvisioningRequest that cannot all be had (gangs.md 7.3, 7.6). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podSpec, podTemplate } from '../capacity-buffers/buffer-stage.test-support.ts'
import { aType } from '../testing/pools.test-support.ts'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { joinAll, liveClaims, openGangs } from './gang-stage.test-support.ts'
import { messageOf, request, requestNow, stateOf } from './request-stage.test-support.ts'

const served = { world: { servesRequests: true }, areServed: false }

test('GNG-43 what cannot be had whole is released, and does not come back at once', async (t) => {
  const { stage, cloud } = await openGangs(t, served)
  cloud.stock.set('type-4/zone-1', 3)
  podTemplate(stage, 'train', podSpec('3'))
  request(stage, 'train', { count: 4 })
  await stage.pass(2 * seconds)
  assert.equal(liveClaims(stage).length, 3)
  await stage.pass(40 * seconds)
  assert.deepEqual(liveClaims(stage), [])
  assert.equal(stateOf(stage, 'train', 'Provisioned'), 'False/CapacityIsNotFound')
  assert.match(messageOf(stage, 'train', 'Provisioned'), /could be had/)
  assert.equal(stage.events('GroupCapacityReleased').length, 1)
  assert.equal(requestNow(stage, 'train')?.status?.conditions?.length, 2)
})

test('GNG-43 tries follow after 1, 2, 4, 8, 10 and 10 minutes', async (t) => {
  const { stage } = await openGangs(t, { ...served, pool: { limits: { nodes: '3' } } })
  podTemplate(stage, 'train', podSpec('3'))
  request(stage, 'train', { count: 4 })
  const times: string[] = []
  for (let passed = 0; passed < 40 * minutes; passed += 1000) {
    await stage.pass(1 * seconds)
    const tried = requestNow(stage, 'train')?.status?.conditions?.find(({ type }) => type === 'Provisioned')
    if (tried !== undefined && times.at(-1) !== tried.lastTransitionTime) times.push(tried.lastTransitionTime)
  }
  const pauses = times.slice(1).map((time, at) => (Date.parse(time) - Date.parse(times[at] ?? '')) / 60_000)
  assert.deepEqual(pauses.map(Math.round), [1, 2, 4, 8, 10, 10])
  assert.deepEqual(liveClaims(stage), [])
})

test('GNG-41 nodes of a request open together once all are ready', async (t) => {
  const { stage } = await openGangs(t, { ...served, types: [aType('type-4', 4)] })
  podTemplate(stage, 'train', podSpec('3'))
  request(stage, 'train', { count: 3 })
  await stage.pass(10 * seconds)
  const claims = liveClaims(stage)
  assert.equal(claims.length, 3)
  await joinAll(stage, claims.slice(0, 2))
  await stage.pass(20 * seconds)
  assert.match(messageOf(stage, 'train', 'Provisioned'), /It takes 3 nodes: 3 launched, 0 ready/)
  await joinAll(stage, claims)
  await stage.pass(20 * seconds)
  assert.equal(stateOf(stage, 'train', 'Provisioned'), 'True/CapacityIsProvisioned')
})

test('GNG-44 launches of a request whose time is over are released', async (t) => {
  const { stage } = await openGangs(t, served)
  podTemplate(stage, 'train', podSpec('3'))
  request(stage, 'train', { count: 3, parameters: { ValidUntilSeconds: '60' } })
  await stage.pass(40 * seconds)
  assert.equal(liveClaims(stage).length, 3)
  await stage.pass(30 * seconds)
  assert.equal(stateOf(stage, 'train', 'Failed'), 'True/Expired')
  assert.deepEqual(liveClaims(stage), [])
})
