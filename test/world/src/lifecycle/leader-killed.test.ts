/** The leader's process ends amid launches. The 15,000 nodes of the sheet: `KILLED_LEADER_NODES=15000`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { createKubeClient, createLeaderElector, type LeaderElector } from '@tenon/kube'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { SeededRandom, silentLogger } from '@tenon/runtime'
import { aDeployment, aKwokPool, deploymentKind, type RunningOperator, World } from '../world.ts'

const seconds = 1000
const minutes = 60 * seconds
const nodes = Number(process.env['KILLED_LEADER_NODES'] ?? 60)
/** Of pods of 3 CPUs, on nodes of 4. */
const podsPerStep = Math.ceil(nodes / 3)
const lease = { namespace: 'kube-system', name: 'karpenter-leader-election' }

interface Replica {
  readonly running: RunningOperator
  readonly elector: LeaderElector
}

/** A replica that follows the cluster, and leads while it has the lease. */
async function replica(world: World, identity: string): Promise<Replica> {
  const running = await world.startStandby()
  const { clock } = world
  const transport = running.process.guard(world.kubeTransport())
  const elector = createLeaderElector({
    client: createKubeClient({ transport, clock, userAgent: 'karpenter/world' }),
    clock,
    random: new SeededRandom(identity),
    logger: silentLogger,
    ...lease,
    identity,
    onStarted: () => {
      running.operator.lead()
    },
    onStopped: () => undefined,
  })
  elector.start()
  return { running, elector }
}

test('SCA-9 when the leader is killed amid launches, the other decides within 20 s after the lease, and launches nothing twice', async (t) => {
  const world = await World.start({ seed: 9, provider: 'kwok' })
  t.after(() => world.stop())
  world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
    spec: {},
  })
  const { template } = aKwokPool().spec
  const requirements = [
    ...(template.spec.requirements ?? []),
    { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In' as const, values: ['4'] },
  ]
  world.create(
    karpenterKinds.nodePool,
    aKwokPool('default', {
      disruption: { consolidateAfter: 'Never' },
      template: { spec: { ...template.spec, requirements } },
    }),
  )
  const first = await replica(world, 'first')
  assert.ok(await world.clock.advanceUntil(() => first.elector.isLeader, 1 * minutes))
  const second = await replica(world, 'second')
  const running = () => world.pods().filter(({ status }) => status?.phase === 'Running').length
  world.create(deploymentKind, aDeployment('web', podsPerStep, { cpu: '3', memory: '1Gi' }))
  assert.ok(
    await world.clock.advanceUntil(() => running() === podsPerStep, 5 * minutes),
    'the first pods run',
  )

  // Some NodeClaims of the second step exist, and the third one is still to be decided.
  world.scale('web', 2 * podsPerStep)
  assert.ok(await world.clock.advanceUntil(() => world.claims().length > podsPerStep, 1 * minutes))
  world.scale('web', 3 * podsPerStep)
  const { leaseDurationSeconds = 0, renewTime = '' } =
    world.cluster.server.local.get(kinds.lease, lease.namespace, lease.name)?.spec ?? {}
  const leaseEndsMs = Date.parse(renewTime) + leaseDurationSeconds * seconds
  await world.bury(first.running)
  const claimsLeft = world.claims().length
  assert.ok(claimsLeft < 3 * podsPerStep)
  assert.ok(await world.clock.advanceUntil(() => world.claims().length > claimsLeft, 2 * minutes))
  const decidedAfterMs = world.clock.now() - leaseEndsMs
  t.diagnostic(`decided ${decidedAfterMs / seconds} s after the lease`)
  assert.ok(decidedAfterMs > 0 && decidedAfterMs <= 20 * seconds, `${decidedAfterMs} ms`)

  assert.ok(await world.clock.advanceUntil(() => running() === 3 * podsPerStep, 5 * minutes), 'all pods run')
  assert.equal(world.claims().length, 3 * podsPerStep)
  for (const [claim, instances] of world.instancesByClaim()) assert.equal(instances.length, 1, claim)
  assert.equal(world.nodes().length, 3 * podsPerStep)
  await second.elector.stop()
  await world.bury(second.running)
})
