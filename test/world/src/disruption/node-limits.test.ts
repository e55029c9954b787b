/** Drift under `limits.nodes`: nodes that drain count (reports-2.md 9). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { conditionOf, type KubeObject, karpenterKinds, kinds, type NodePool } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { healthyCluster, instanceIds, runningPods } from '../answers/healthy-cluster.test-support.ts'
import type { World, WorldOptions } from '../world.ts'

const nodes = 10

/** A full NodePool at its limit that drifts altogether; budgets let all of it go. */
async function drifting(
  t: TestContext,
  limit: string,
  options: Partial<WorldOptions> = {},
): Promise<{ readonly world: World; readonly old: readonly string[]; readonly pool: () => NodePool }> {
  const world = await healthyCluster(t, nodes, options)
  const pool = () => {
    const found = world.cluster.server.local.get(karpenterKinds.nodePool, undefined, 'standard')
    assert.ok(found)
    return found
  }
  const old = instanceIds(world)
  const { metadata, spec } = pool()
  const labelled = { ...spec.template.metadata, labels: { generation: '2' } }
  world.cluster.server.local.update(karpenterKinds.nodePool, {
    ...pool(),
    metadata,
    spec: {
      ...spec,
      limits: { nodes: limit },
      disruption: { ...spec.disruption, budgets: [{ nodes: '100%' }] },
      template: { ...spec.template, metadata: labelled },
    },
  })
  return { world, old, pool }
}

/** Lets time pass. @returns the most claims that there were at one moment. */
async function mostClaims(world: World, minutes: number): Promise<number> {
  let most = 0
  for (let at = 0; at < minutes * 12; at++) {
    await world.clock.advance(5000)
    most = Math.max(most, world.claims().length)
  }
  return most
}

test('RPB-23 ten drifted nodes at limits.nodes 10 are never more than ten, and are told why they stay', async (t) => {
  const { world, old, pool } = await drifting(t, '10')
  assert.equal(await mostClaims(world, 15), nodes)
  assert.deepEqual(instanceIds(world), old)
  assert.equal(runningPods(world), nodes)
  const rollout = conditionOf(pool(), 'RolloutHealthy')
  assert.deepEqual([rollout?.status, rollout?.reason], ['False', 'LimitReached'])
  assert.match(
    rollout?.message ?? '',
    /limits\.nodes of NodePool standard is 10, and it has 10 nodes.*; raise limits\.nodes by one or more/,
  )
  const events = world.cluster.server.local.list<KubeObject & { reason?: string; message?: string }>(
    kinds.event,
  )
  const said = (reason: string) =>
    events.some((each) => each.reason === reason && each.message?.includes('is 10'))
  assert.ok(said('LimitReached') && said('DisruptionBlocked'))
})

test('RPB-23 with room for one more node all ten are replaced, one after the other', async (t) => {
  const { world, old } = await drifting(t, '11')
  assert.equal(await mostClaims(world, 60), nodes + 1)
  assert.equal(runningPods(world), nodes)
  assert.ok(!instanceIds(world).some((id) => old.includes(id)))
})

test('RPB-23 in compatibility mode nodes that drain do not count', async (t) => {
  const settings = { ...defaultSettings, compatibility: 'karpenter' } as const
  const { world } = await drifting(t, '10', { settings })
  assert.ok((await mostClaims(world, 15)) > nodes)
})
