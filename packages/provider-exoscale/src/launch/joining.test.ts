/** Tokens and early Nodes after the launch. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { karpenterKinds, kinds, type Secret } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import { exoscaleNodeClassKind } from '../nodeclass/types.ts'
import { aClaim, aNodeClass, aWorld } from '../testing/world.test-support.ts'
import { judgeToken } from './token-cleanup.ts'

const now = Date.UTC(2026, 0, 2)
const minute = 60_000

function aToken(
  ageMs: number,
  change: Partial<Secret> & { annotations?: Record<string, string> } = {},
): Secret {
  const { annotations = { 'exoscale.com/token-created': rfc3339(now - ageMs) }, ...rest } = change
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'bootstrap-token-abcdef',
      namespace: 'kube-system',
      labels: { 'exoscale.com/token-provider': 'karpenter-exoscale' },
      creationTimestamp: rfc3339(now - ageMs),
      annotations,
    },
    type: 'bootstrap.kubernetes.io/token',
    ...rest,
  }
}

describe('token clean-up', () => {
  it('EXO-74 expired tokens go, young ones stay until they expire', () => {
    assert.equal(judgeToken(aToken(11 * minute), now, false).kind, 'delete')
    assert.deepEqual(judgeToken(aToken(5 * minute), now, false), { kind: 'keep', delayMs: 5 * minute })
  })

  it('EXO-75 without annotation the creation time counts; garbage is expired', () => {
    assert.equal(judgeToken(aToken(11 * minute, { annotations: {} }), now, false).kind, 'delete')
    assert.equal(judgeToken(aToken(minute, { annotations: {} }), now, false).kind, 'keep')
    const garbage = { 'exoscale.com/token-created': 'soon' }
    assert.equal(judgeToken(aToken(minute, { annotations: garbage }), now, false).kind, 'delete')
  })

  it('EXO-76 with ten seconds left it looks again after 30 s', () => {
    assert.deepEqual(judgeToken(aToken(10 * minute - 10_000), now, false), { kind: 'keep', delayMs: 30_000 })
  })

  it('EXO-77 secrets of others are left alone', () => {
    assert.equal(judgeToken(aToken(11 * minute, { type: 'Opaque' }), now, false).kind, 'foreign')
    const metadata = { ...aToken(0).metadata, labels: {} }
    assert.equal(judgeToken(aToken(11 * minute, { metadata }), now, false).kind, 'foreign')
  })

  it('EXO-78 EXO-79 used tokens go', () => {
    const annotations = { 'exoscale.com/token-created': rfc3339(now), 'exoscale.com/node-registered': 'true' }
    assert.equal(judgeToken(aToken(0, { annotations }), now, false).kind, 'delete')
    assert.equal(judgeToken(aToken(0), now, true).kind, 'delete')
  })

  it('a launched token stays until the kubelet reports, then goes; EXO-136 a refused deletion is told', async () => {
    const world = aWorld()
    world.kube.put(exoscaleNodeClassKind, aNodeClass())
    const { providerID } = await world.settle(world.provider.create(aClaim()))
    world.kube.put(karpenterKinds.nodeClaim, { ...aClaim(), status: { providerID } })
    await world.reconcile('exoscale.tokencleanup', 'all')
    assert.equal(world.kube.all(kinds.secret).length, 1)
    const [node] = world.kube.all(kinds.node)
    assert.ok(node)
    world.kube.put(kinds.node, { ...node, status: { nodeInfo: { kubeletVersion: 'v1.34.1' } } })
    world.kube.failures.push({
      verb: 'delete',
      plural: 'secrets',
      error: new KubeError('forbidden', 403, 'no'),
    })
    assert.deepEqual(await world.reconcile('exoscale.tokencleanup', 'all'), {
      kind: 'after',
      delayMs: 30_000,
    })
    assert.ok(world.kube.events.some((event) => event.reason === 'CleanupFailed'))
    await world.reconcile('exoscale.tokencleanup', 'all')
    assert.deepEqual(world.kube.all(kinds.secret), [])
  })
})

describe('first heartbeat', () => {
  it('EXO-132 an instance that never joins loses its claim after 15 min', async () => {
    const world = aWorld()
    world.kube.put(exoscaleNodeClassKind, aNodeClass())
    const { providerID } = await world.settle(world.provider.create(aClaim()))
    world.kube.put(karpenterKinds.nodeClaim, { ...aClaim(), status: { providerID } })
    await world.clock.advance(14 * minute)
    assert.equal((await world.reconcile('exoscale.firstheartbeat', 'pool-abcde')).kind, 'after')
    await world.clock.advance(2 * minute)
    await world.reconcile('exoscale.firstheartbeat', 'pool-abcde')
    assert.deepEqual(world.kube.all(karpenterKinds.nodeClaim), [])
  })
})

describe('another instance of the same name, where the cloud made two', () => {
  const twin = '0e500000-0000-4000-8000-000000000000'
  const aTwinThatReports = async () => {
    const world = aWorld()
    world.kube.put(exoscaleNodeClassKind, aNodeClass())
    const { providerID } = await world.settle(world.provider.create(aClaim()))
    world.kube.put(karpenterKinds.nodeClaim, { ...aClaim(), status: { providerID } })
    const report = (systemUUID: string, ready: string) => {
      const [node] = world.kube.all(kinds.node)
      assert.ok(node)
      const nodeInfo = { kubeletVersion: 'v1.34.1', systemUUID }
      const conditions = [{ type: 'Ready', status: ready }]
      world.kube.put(kinds.node, { ...node, status: { ...node.status, nodeInfo, conditions } } as typeof node)
    }
    return { world, id: providerID.slice('exoscale://'.length), report }
  }

  it('RPB-46 its report does not use up the token of the own instance', async () => {
    const { world, id, report } = await aTwinThatReports()
    report(twin, 'True')
    await world.reconcile('exoscale.tokencleanup', 'all')
    assert.equal(world.kube.all(kinds.secret).length, 1)
    report(id.toUpperCase(), 'True')
    await world.reconcile('exoscale.tokencleanup', 'all')
    assert.deepEqual(world.kube.all(kinds.secret), [])
  })

  it('RPB-46 a claim whose Node only another instance reported for goes once that reports no more', async () => {
    const { world, report } = await aTwinThatReports()
    report(twin, 'True')
    await world.clock.advance(16 * minute)
    const look = async () => await world.reconcile('exoscale.firstheartbeat', 'pool-abcde')
    assert.equal((await look()).kind, 'after')
    assert.equal(world.kube.all(karpenterKinds.nodeClaim).length, 1)
    report(twin, 'Unknown')
    await look()
    assert.deepEqual(world.kube.all(karpenterKinds.nodeClaim), [])
    assert.ok(world.kube.events.some(({ message }) => message.includes(twin)))
  })

  it('a UUID whose first groups the firmware swapped is the own one', async () => {
    const { world, id, report } = await aTwinThatReports()
    const swapped = (group: string) => group.match(/../g)?.toReversed().join('') ?? ''
    const groups = id.split('-').map((group, at) => (at < 3 ? swapped(group) : group))
    report(groups.join('-'), 'Unknown')
    await world.clock.advance(16 * minute)
    await world.reconcile('exoscale.firstheartbeat', 'pool-abcde')
    assert.equal(world.kube.all(karpenterKinds.nodeClaim).length, 1)
  })
})
