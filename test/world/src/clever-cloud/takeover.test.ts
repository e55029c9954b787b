/** Tenon takes a cluster at Clever Cloud over from the Go provider, on virtual time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds, kinds } from '@tenon/api'
import { cleverNodeClassKind, nodeGroupKind } from '@tenon/provider-clever-cloud'
import type { Transport } from '@tenon/runtime'
import { WriteLog } from '../takeover/write-log.test-support.ts'
import { aDeployment, deploymentKind, World } from '../world.ts'
import {
  hashOf,
  instances,
  recordedClaim,
  recordedGroup,
  recordedNodeClass,
  recordedPool,
  registration,
} from './recorded-fleet.test-support.ts'
import { minutes, plenty, seconds } from './stage.test-support.ts'

test('a fleet of both generations is adopted with no write to a spec, no drift and no eviction', async (t) => {
  const log = new WriteLog()
  let clock: World['clock'] | undefined
  // The groups are known later than the nodes, so that their flavors say too much for a while.
  const slow = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      if (request.method === 'GET' && /\/nodegroups\?/.test(request.path)) await clock?.sleep(3 * seconds)
      return await inner.send(request, signal)
    },
  })
  const world = await World.start({
    seed: 1,
    provider: 'clever-cloud',
    apiPath: (inner) => log.listening(slow(inner)),
    cleverCloud: { settings: { quota: plenty, guestMemoryPercent: 97 } },
  })
  t.after(() => world.stop())
  ;({ clock } = world)
  const { local } = world.cluster.server
  const nodeClass = recordedNodeClass(clock.now())
  local.create(cleverNodeClassKind, nodeClass.object)
  local.patch(cleverNodeClassKind, undefined, 'default', { status: nodeClass.status }, 'status')
  const pool = local.create(karpenterKinds.nodePool, recordedPool())
  local.patch(karpenterKinds.nodePool, undefined, 'default', { metadata: { annotations: hashOf(pool) } })
  const claims = instances.map((instance) => {
    const { object, status } = recordedClaim(instance, pool, clock.now())
    const claim = local.create(karpenterKinds.nodeClaim, object)
    local.patch(karpenterKinds.nodeClaim, undefined, instance.name, { status }, 'status')
    local.create(nodeGroupKind, recordedGroup(instance, claim))
    return claim
  })
  await clock.advance(2 * minutes)
  instances.forEach((instance, index) => {
    const claim = claims[index]
    if (claim !== undefined)
      local.patch(kinds.node, undefined, `${instance.name}-node0`, registration(instance, claim))
  })
  // Each node is filled well, so that nothing is worth being consolidated.
  world.create(deploymentKind, aDeployment('large', 1, { cpu: '5500m', memory: '2Gi' }))
  await clock.advance(10 * seconds)
  world.create(deploymentKind, aDeployment('web', 2, { cpu: '3500m', memory: '2Gi' }))
  await clock.advance(minutes)
  const running = () => world.pods().filter(({ status }) => status?.phase === 'Running')
  assert.equal(running().length, 3)
  const pods = running().map(({ metadata }) => metadata.uid)
  const groups = world.nodeGroups()

  const operator = await world.startOperator()
  await clock.advance(40 * minutes)

  assert.deepEqual(world.nodeGroups(), groups)
  assert.deepEqual(
    running().map(({ metadata }) => metadata.uid),
    pods,
  )
  for (const claim of world.claims()) {
    assert.equal(conditionOf(claim, 'Drifted')?.status ?? 'False', 'False', claim.metadata.name)
    assert.equal(claim.metadata.deletionTimestamp, undefined)
  }
  assert.equal(world.claims().length, 3)
  const harmful = log
    .lines((target) => !/ events/.test(target))
    .filter((line) => /^(DELETE|POST)|\bspec\b|eviction|nodegroups|learned-capacity/.test(line))
    .filter((line) => !/^POST (leases|events)/.test(line))
  assert.deepEqual(harmful, [])
  // It is managed from now on: what is no longer needed goes.
  world.scale('web', 0)
  world.scale('large', 0)
  assert.ok(
    await clock.advanceUntil(() => world.nodeGroups().length + world.claims().length === 0, 15 * minutes),
  )
  await world.bury(operator)
  await clock.advance(30 * seconds)
})
